# SPDX-License-Identifier: BSD-3-Clause
"""Kinds of faults that users of other libraries met, with values worked out by hand."""

import os
import signal
import time

import cases
import pytest
import ranks
import torch
import torch.distributed as dist

CASES = {
    cases.strided_views: [2],
    cases.channels_last: [2],
    cases.reduce_leaves_inputs: [2, 3, 4, 5],
    cases.gather_into_itself: [3],
    cases.averages: [2, 4],
    cases.bitwise: [2, 3],
    cases.nan_wins: [2, 4],
    cases.unsigned_extremes: [2],
    cases.half_sums: [2],
    cases.one_rounding: [2, 5],
    cases.complex_numbers: [2],
    cases.every_type_moves: [2, 3],
    cases.some_send_nothing: [4],
    cases.receive_of_another_size: [2],
    cases.other_calls_on_other_ranks: [4],
    cases.uneven_reduce_scatter: [2],
    cases.odd_worlds: [3, 5],
    cases.sub_group_first: [4],
    cases.roots_by_both_numbers: [4],
    cases.crossing_messages: [2],
    cases.batch_of_two_of_four: [4],
    cases.waited_in_reverse: [2],
    cases.any_source_of_a_part: [4],
    cases.a_barrier_fewer: [4],
    cases.timeouts: [2],
    cases.late_but_in_time: [2],
    cases.aborted_in_flight: [4],
    cases.one_object_cannot_go: [2],
    cases.coalesced_block: [2],
    cases.threads_and_callbacks: [2],
    cases.chained_waits: [2],
}


@pytest.mark.parametrize(
    ("function", "size"),
    [pytest.param(f, n, id=f"{f.__name__}-{n}") for f, sizes in CASES.items() for n in sizes],
)
def test_case(function, size):
    ranks.team(size).run(function)


@pytest.mark.full
@pytest.mark.parametrize("size", [6, 7, 8])
@pytest.mark.parametrize("function", [cases.one_rounding, cases.odd_worlds])
def test_larger_worlds(function, size):
    ranks.team(size).run(function, seconds=300)


def test_changing_sizes():
    ranks.team(4).run(cases.changing_sizes, 60)


@pytest.mark.full
@pytest.mark.parametrize("size", [4, 8])
def test_many_changing_sizes(size):
    ranks.team(size).run(cases.changing_sizes, 2000, seconds=1200)


def test_random_calls():
    ranks.team(3).run(cases.random_calls, 500)


@pytest.mark.full
@pytest.mark.parametrize("size", [2, 4])
def test_ten_thousand_random_calls(size):
    ranks.team(size).run(cases.random_calls, 10_000, seconds=1200)


# --- ranks that end


def one_dies(context, how):
    """Rank 2 ends; the others say how long it took them to notice, in the call and after it."""
    dist.all_reduce(torch.ones(100))
    if context.rank == 2:
        os._exit(42) if how == "exit" else os.kill(os.getpid(), signal.SIGKILL)
    began = time.monotonic()
    with pytest.raises(dist.DistBackendError, match="2"):
        dist.all_reduce(torch.ones(100))
    seconds = time.monotonic() - began
    with pytest.raises(dist.DistBackendError):
        dist.all_reduce(torch.ones(1))
    return seconds


@pytest.mark.parametrize("how", ["exit", "kill"])
def test_a_rank_dies(how):
    team = ranks.Team(4, {})
    try:
        outcomes = team.attempt(one_dies, how, dies={2})
    finally:
        team.end()
    for rank in (0, 1, 3):
        assert outcomes[rank].error is None, outcomes[rank].trace
        assert outcomes[rank].value < 2.5
