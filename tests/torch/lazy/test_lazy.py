# SPDX-License-Identifier: BSD-3-Clause
"""Lazy mode, case by case: worlds and sub-groups, both modes, lazy thread pool, debug mode."""

import lazy_program  # noqa: F401
import lazy_run
import lazy_values  # noqa: F401
import lazy_views  # noqa: F401
import pytest
import ranks

NAMES = sorted(lazy_run.CASES)
VALUES = sorted(name for name in NAMES if lazy_run.CASES[name].__module__ == "lazy_values")
# They count graphs, which a cut makes more of, hold calls back, which a cut does not, or compute
# on one thread while another runs a step, as every cut is: torch's tensors are not safe then.
RECORD_ONLY = {
    "one_compilation",
    "same_graph_other_group",
    "same_graph_other_operation",
    "threads",
    "training",
}
DETAIL = ["all_reduce", "all_gather", "all_to_all_single", "asynchronous", "collective_on_views"]


def run_in_rank(context, name, members, mode, pool):
    return lazy_run.run(context, name, members, mode=mode, pool=pool)


def run(team, name, members=None, mode="record", pool=False):
    team.run(run_in_rank, name, members, mode, pool, seconds=120)


@pytest.mark.parametrize("name", NAMES)
def test_two_ranks(name):
    run(ranks.team(2), name)


@pytest.mark.parametrize("name", VALUES)
def test_three_ranks(name):
    run(ranks.team(3), name)


@pytest.mark.parametrize("name", ["all_gather", "asynchronous", "from_every_root", "isend_irecv"])
def test_sub_group(name):
    run(ranks.team(3), name, (2, 0))


@pytest.mark.parametrize("name", ["all_to_all", "asynchronous", "batched", "isend_irecv"])
def test_cut(name):
    run(ranks.team(2), name, mode="cut")


@pytest.mark.parametrize("name", ["asynchronous", "one_compilation", "reused_ir"])
def test_thread_pool(name):
    run(ranks.team(2), name, pool=True)


@pytest.mark.full
@pytest.mark.parametrize("pool", [False, True], ids=["", "pool"])
@pytest.mark.parametrize("world", [2, 3, 4])
@pytest.mark.parametrize("name", NAMES)
def test_every_world(name, world, pool):
    run(ranks.team(world), name, pool=pool)


@pytest.mark.full
@pytest.mark.parametrize("members", [(0, 1), (3, 1), (2, 0, 3)], ids=str)
@pytest.mark.parametrize("name", NAMES)
def test_every_sub_group(name, members):
    run(ranks.team(4), name, members)


@pytest.mark.full
@pytest.mark.parametrize("pool", [False, True], ids=["", "pool"])
@pytest.mark.parametrize("world", [2, 3, 4])
@pytest.mark.parametrize("name", sorted(set(NAMES) - RECORD_ONLY))
def test_every_cut(name, world, pool):
    run(ranks.team(world), name, mode="cut", pool=pool)


@pytest.mark.full
@pytest.mark.parametrize("name", sorted(set(NAMES) - RECORD_ONLY))
def test_every_sub_group_cut(name):
    run(ranks.team(4), name, (2, 0, 3), mode="cut")


@pytest.mark.full
@pytest.mark.parametrize("name", DETAIL)
def test_debug_mode(name):
    run(ranks.team(2, TORCH_DISTRIBUTED_DEBUG="DETAIL"), name)
