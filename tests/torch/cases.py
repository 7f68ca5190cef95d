# SPDX-License-Identifier: BSD-3-Clause
"""What test_cases.py runs in the ranks: kinds of faults that users met elsewhere, one for each.

A function whose call must fail does it in a group of its own, since a failure breaks the group.
"""

import contextlib
import functools
import itertools
import threading
import time
from datetime import timedelta

import numpy as np
import pytest
import torch
import torch.distributed as dist


@contextlib.contextmanager
def own_group(context, members=None, seconds=60.0, **options):
    members = members or list(range(context.size))
    group = dist.new_group(members, timeout=timedelta(seconds=seconds), **options)
    try:
        yield group
    finally:
        if context.rank in members:
            dist.destroy_process_group(group)


def per_rank(context, values):
    return values[context.rank]


# --- layouts


def strided_views(context):
    """Every second column of a base of -5: the view is right, the rest untouched."""

    def view(first, second):
        base = torch.full((2, 3), -5, dtype=torch.int64)
        base[:, 1] = torch.tensor([first, second])
        return base, base[:, 1]

    mine = (3 * context.rank + 2, 40 * context.rank + 7)
    base, column = view(*mine)
    dist.broadcast(column, 1)
    assert column.tolist() == [5, 47]
    assert base[:, 0].tolist() == base[:, 2].tolist() == [-5, -5]
    base, column = view(*mine)
    dist.reduce(column, 0)
    assert column.tolist() == ([7, 54] if context.rank == 0 else list(mine))
    assert base[:, 0].tolist() == [-5, -5]
    received = torch.zeros(4, dtype=torch.int64)
    parts = [torch.arange(8)[r::2] * 11 for r in range(2)] if context.rank == 0 else None
    dist.scatter(received, parts, 0)
    assert received.tolist() == [11 * (context.rank + 2 * i) for i in range(4)]


def channels_last(context):
    def values(rank):
        return (torch.arange(24.0) * 3 + 100 * rank).reshape(2, 3, 2, 2)

    mine = values(context.rank).contiguous(memory_format=torch.channels_last)
    for like in (mine, values(0)):
        outputs = [torch.zeros_like(like) for _ in range(context.size)]
        dist.all_gather(outputs, mine)
        for rank, output in enumerate(outputs):
            assert torch.equal(output, values(rank))
    dist.broadcast(mine, 1)
    assert torch.equal(mine, values(1))


def reduce_leaves_inputs(context):
    for root, count in itertools.product(range(context.size), (1, 4, 7, 1001)):
        mine = torch.arange(count) * (context.rank + 1) + root
        kept = mine.clone()
        dist.reduce(mine, root)
        if context.rank == root:
            total = sum(range(1, context.size + 1))
            assert torch.equal(mine, torch.arange(count) * total + root * context.size)
        else:
            assert torch.equal(mine, kept)


def gather_into_itself(context):
    rank = context.rank
    output = torch.full((9,), -1.0)
    output[3 * rank : 3 * rank + 3] = torch.tensor([1.0, 2.0, 3.0]) * (rank + 1)
    dist.all_gather_into_tensor(output, output[3 * rank : 3 * rank + 3])
    assert output.tolist() == [1, 2, 3, 2, 4, 6, 3, 6, 9]
    with pytest.raises(ValueError, match=r"overlap|in place"):
        dist.all_gather_into_tensor(output, output[1:4])
    with pytest.raises(ValueError, match="elements"):
        dist.all_gather_into_tensor(output, output)
    dist.barrier()


# --- arithmetic


def averages(context):
    x = torch.full((7,), 2.0 * context.rank + 1)
    dist.all_reduce(x, dist.ReduceOp.AVG)
    assert x.tolist() == [float(context.size)] * 7
    y = torch.tensor([-3, 3, 9 + context.rank], dtype=torch.int32)
    if context.rank == 0:
        y[:2] += torch.tensor([-1, 1], dtype=torch.int32)  # sums -7 and 7 of two ranks
    dist.all_reduce(y, dist.ReduceOp.AVG)
    if context.size == 2:
        assert y.tolist() == [-3, 3, 9]  # towards zero (docs/reductions.md)
    z = torch.full((context.size,), 8, dtype=torch.int32)
    z = torch.stack([z, z + 1]).t().contiguous()
    part = torch.zeros(2, dtype=torch.int32)
    dist.reduce_scatter_tensor(part, z.flatten(), dist.ReduceOp.AVG)
    assert part.tolist() == [8, 9]


