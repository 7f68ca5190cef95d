# SPDX-License-Identifier: BSD-3-Clause
"""fused_*: groups of ranks with the others helping, lists of tensors, counts, errors."""

import numpy as np
import oracle
import pytest
import ranks
import torch
import torch.distributed as dist

import byway.torch as bt

PAIRS = ((0, 2), (3, 1))  # with gaps and out of order
LOPSIDED = ((1, 3, 0),)  # rank 2 helps
SINGLE = ((2, 1),)
GROUPS = [PAIRS, LOPSIDED, SINGLE, ((0,), (1, 2)), ((3, 2, 1, 0),)]
MESH = "mesh:4@1G,5"
KINDS = ["float32", "bfloat16", "int64"]


def _team():
    return ranks.team(4, BYWAY_TOPOLOGY=MESH)


def _mine(rank, groups):
    for place, each in enumerate(groups):
        if rank in each:
            return place, each, each.index(rank)
    return -1, (), -1


def _data(dtype, rank, call, count):
    return oracle.tensor(dtype, oracle.values(dtype, rank, call, count))


def _blocks(dtype, rank, call, size, count):
    """A rank's data for each rank of its group, one after another."""
    return [oracle.values(dtype, rank, call + 100 * to, count) for to in range(size)]


# --- every collective: values, in and out of place, counts stated and exchanged


def every_collective(context, groups, stated, asynchronous):
    number = 0
    for sizes in ((5,), (40000,), (7, 3000, 1)):  # of the tensors of a list
        for kind in KINDS:
            for op in ("sum", "avg", "max"):
                number += 1
                one_shape(context, groups, stated, asynchronous, sizes, kind, op, number)


def one_shape(context, groups, stated, asynchronous, sizes, kind, op, number):
    place, members, index = _mine(context.rank, groups)
    total = sum(sizes)
    options = {
        "counts": {getattr(torch, kind): [total] * len(groups)} if stated else None,
        "key": number,
        "async_op": asynchronous,
    }
    reduce_op = {"op": getattr(dist.ReduceOp, op.upper())}
    what = f"{groups} {sizes} {kind} {op} rank {context.rank}"

    def call(function, *arguments, **extra):
        work = function(*arguments, **options, **extra)
        assert (work is not None) == asynchronous
        if work is not None:
            work.wait()

    def mine(rank, factor=1):
        """The rank's tensors, as arrays."""
        return [oracle.values(kind, rank, number + i, n * factor) for i, n in enumerate(sizes)]

    def tensors(arrays):
        return [oracle.tensor(kind, array) for array in arrays]

    def empty(factor=1):
        return tensors([np.full(n * factor, 99) for n in sizes])

    def check(actual, expected, name):
        for i, tensor in enumerate(actual):
            oracle.check(tensor, kind, expected(i), f"{name} {what} tensor {i}")

    def summed(i):
        return oracle.reduced(kind, op, [mine(rank)[i] for rank in members])

    helper = place < 0
    # allreduce
    data = [] if helper else tensors(mine(context.rank))
    call(bt.fused_all_reduce, data, groups, **reduce_op)
    check(data, summed, "all_reduce in place")
    data, out = ([], []) if helper else (tensors(mine(context.rank)), empty())
    call(bt.fused_all_reduce, data, groups, out=out, **reduce_op)
    check(out, summed, "all_reduce")
    check(data, lambda i: mine(context.rank)[i], "all_reduce's input")
    # all-gather
    data, out = ([], []) if helper else (tensors(mine(context.rank)), empty(len(members)))
    call(bt.fused_all_gather, data, groups, out=out)
    check(out, lambda i: np.concatenate([mine(r)[i] for r in members]), "all_gather")
    if not helper:
        out = empty(len(members))
        data = [whole[index * n : (index + 1) * n] for whole, n in zip(out, sizes, strict=True)]
        for own, array in zip(data, mine(context.rank), strict=True):
            own.copy_(oracle.tensor(kind, array))
    call(bt.fused_all_gather, data, groups, out=out)
    check(out, lambda i: np.concatenate([mine(r)[i] for r in members]), "all_gather in place")
    # reduce-scatter
    factor = len(members)

    def block(i):
        n = sizes[i]
        whole = [mine(rank, factor)[i][index * n : (index + 1) * n] for rank in members]
        return oracle.reduced(kind, op, whole)

    data, out = ([], []) if helper else (tensors(mine(context.rank, factor)), empty())
    call(bt.fused_reduce_scatter, data, groups, out=out, **reduce_op)
    check(out, block, "reduce_scatter")
    if not helper:
        out = [whole[index * n : (index + 1) * n] for whole, n in zip(data, sizes, strict=True)]
    call(bt.fused_reduce_scatter, data, groups, out=out, **reduce_op)
    check(out, block, "reduce_scatter in place")
    # all-to-all
    data, out = ([], []) if helper else (tensors(mine(context.rank, factor)), empty(factor))
    call(bt.fused_all_to_all, data, groups, out=out)

    def exchanged(i):
        n = sizes[i]
        return np.concatenate(
            [mine(rank, factor)[i][index * n : (index + 1) * n] for rank in members]
        )

    check(out, exchanged, "all_to_all")
    # broadcast and reduce, from and to the last of each group
    roots = [each[-1] for each in groups]
    is_root = not helper and roots[place] == context.rank
    data = [] if helper else tensors(mine(context.rank)) if is_root else empty()
    call(bt.fused_broadcast, data, groups, roots=roots)
    check(data, lambda i: mine(roots[place])[i], "broadcast in place")
    data = tensors(mine(context.rank)) if is_root else []
    out = [] if helper else empty()
    call(bt.fused_broadcast, data, groups, roots=roots, out=out)
    check(out, lambda i: mine(roots[place])[i], "broadcast")
    data = [] if helper else tensors(mine(context.rank))
    call(bt.fused_reduce, data, groups, roots=roots, **reduce_op)
    check(data, summed if is_root else lambda i: mine(context.rank)[i], "reduce in place")
    data, out = ([] if helper else tensors(mine(context.rank))), (empty() if is_root else [])
    call(bt.fused_reduce, data, groups, roots=roots, out=out, **reduce_op)
    check(out, summed, "reduce")
    check(data, lambda i: mine(context.rank)[i], "reduce's input")