def bitwise(context):
    numbers = [0b1100, 0b1010, 0b0111][: context.size]
    expected = {
        "BAND": np.bitwise_and.reduce(numbers),
        "BOR": np.bitwise_or.reduce(numbers),
        "BXOR": np.bitwise_xor.reduce(numbers),
    }
    for name, value in expected.items():
        op = getattr(dist.ReduceOp, name)
        x = torch.full((5,), numbers[context.rank], dtype=torch.int32)
        dist.all_reduce(x, op)
        assert x.tolist() == [value] * 5
        with pytest.raises(ValueError, match="bitwise"):
            dist.all_reduce(torch.ones(2), op)


def nan_wins(context):
    nan = float("nan")
    for kind in (torch.float16, torch.bfloat16, torch.float32, torch.float64):
        for op in (dist.ReduceOp.MIN, dist.ReduceOp.MAX):
            for order in itertools.permutations([nan, 2.0, 5.0, -1.0][: context.size]):
                x = torch.full((19,), order[context.rank], dtype=kind)
                dist.all_reduce(x, op)
                assert x.isnan().all(), (kind, op, order)
            x = torch.tensor([4.0, nan if context.rank == 1 else 1.0, 6.0], dtype=kind)
            dist.all_reduce(x, op)
            assert x[0] == 4
            assert x[1].isnan()
            assert x[2] == 6


def unsigned_extremes(context):
    for kind in (torch.uint8, torch.uint16, torch.uint32, torch.uint64):
        most = 2 ** (8 * kind.itemsize) - 1
        for count in (1, 33):
            mine = [0, most] if context.rank == 0 else [most, 0]
            for op, value in ((dist.ReduceOp.MIN, 0), (dist.ReduceOp.MAX, most)):
                x = torch.tensor(mine * count, dtype=kind)
                dist.all_reduce(x, op)
                assert x.tolist() == [value] * (2 * count)
                y = torch.tensor(mine * count, dtype=kind)
                dist.reduce(y, 0, op)
                assert y.tolist() == ([value] if context.rank == 0 else mine) * (
                    2 * count if context.rank == 0 else count
                )


def half_sums(context):
    pairs = [(2048, 1), (2050, 1), (65504, 15), (65504, 16), (2**-24, 2**-24)]
    random = np.random.default_rng(31)
    draws = random.uniform(-65504, 65504, (2, 200_003)).astype(np.float16)
    both = np.concatenate([np.array(pairs, np.float16).T, draws], axis=1)
    x = torch.from_numpy(both[context.rank].copy())
    dist.all_reduce(x)
    with np.errstate(over="ignore"):
        expected = (both[0].astype(np.float32) + both[1].astype(np.float32)).astype(np.float16)
    assert np.array_equal(x.numpy().view(np.uint16), expected.view(np.uint16))
    assert x[:5].tolist() == [2048, 2052, 65504, float("inf"), 2**-23]


def one_rounding(context):
    """256 + 7 x 1 in bfloat16: 264 by one rounding, whoever holds the large number."""
    for holder in range(context.size):
        mine = 256.0 if context.rank == holder else 1.0
        exact = torch.tensor(256.0 + context.size - 1).bfloat16()
        x = torch.full((3 * context.size,), mine, dtype=torch.bfloat16)
        dist.all_reduce(x)
        assert torch.equal(x, exact.expand_as(x))
        x = torch.full((3 * context.size,), mine, dtype=torch.bfloat16)
        part = torch.zeros(3, dtype=torch.bfloat16)
        dist.reduce_scatter_tensor(part, x)
        assert torch.equal(part, exact.expand_as(part))


def complex_numbers(context):
    group = dist.group.WORLD
    mine = torch.tensor([per_rank(context, [2 + 1j, 1 + 5j])] * 3, dtype=torch.complex64)
    x = mine.clone()
    dist.all_reduce(x)
    assert x.tolist() == [3 + 6j] * 3
    with pytest.raises(RuntimeError, match="conj"):  # torch's, before any backend is asked
        dist.all_reduce(mine.conj())
    part = torch.zeros(3, dtype=torch.complex64)
    group.reduce_scatter([part], [[mine.conj(), mine.conj()]]).wait()
    assert part.tolist() == [3 - 6j] * 3
    options = dist.AllreduceOptions()
    options.reduceOp = dist.ReduceOp.PRODUCT
    x = mine.clone()
    group.allreduce([x], options).wait()
    assert x.tolist() == [(2 + 1j) * (1 + 5j)] * 3
    for op in (dist.ReduceOp.MAX, dist.ReduceOp.MIN, dist.ReduceOp.BXOR):
        with pytest.raises((ValueError, RuntimeError)):
            dist.all_reduce(mine.clone(), op)
        for call in (
            lambda op=op: dist.reduce(mine.clone(), 0, op),
            lambda op=op: dist.reduce_scatter(torch.zeros_like(mine), [mine, mine], op),
        ):
            with pytest.raises((ValueError, RuntimeError)):
                call()
    dist.barrier()


MOVED = [
    "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16",
    "bfloat16", "float32", "float64", "complex64", "complex128", "float8_e4m3fn", "float8_e5m2",
    "float8_e4m3fnuz", "float8_e5m2fnuz", "float8_e8m0fnu",
]  # fmt: skip