@pytest.mark.parametrize("stated", [True, False], ids=["stated", "exchanged"])
@pytest.mark.parametrize("groups", GROUPS, ids=str)
def test_every_collective(groups, stated):
    _team().run(every_collective, groups, stated, groups in (PAIRS, SINGLE))


# --- relay


def relayed_routes(context):
    data = [] if context.rank not in SINGLE[0] else torch.full((1 << 20,), context.rank + 1.0)
    bt.fused_all_reduce(data, SINGLE, counts=[1 << 20])
    if context.rank in SINGLE[0]:
        assert torch.equal(data, torch.full((1 << 20,), 5.0))
    last = bt.recorded_calls()["calls"][-1]
    return last["route"], last["state"]


def test_helpers_carry_data():
    for route, state in _team().run(relayed_routes):
        assert state == "completed"
        assert not route.startswith("direct"), route


# --- counts


def exchanged_once(context):
    place, _, _ = _mine(context.rank, PAIRS)
    counts = (300, 11)  # differ between groups
    tensors = [torch.full((counts[place] // 2 * 2,), float(context.rank))]
    tensors.append(torch.full((counts[place],), context.rank, dtype=torch.int64))
    if place == 1:
        tensors.append(torch.ones(5, dtype=torch.bfloat16))  # the other group has none
    made = []
    for turn in range(3):
        before = bt.recorded_calls()["calls_made"]
        data = [tensor.clone() for tensor in tensors]
        bt.fused_all_reduce(data, PAIRS, op=dist.ReduceOp.AVG, key="weights")
        made.append(bt.recorded_calls()["calls_made"] - before)
        mean = sum(PAIRS[place]) / 2
        assert torch.equal(data[0], torch.full_like(data[0], mean)), (turn, data[0])
        assert torch.equal(data[1], torch.full_like(data[1], int(mean)))
        if place == 1:
            assert torch.equal(data[2], tensors[2])
    return made


def test_counts_are_exchanged_once():
    for made in _team().run(exchanged_once):
        assert made == [made[0], 3, 3], made  # a call for each type
        assert made[0] > 3


def uneven_blocks(context):
    group = (2, 0, 3)
    counts = {2: 7, 0: 0, 3: 1000}
    place, _, index = _mine(context.rank, (group,))
    total = sum(counts.values())
    for stated in (None, [[counts[rank] for rank in group]]):
        data = [] if place < 0 else torch.full((counts[context.rank],), context.rank + 1.0)
        out = [] if place < 0 else torch.zeros(total)
        bt.fused_all_gather(data, [group], counts=stated, out=out)
        if place >= 0:
            parts = [torch.full((counts[r],), r + 1.0) for r in group]
            assert torch.equal(out, torch.cat(parts))
        data = [] if place < 0 else torch.arange(total, dtype=torch.float32) + context.rank
        out = [] if place < 0 else torch.zeros(counts[context.rank])
        bt.fused_reduce_scatter(data, [group], counts=stated, out=out)
        if place >= 0:
            start = sum(counts[r] for r in group[:index])
            whole = torch.arange(total, dtype=torch.float32) * 3 + sum(group)
            assert torch.equal(out, whole[start : start + counts[context.rank]])
    pairs = [[3, 0, 5], [1, 4, 2000], [0, 2, 9]]
    data = [] if place < 0 else torch.full((sum(pairs[index]),), context.rank + 1.0)
    received = [] if place < 0 else [pairs[source][index] for source in range(3)]
    out = [] if place < 0 else torch.zeros(sum(received))
    bt.fused_all_to_all(data, [group], counts=[pairs], out=out)
    if place >= 0:
        parts = [torch.full((n,), r + 1.0) for r, n in zip(group, received, strict=True)]
        assert torch.equal(out, torch.cat(parts))


def test_uneven_blocks():
    _team().run(uneven_blocks)


def nothing_to_move(context):
    for data in ([], [torch.zeros(0)], [torch.zeros(0), torch.zeros(0, 3)]):
        if context.rank not in SINGLE[0]:
            data = []
        bt.fused_all_reduce(data, SINGLE, key=len(data) if context.rank else 9, counts=[0])
        work = bt.fused_all_reduce(data, SINGLE, key="nothing", async_op=True)
        work.wait()
        assert work.is_completed()


def test_empty_lists_do_not_hang():
    _team().run(nothing_to_move)


def odd_layouts(context):
    _, members, _ = _mine(context.rank, PAIRS)
    whole = torch.arange(24, dtype=torch.float32).reshape(4, 6) + context.rank
    views = [whole.t(), whole[:, ::2], torch.tensor(float(context.rank))]
    data = [view.clone(memory_format=torch.preserve_format) for view in views]
    strided = torch.zeros(4, 6)[:, ::2]
    strided.copy_(whole[:, ::2])
    data[1] = strided
    bt.fused_all_reduce(data, PAIRS)
    for tensor, view in zip(data, views, strict=True):
        assert torch.equal(tensor, (view - context.rank) * 2 + sum(members))


def test_odd_layouts():
    _team().run(odd_layouts)


def allocates_nothing(context):
    from torch.profiler import ProfilerActivity, profile

    data = [torch.ones(5000), torch.ones(77, dtype=torch.int64)]
    bt.fused_all_reduce(data, PAIRS, key="allocations")
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as seen:
        bt.fused_all_reduce(data, PAIRS, key="allocations")
    return sum(event.cpu_memory_usage for event in seen.events() if event.cpu_memory_usage > 0)


def test_second_call_allocates_nothing():
    # The profiler takes its time to start.
    assert _team().run(allocates_nothing, seconds=180) == [0, 0, 0, 0]


# --- groups within a process group


def within_a_subgroup(context):
    group = context.group((3, 1, 2))
    if context.rank == 0:
        assert bt.fused_all_reduce([], [(3, 2)], counts=[4], group=group) is None
        return
    data = [] if context.rank == 1 else torch.full((4,), float(context.rank))
    bt.fused_all_reduce(data, [(3, 2)], group=group)
    if context.rank != 1:
        assert torch.equal(data, torch.full((4,), 5.0))


@pytest.mark.parametrize("settings", [{}, {"BYWAY_TOPOLOGY": MESH}], ids=["host", "mesh"])
def test_groups_are_of_global_ranks(settings):
    ranks.team(4, **settings).run(within_a_subgroup)


def routes_of_subgroups(context):
    """BYWAY_TOPOLOGY is the job's: a sub-group has the links among its ranks, and relays."""
    group = context.group((3, 1, 2))
    if context.rank == 0:
        return None
    data = [] if context.rank == 1 else torch.full((1 << 20,), float(context.rank))
    bt.fused_all_reduce(data, [(3, 2)], counts=[1 << 20], group=group)
    if context.rank != 1:
        assert torch.equal(data, torch.full((1 << 20,), 5.0))
    return bt.recorded_calls(group)["calls"][-1]["route"]


def test_subgroups_have_the_links_of_their_ranks():
    helpless, *routes = _team().run(routes_of_subgroups)
    assert helpless is None
    assert not any(route.startswith("direct") for route in routes), routes


# --- errors


def _refused(call, text):
    with pytest.raises(ValueError, match=text):
        call()


def same_mistake_everywhere(context):
    one = torch.ones(4)
    _refused(lambda: bt.fused_all_reduce(one, [(0, 1), (1, 2)], counts=[4, 4]), "disjoint")
    _refused(lambda: bt.fused_all_reduce(one, [(0, 9)], counts=[4]), "name rank 9")
    _refused(lambda: bt.fused_all_reduce(one, [], counts=[]), "groups is empty")
    _refused(lambda: bt.fused_all_reduce(one, [(0, 1, 2, 3)], counts=[4, 4]), "2 counts for 1")
    _refused(lambda: bt.fused_all_reduce(one, [(0, 1, 2, 3)], counts=[5]), "counts ask for 20")
    _refused(lambda: bt.fused_all_reduce(one, [(0, 1, 2, 3)], counts=[-1]), "a count is -1")
    _refused(lambda: bt.fused_all_gather(one, [(0, 1, 2, 3)], counts=[4]), "needs out=")
    _refused(lambda: bt.fused_reduce(one, [(0, 1), (2, 3)], counts=[4, 4], roots=[0, 1]), "root 1")
    everybody = [(0, 1, 2, 3)]
    _refused(lambda: bt.fused_all_to_all(one, everybody, counts=[1], out=one), "in place")
    _refused(
        lambda: bt.fused_all_reduce(one, [(0, 1, 2, 3)], counts=[4], out=torch.ones(4).int()),
        "float32 in tensors",
    )
    with pytest.raises(TypeError, match="a float where a tensor"):
        bt.fused_all_reduce([1.0], [(0, 1, 2, 3)], counts=[4])
    uneven = torch.ones(4 + context.rank)
    _refused(lambda: bt.fused_all_reduce(uneven, [(0, 1, 2, 3)]), "different numbers of elements")
    dist.barrier()


def test_mistakes_of_all_ranks():
    ranks.team(4).run(same_mistake_everywhere)


def one_ranks_mistake(context):
    """Rank 1 only helps, but gives a tensor: it refuses, the others hear of it."""
    count = 1 << 20  # relayed on mesh:4, so that the members cannot end without rank 1
    untouched = torch.full((count,), 7.0)
    mine = untouched if context.rank == 1 else torch.ones(count)
    if context.rank == 1:
        _refused(lambda: bt.fused_all_reduce(mine, [(0, 2, 3)], counts=[count]), "only helps")
        assert torch.equal(untouched, torch.full((count,), 7.0))
        return
    with pytest.raises(dist.DistBackendError, match="only helps"):
        bt.fused_all_reduce(mine, [(0, 2, 3)], counts=[count])


def test_one_ranks_mistake():
    team = ranks.team(4, BYWAY_TOPOLOGY="mesh:4")
    team.run(one_ranks_mistake)
    team.end()


def changed_shape(context):
    bt.fused_all_reduce(torch.ones(4), [(0, 1)])
    size = 5 + context.rank * 0
    _refused(lambda: bt.fused_all_reduce(torch.ones(size), [(0, 1)]), "another key=")
    bt.fused_all_reduce(torch.ones(size), [(0, 1)], key="five")


def test_changed_shape_is_refused():
    ranks.team(2).run(changed_shape)


def other_backend(context):
    _refused(lambda: bt.fused_all_reduce(torch.ones(4), [(0, 1)]), 'is "gloo", not byway')


def test_other_backend():
    ranks.team(2, "gloo").run(other_backend)