def every_type_moves(context):
    """All bytes of every type, through every call that only moves."""
    rank, size = context.rank, context.size
    for name in MOVED:
        kind = getattr(torch, name)

        def pattern(owner, kind=kind):
            raw = (torch.arange(256) * 5 + 31 * owner).to(torch.uint8)
            return (raw % 2).bool() if kind == torch.bool else raw.view(kind)

        def same(got, owner, pattern=pattern, name=name):
            assert torch.equal(got.view(torch.uint8), pattern(owner).view(torch.uint8)), name

        def empty(kind=kind):
            return torch.zeros(256 // kind.itemsize * kind.itemsize, dtype=torch.uint8).view(kind)

        mine = pattern(rank)
        x = mine.clone() if rank == 1 else empty()
        dist.group.WORLD.broadcast(x, 1).wait()
        same(x, 1)
        outputs = [empty() for _ in range(size)]
        dist.group.WORLD.allgather([outputs], [mine]).wait()
        for owner, got in enumerate(outputs):
            same(got, owner)
        swapped = [empty() for _ in range(size)]
        dist.group.WORLD.alltoall(swapped, [pattern(rank + 7 * r) for r in range(size)]).wait()
        for owner, got in enumerate(swapped):
            same(got, owner + 7 * rank)
        if rank == 0:
            dist.group.WORLD.send([mine], 1, 3).wait()
        elif rank == 1:
            got = empty()
            dist.group.WORLD.recv([got], 0, 3).wait()
            same(got, 0)
    ones = torch.ones(64, dtype=torch.float8_e4m3fn)
    dist.all_reduce(ones)
    assert ones.float().tolist() == [float(size)] * 64


# --- sizes


def some_send_nothing(context):
    size, rank = context.size, context.rank
    splits = [r + 1 for r in range(size)] if rank == 0 else [0] * size
    for call in range(100):
        mine = torch.arange(sum(splits)) + call
        received = torch.zeros(rank + 1, dtype=torch.int64)
        dist.all_to_all_single(received, mine, [rank + 1] + [0] * (size - 1), splits)
        start = rank * (rank + 1) // 2
        assert received.tolist() == [start + i + call for i in range(rank + 1)]


def receive_of_another_size(context):
    for count, batched in itertools.product((4, 5, 2), (False, True)):
        with own_group(context, seconds=5) as group:
            x = torch.ones(3) if context.rank == 0 else torch.zeros(count)
            peer = 1 - context.rank
            with pytest.raises(RuntimeError) as caught:  # noqa: PT012
                if batched:
                    call = dist.isend if context.rank == 0 else dist.irecv
                    for work in dist.batch_isend_irecv([dist.P2POp(call, x, peer, group)]):
                        work.wait()
                elif context.rank == 0:
                    dist.send(x, peer, group)
                else:
                    dist.recv(x, peer, group)
                if context.rank == 0:  # a short message may have left before it was refused
                    dist.barrier(group)
                    raise AssertionError("a barrier of a broken group")
            if context.rank == 1:
                assert "12" in str(caught.value)
                assert str(4 * count) in str(caught.value)


def other_calls_on_other_ranks(context):
    def odd_size(group):
        dist.all_reduce(torch.ones(409600 if context.rank == 0 else 409598), group=group)

    def tiny(group):
        dist.all_reduce(torch.ones(1 if context.rank == 0 else 2), group=group)

    def other_operation(group):
        x = torch.ones(8)
        if context.rank == 0:
            dist.all_reduce(x, group=group)
        else:
            dist.broadcast(x, 1, group=group)

    for call in (odd_size, tiny, other_operation):
        with own_group(context, seconds=10) as group:
            with pytest.raises(dist.DistBackendError) as caught:  # noqa: PT012
                call(group)
                dist.barrier(group)  # whose own part was over
            assert f"on rank {context.rank} of {context.size}" in str(caught.value)
            with pytest.raises(dist.DistBackendError):
                dist.all_reduce(torch.ones(1), group=group)


def uneven_reduce_scatter(context):
    lists = [torch.full((1,), 7.0 + context.rank), torch.arange(3.0) * (context.rank + 1)]
    mine = torch.zeros(1 if context.rank == 0 else 3)
    dist.reduce_scatter(mine, lists)
    assert mine.tolist() == ([15.0] if context.rank == 0 else [0.0, 3.0, 6.0])
    halves = [torch.arange(1, 7), torch.arange(11, 17)]
    out = torch.zeros(6, dtype=torch.int64)
    dist.reduce_scatter(out, halves)
    assert out.tolist() == [2 * x for x in halves[context.rank].tolist()]


def odd_worlds(context):
    size = context.size
    for root, count in itertools.product(range(size), (1, size - 1, size, size + 1, 100_003)):
        x = torch.arange(count) * (3 if context.rank == root else 0)
        dist.broadcast(x, root)
        assert torch.equal(x, torch.arange(count) * 3)
    outputs = [torch.zeros(5, dtype=torch.int64) for _ in range(size)]
    dist.all_gather(outputs, torch.arange(5) + 1000 * context.rank)
    for rank, got in enumerate(outputs):
        assert torch.equal(got, torch.arange(5) + 1000 * rank)
    x = torch.full((size + 1,), float(context.rank))
    dist.all_reduce(x, dist.ReduceOp.AVG)
    assert torch.allclose(x, torch.full((size + 1,), (size - 1) / 2))
    entered = [torch.zeros(1, dtype=torch.float64) for _ in range(size)]
    for late in range(size):
        if context.rank == late:
            time.sleep(0.2)
        at = time.monotonic()
        dist.barrier()
        left = time.monotonic()
        dist.all_gather(entered, torch.tensor([at], dtype=torch.float64))
        assert left >= max(t.item() for t in entered)  # one clock: processes of one host


def changing_sizes(context, calls):
    sizes = itertools.cycle([1, 65_537, 3, 262_144, 64, 1_000_003])
    for call, count in zip(range(calls), sizes, strict=False):
        x = torch.arange(count) % 97 * (context.rank + 1) + call
        dist.all_reduce(x)
        total = sum(range(1, context.size + 1))
        assert torch.equal(x, torch.arange(count) % 97 * total + call * context.size)


# --- groups


def sub_group_first(context):
    """A part of the ranks, then all, then another part; and once more with the same names."""
    for _ in range(2):
        for members in ([0, 1], [0, 1, 2, 3], [1, 2, 3]):
            with own_group(context, members) as group:
                if context.rank in members:
                    x = torch.tensor([1 << context.rank])
                    dist.all_reduce(x, group=group)
                    assert int(x) == sum(1 << member for member in members)


def roots_by_both_numbers(context):
    with own_group(context, [2, 3]) as group:
        if context.rank in (2, 3):
            for named in ({"group_src": 0}, {"src": 2}):
                x = torch.tensor([context.rank * 10.0])
                dist.broadcast(x, group=group, **named)
                assert x.item() == 20
            with pytest.raises(ValueError, match="0"):
                dist.broadcast(torch.ones(1), src=0, group=group)
            dist.barrier(group)
    with own_group(context, [3, 1], sort_ranks=False) as group:
        if context.rank in (1, 3):
            got = [torch.zeros(1) for _ in range(2)]
            dist.all_gather(got, torch.tensor([float(context.rank)]), group=group)
            assert [t.item() for t in got] == [3, 1]
            x = torch.zeros(1)
            parts = [torch.tensor([30.0]), torch.tensor([10.0])] if context.rank == 3 else None
            dist.scatter(x, parts, src=3, group=group)
            assert x.item() == 10 * context.rank


# --- messages


def crossing_messages(context):
    first, peer = context.rank == 0, 1 - context.rank

    def out(number):
        return dist.isend(torch.full((6,), float(number + 10 * context.rank)), peer)

    def into():
        x = torch.zeros(6)
        return x, dist.irecv(x, peer)

    if first:
        out(1).wait()
        a, w1 = into()
        w2 = out(2)
        b, w3 = into()
        works = [w1, w2, w3]
    else:
        a, w1 = into()
        w1.wait()
        b, w2 = into()
        works = [w2, out(1), out(2)]
    for work in works:
        work.wait()
    assert [a[0].item(), b[0].item()] == ([11, 12] if first else [1, 2])
    big = torch.full((4 << 20,), float(context.rank + 1))
    got = torch.zeros(4 << 20)
    works = [dist.isend(big, peer), dist.irecv(got, peer)]
    for work in works:
        work.wait()
    assert (got == peer + 1).all()


def batch_of_two_of_four(context):
    """The first calls of a group: two of four exchange, then all by distance."""
    with own_group(context) as group:
        rank, size = context.rank, context.size
        if rank < 2:
            got = torch.zeros(3)
            batch = [
                dist.P2POp(dist.isend, torch.full((3,), rank + 1.0), 1 - rank, group),
                dist.P2POp(dist.irecv, got, 1 - rank, group),
            ]
            for work in dist.batch_isend_irecv(batch):
                work.wait()
            assert got.tolist() == [2.0 - rank] * 3
        for distance in (1, 2, 3):
            got = torch.zeros(4)
            batch = [
                dist.P2POp(dist.irecv, got, (rank - distance) % size, group),
                dist.P2POp(
                    dist.isend, torch.full((4,), float(rank)), (rank + distance) % size, group
                ),
            ]
            for work in dist.batch_isend_irecv(batch):
                work.wait()
            assert got.tolist() == [(rank - distance) % size] * 4
        x = torch.ones(1)
        dist.all_reduce(x, group=group)
        assert x.item() == size


def waited_in_reverse(context):
    if context.rank == 0:
        for value in (1.0, 2.0):
            dist.isend(torch.full((20_000,), value), 1, tag=4)
    else:
        a, b = torch.zeros(20_000), torch.zeros(20_000)
        first, second = dist.irecv(a, 0, tag=4), dist.irecv(b, 0, tag=4)
        second.wait()
        first.wait()
        assert (a == 1).all()
        assert (b == 2).all()
    dist.barrier()


def any_source_of_a_part(context):
    members = [1, 2, 3]
    with own_group(context, members) as group:
        if context.rank in (2, 3):
            for _ in range(2):
                dist.send(torch.full((2,), float(context.rank)), 1, group)
        if context.rank == 1:
            seen = []
            for _ in range(4):
                x = torch.zeros(2)
                source = dist.recv(x, group=group)
                assert x.tolist() == [source] * 2  # a global rank
                seen.append(source)
            assert sorted(seen) == [2, 2, 3, 3]


# --- failures


def a_barrier_fewer(context):
    with own_group(context, seconds=2) as group:
        dist.barrier(group)
        if context.rank == 3:
            time.sleep(4)
            return
        with pytest.raises(dist.DistBackendError, match="rank 3"):
            dist.barrier(group)


OPERATIONS = {
    "all_reduce": lambda g, x: dist.all_reduce(x, group=g),
    "broadcast": lambda g, x: dist.broadcast(x, 1, group=g),
    "all_gather": lambda g, x: dist.all_gather([torch.zeros(4), torch.zeros(4)], x, group=g),
    "reduce_scatter": lambda g, x: dist.reduce_scatter(torch.zeros(4), [x, x], group=g),
    "all_to_all": lambda g, x: dist.all_to_all_single(torch.zeros(4), x, group=g),
    "barrier": lambda g, x: dist.barrier(g),
}


def timeouts(context):
    """Set later, and of one call; each is kept to."""
    late = context.rank == 1
    for name, call in OPERATIONS.items():
        with own_group(context) as group:
            dist.distributed_c10d._set_pg_timeout(timedelta(seconds=1), group)
            if not late:
                began = time.monotonic()
                with pytest.raises(dist.DistBackendError, match="Timed out"):
                    call(group, torch.ones(4))
                assert 0.9 < time.monotonic() - began < 3, name
            dist.barrier()  # who is late stays in the group until then
    with own_group(context) as group:
        if not late:
            began = time.monotonic()
            options = dist.AllreduceOptions()
            options.timeout = timedelta(seconds=0.3)
            with pytest.raises(dist.DistBackendError, match="Timed out"):
                group.allreduce([torch.ones(4)], options).wait()
            assert 0.25 < time.monotonic() - began < 2
        dist.barrier()


def late_but_in_time(context):
    for call in OPERATIONS.values():
        if context.rank == 1:
            time.sleep(0.4)
        call(None, torch.ones(4))


def aborted_in_flight(context):
    """Rank 2 stays away; the others abort from a thread, destroy, and go on without it."""
    others = [r for r in range(context.size) if r != 2]
    group = dist.new_group(timeout=timedelta(seconds=60))
    if context.rank != 2:
        work = dist.all_reduce(torch.ones(1000), group=group, async_op=True)
        threading.Timer(0.3, group.abort).start()
        ended = []
        with pytest.raises(dist.DistBackendError, match="abort"):  # noqa: PT012
            try:
                work.wait()
            finally:
                ended.append(True)
        assert ended
    dist.barrier()
    began = time.monotonic()
    dist.destroy_process_group(group)
    assert time.monotonic() - began < 11
    with own_group(context, others) as smaller:
        if context.rank != 2:
            x = torch.ones(1)
            dist.all_reduce(x, group=smaller)
            assert x.item() == len(others)
    dist.barrier()


class Unpicklable:
    def __reduce__(self):
        raise TypeError("this object stays here")


def one_object_cannot_go(context):
    with own_group(context, seconds=2) as group:
        everything = [None] * context.size
        mine = Unpicklable() if context.rank == 0 else "fine"
        expected = TypeError if context.rank == 0 else dist.DistBackendError
        with pytest.raises(expected):
            dist.all_gather_object(everything, mine, group=group)
        if context.rank == 0:
            with pytest.raises(dist.DistBackendError):  # noqa: PT012
                dist.all_reduce(torch.ones(1), group=group)
                dist.barrier(group)


def coalesced_block(context):
    rank = context.rank
    a, b = torch.full((3,), rank + 1.0), torch.full((2,), 10.0 * (rank + 1))
    with dist.distributed_c10d._coalescing_manager(async_ops=True) as block:
        dist.all_reduce(a)
        dist.all_reduce(b)
        if rank == 1:
            time.sleep(0.3)
    block.wait()
    assert a.tolist() == [3] * 3
    assert b.tolist() == [30] * 2
    group, cpu = dist.group.WORLD, torch.device("cpu")
    a, b = torch.full((3,), rank + 1.0), torch.full((2,), 10.0 * (rank + 1))
    c, d = torch.tensor([rank + 4]), torch.tensor([rank + 4.0], dtype=torch.float64)
    group._start_coalescing(cpu)
    dist.reduce(a, 0)
    dist.reduce(b, 1)
    dist.all_reduce(c, dist.ReduceOp.MAX)
    dist.all_reduce(d)
    group._end_coalescing(cpu).wait()
    assert a.tolist() == ([3.0] if rank == 0 else [2.0]) * 3
    assert b.tolist() == ([30.0] if rank == 1 else [10.0]) * 2
    assert (c.item(), d.item()) == (5, 9)


def threads_and_callbacks(context):
    """Four threads on groups of their own, whose callbacks make further calls; a fifth counts."""
    groups = [dist.new_group() for _ in range(4)]
    counted, stop, wrong = [0], threading.Event(), []

    def count():
        while not stop.is_set():
            counted[0] += 1
            time.sleep(0.001)

    def work_on(index):
        try:
            for call in range(10):
                x = torch.full((100,), float(context.rank + index + call))
                y = torch.ones(5) * call
                done = threading.Event()

                def again(_, index=index, y=y, done=done):
                    inner = dist.all_reduce(y, group=groups[index], async_op=True)
                    inner.get_future().add_done_callback(lambda _: done.set())

                if context.rank == 1 and call == 0:
                    time.sleep(0.5)
                dist.all_reduce(x, group=groups[index], async_op=True).get_future().then(again)
                assert done.wait(20)
                assert x[0] == 2 * (index + call) + 1
                assert y[0] == 2 * call
        except BaseException as error:
            wrong.append(error)

    threads = [threading.Thread(target=work_on, args=(i,)) for i in range(4)]
    counter = threading.Thread(target=count)
    counter.start()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    stop.set()
    counter.join()
    assert not wrong, wrong
    assert counted[0] > 20
    for group in groups:
        dist.destroy_process_group(group)


def chained_waits(context):
    """A callback waits for the future of a call of its own, three deep, and for one before it."""

    def then(depth, _):
        y = torch.full((5,), float(depth + context.rank))
        call = dist.all_reduce(y, async_op=True).get_future()
        if depth < 3:
            call = call.then(functools.partial(then, depth + 1))
        call.wait()
        return y

    for call in range(20):
        big = torch.full((200_000,), float(call + context.rank))
        small = torch.ones(7)
        before = dist.all_reduce(small, async_op=True).get_future()
        future = dist.all_reduce(big, async_op=True).get_future()
        waited = future.then(lambda done, before=before: (before.wait(), done.value()[0])[1])
        chained = future.then(functools.partial(then, 1))
        assert torch.equal(waited.wait(), torch.full((200_000,), 2.0 * call + 1))
        assert torch.equal(chained.wait(), torch.full((5,), 3.0))
        assert small.tolist() == [2.0] * 7


def random_calls(context, calls):
    """Mixed calls with delays that differ by rank, everything compared."""
    order, delay = np.random.default_rng(5), np.random.default_rng(100 + context.rank)
    size, rank = context.size, context.rank
    open_works = []
    for call in range(calls):
        kind, count = order.integers(5), int(order.integers(1, 3000))
        root = int(order.integers(size))
        if delay.random() < 0.02:
            time.sleep(delay.random() * 0.01)
        base = torch.arange(count) + call
        if kind == 0:
            x = base * (rank + 1)
            work, expected = dist.all_reduce(x, async_op=True), base * sum(range(1, size + 1))
        elif kind == 1:
            x = base * (rank == root)
            work, expected = dist.broadcast(x, root, async_op=True), base
        elif kind == 2:
            x = torch.zeros(count * size, dtype=torch.int64)
            work = dist.all_gather_into_tensor(x, base + rank, async_op=True)
            expected = torch.cat([base + r for r in range(size)])
        elif kind == 3:
            x = torch.zeros(count, dtype=torch.int64)
            whole = torch.cat([base * (r + 1) + rank for r in range(size)])
            work = dist.reduce_scatter_tensor(x, whole, async_op=True)
            expected = base * (rank + 1) * size + sum(range(size))
        else:
            x = torch.zeros(count * size, dtype=torch.int64)
            whole = torch.cat([base + 10 * rank + r for r in range(size)])
            work = dist.all_to_all_single(x, whole, async_op=True)
            expected = torch.cat([base + 10 * r + rank for r in range(size)])
        open_works.append((work, x, expected))
        if len(open_works) > 8 or call == calls - 1:
            for work, got, right in reversed(open_works):
                work.wait()
                assert torch.equal(got, right), call
            open_works = []
