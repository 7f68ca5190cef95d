# SPDX-License-Identifier: BSD-3-Clause
"""Every collective on lazy tensors: values against plain numpy."""

from __future__ import annotations

import functools

import numpy as np
import torch
import torch.distributed as dist
from lazy_run import case, data, lazy, same, step


def every(view, call, count, dtype=np.float32):
    return [data(rank, call, count, dtype) for rank in range(view.size)]


def mine(view, call, count, dtype=np.float32):
    return lazy(data(view.rank, call, count, dtype))


REDUCTIONS = {
    dist.ReduceOp.SUM: np.add,
    dist.ReduceOp.MAX: np.maximum,
    dist.ReduceOp.MIN: np.minimum,
    dist.ReduceOp.PRODUCT: np.multiply,
}


@case
def all_reduce(view):
    for call, (op, fold) in enumerate(REDUCTIONS.items()):
        x = mine(view, call, 6)
        dist.all_reduce(x, op, group=view.group)
        step()
        same(x, functools.reduce(fold, every(view, call, 6)), str(op))


@case
def all_reduce_scaled(view):
    x, y = mine(view, 1, 6), mine(view, 2, 6)
    z, factor = mine(view, 3, 6), torch.tensor(2.0, device="lazy") * 2
    dist.all_reduce(x, dist.ReduceOp.AVG, group=view.group)
    dist.all_reduce(y, dist._make_nccl_premul_sum(0.5), group=view.group)
    dist.all_reduce(z, dist._make_nccl_premul_sum(factor), group=view.group)
    step()
    size = np.float32(view.size)
    same(x, sum(every(view, 1, 6)) / size, "AVG")
    same(y, sum(np.float32(0.5) * a for a in every(view, 2, 6)), "PREMUL_SUM")
    same(z, sum(np.float32(4) * a for a in every(view, 3, 6)), "PREMUL_SUM by a tensor")


@case
def all_reduce_bits(view):
    for op, fold in (
        (dist.ReduceOp.BAND, np.bitwise_and),
        (dist.ReduceOp.BOR, np.bitwise_or),
        (dist.ReduceOp.BXOR, np.bitwise_xor),
    ):
        x = mine(view, 1, 9, np.int32)
        dist.all_reduce(x, op, group=view.group)
        step()
        same(x, functools.reduce(fold, every(view, 1, 9, np.int32)), str(op))


@case
def all_reduce_coalesced(view):
    xs = [mine(view, 1, 4), mine(view, 2, 7)]
    with dist._coalescing_manager(view.group, device=xs[0].device):
        for x in xs:
            dist.all_reduce(x, group=view.group)
    step()
    for call, x in enumerate(xs, 1):
        same(x, sum(every(view, call, x.numel())))


@case
def from_every_root(view):
    for root in range(view.size):
        at = view.world(root)
        x, y = mine(view, root, 5), mine(view, root + 9, 5)
        dist.broadcast(x, at, group=view.group)
        dist.reduce(y, at, group=view.group)
        step()
        same(x, data(root, root, 5), f"broadcast from {root}")
        total = sum(every(view, root + 9, 5))
        same(y, total if view.rank == root else data(view.rank, root + 9, 5), f"reduce to {root}")


@case
def scatter_gather(view):
    for root in range(view.size):
        at, is_root = view.world(root), view.rank == root
        out = torch.zeros(4, device="lazy")
        parts = [lazy(data(rank, root, 4)) for rank in range(view.size)] if is_root else None
        dist.scatter(out, parts, at, group=view.group)
        whole = [torch.zeros(4, device="lazy") for _ in range(view.size)] if is_root else None
        dist.gather(mine(view, 3, 4), whole, at, group=view.group)
        step()
        same(out, data(view.rank, root, 4), "scatter")
        for rank, part in enumerate(whole or []):
            same(part, data(rank, 3, 4), f"gather {rank}")


@case
def all_gather(view):
    counts = [rank + 2 for rank in range(view.size)]
    equal = [torch.full((5,), float("nan"), device="lazy") for _ in counts]
    uneven = [torch.zeros(count, device="lazy") for count in counts]
    dist.all_gather(equal, mine(view, 1, 5), group=view.group)
    dist.all_gather(uneven, mine(view, 2, counts[view.rank]), group=view.group)
    step()
    for rank, count in enumerate(counts):
        same(equal[rank], data(rank, 1, 5))
        same(uneven[rank], data(rank, 2, count), "uneven")


@case
def all_gather_into_tensor(view):
    flat = torch.zeros(view.size * 6, device="lazy")
    stacked = torch.zeros(view.size, 6, device="lazy")
    dist.all_gather_into_tensor(flat, mine(view, 1, 6), group=view.group)
    dist.all_gather_into_tensor(stacked, mine(view, 2, 6), group=view.group)
    step()
    same(flat, np.concatenate(every(view, 1, 6)))
    same(stacked, np.stack(every(view, 2, 6)), "stacked")


@case
def reduce_scatter(view):
    counts = [rank + 1 for rank in range(view.size)]
    out, uneven = torch.zeros(4, device="lazy"), torch.zeros(counts[view.rank], device="lazy")
    dist.reduce_scatter(out, [mine(view, r, 4) for r in range(view.size)], group=view.group)
    parts = [mine(view, r, count) for r, count in enumerate(counts)]
    dist.reduce_scatter(uneven, parts, dist.ReduceOp.MAX, group=view.group)
    flat, stacked = torch.zeros(4, device="lazy"), torch.zeros(3, device="lazy")
    dist.reduce_scatter_tensor(flat, mine(view, 1, 4 * view.size), group=view.group)
    rows = mine(view, 2, 3 * view.size).view(view.size, 3)
    dist.reduce_scatter_tensor(stacked, rows, group=view.group)
    step()
    same(out, sum(every(view, view.rank, 4)), "list")
    wanted = functools.reduce(np.maximum, every(view, view.rank, counts[view.rank]))
    same(uneven, wanted, "uneven")
    same(flat, sum(every(view, 1, 4 * view.size)).reshape(view.size, 4)[view.rank], "flat")
    same(stacked, sum(every(view, 2, 3 * view.size)).reshape(view.size, 3)[view.rank], "stacked")


@case
def all_to_all(view):
    def count(source, target):
        return (source + 2 * target) % 3 + 1

    equal = [torch.zeros(3, device="lazy") for _ in range(view.size)]
    uneven = [torch.zeros(count(r, view.rank), device="lazy") for r in range(view.size)]
    dist.all_to_all(equal, [mine(view, r, 3) for r in range(view.size)], group=view.group)
    parts = [mine(view, r, count(view.rank, r)) for r in range(view.size)]
    dist.all_to_all(uneven, parts, group=view.group)
    step()
    for rank in range(view.size):
        same(equal[rank], data(rank, view.rank, 3))
        same(uneven[rank], data(rank, view.rank, count(rank, view.rank)), "uneven")


@case
def all_to_all_single(view):
    send = [(view.rank + r) % 3 + 1 for r in range(view.size)]
    out, uneven = torch.zeros(2 * view.size, device="lazy"), torch.zeros(sum(send), device="lazy")
    dist.all_to_all_single(out, mine(view, 1, 2 * view.size), group=view.group)
    dist.all_to_all_single(uneven, mine(view, 2, sum(send)), send, send, group=view.group)
    step()
    rows = [a.reshape(view.size, 2)[view.rank] for a in every(view, 1, 2 * view.size)]
    same(out, np.concatenate(rows))
    wanted = []
    for rank in range(view.size):
        counts = [(rank + r) % 3 + 1 for r in range(view.size)]
        before = sum(counts[: view.rank])
        wanted.append(data(rank, 2, sum(counts))[before : before + counts[view.rank]])
    same(uneven, np.concatenate(wanted), "uneven")


def ring(view):
    return view.world((view.rank + 1) % view.size), view.world((view.rank - 1) % view.size)


@case
def send_recv(view):
    right, left = ring(view)
    out = torch.zeros(6, device="lazy")
    if view.rank % 2 == 0:
        dist.send(mine(view, 1, 6), right, group=view.group)
        dist.recv(out, left, group=view.group)
    else:
        dist.recv(out, left, group=view.group)
        dist.send(mine(view, 1, 6), right, group=view.group)
    step()
    same(out, data((view.rank - 1) % view.size, 1, 6))


@case
def isend_irecv(view):
    right, left = ring(view)
    for count in (6, 300_000):
        for between in (False, True):
            out = torch.zeros(count, device="lazy")
            sent = dist.isend(mine(view, 1, count), right, group=view.group)
            received = dist.irecv(out, left, group=view.group)
            if between:
                step()
            sent.wait()
            received.wait()
            plus = out + 1
            step()
            wanted = data((view.rank - 1) % view.size, 1, count)
            same(out, wanted, f"{count}, {between}")
            same(plus, wanted + 1, f"{count}, {between}")


@case
def batched(view):
    right, left = ring(view)
    out, back = torch.zeros(5, device="lazy"), torch.zeros(300_000, device="lazy")
    operations = [
        dist.P2POp(dist.irecv, out, left, group=view.group),
        dist.P2POp(dist.irecv, back, right, group=view.group, tag=3),
        dist.P2POp(dist.isend, mine(view, 1, 5), right, group=view.group),
        dist.P2POp(dist.isend, mine(view, 2, 300_000), left, group=view.group, tag=3),
    ]
    for work in dist.batch_isend_irecv(operations):
        work.wait()
    step()
    same(out, data((view.rank - 1) % view.size, 1, 5))
    same(back, data((view.rank + 1) % view.size, 2, 300_000))


@case
def recv_any(view):
    x = mine(view, 4, 3)
    if view.rank == 0:
        seen = set()
        for _ in range(view.size - 1):
            out = torch.zeros(3, device="lazy")
            source = view.ranks.index(dist.recv(out, group=view.group))
            same(out, data(source, 4, 3) * 2, f"from {source}")
            seen.add(source)
        assert seen == set(range(1, view.size)), seen
    else:
        dist.send(x * 2, view.world(0), group=view.group)
    step()


TYPES = [np.float64, np.float16, np.int8, np.int32, np.int64, np.uint8]


@case
def dtypes(view):
    for dtype in TYPES:
        x, y = mine(view, 1, 5, dtype), mine(view, 2, 5, dtype)
        whole = lazy(np.zeros(5 * view.size, dtype))
        dist.all_reduce(x, group=view.group)
        dist.broadcast(y, view.world(0), group=view.group)
        dist.all_gather_into_tensor(whole, mine(view, 3, 5, dtype), group=view.group)
        step()
        same(x, functools.reduce(np.add, every(view, 1, 5, dtype)), str(dtype))
        same(y, data(0, 2, 5, dtype), str(dtype))
        same(whole, np.concatenate(every(view, 3, 5, dtype)), str(dtype))
    half = mine(view, 1, 5).to(torch.bfloat16)
    flag = lazy(data(view.rank, 1, 5) > 0)
    number = lazy(data(view.rank, 1, 5).astype(np.complex64) * (1 + 2j))
    moved = [x.clone() for x in (half, flag, number)]
    wholes = [torch.zeros(5 * view.size, device="lazy").to(x.dtype) for x in moved]
    for x, y, whole in zip((half, flag, number), moved, wholes, strict=True):
        dist.all_gather_into_tensor(whole, y, group=view.group)
        dist.broadcast(y, view.world(0), group=view.group)
        dist.all_reduce(x, group=view.group)
    step()
    for y, whole in zip(moved, wholes, strict=True):
        rows = [torch.from_numpy(a) for a in every(view, 1, 5)]
        if y.dtype == torch.bool:
            rows = [row > 0 for row in rows]
        elif y.dtype == torch.complex64:
            rows = [row.to(torch.complex64) * (1 + 2j) for row in rows]
        same(y, rows[0].to(y.dtype), f"broadcast {y.dtype}")
        same(whole, torch.cat(rows).to(y.dtype), f"all_gather {y.dtype}")
    same(half, torch.from_numpy(sum(every(view, 1, 5))).to(torch.bfloat16), "bfloat16")
    same(flag, functools.reduce(np.logical_or, [a > 0 for a in every(view, 1, 5)]), "bool")
    wanted = sum(a.astype(np.complex64) * (1 + 2j) for a in every(view, 1, 5))
    same(number, wanted.astype(np.complex64), "complex64")


@case
def unusual_shapes(view):
    for shape in ((), (0,), (0, 3), (1,), (2, 3, 1)):
        x = lazy(data(view.rank, 1, int(np.prod(shape)), np.float32).reshape(shape))
        whole = torch.zeros((view.size, *shape), device="lazy")
        dist.all_reduce(x, group=view.group)
        dist.all_gather_into_tensor(whole, x, group=view.group)
        step()
        wanted = sum(a.reshape(shape) for a in every(view, 1, int(np.prod(shape))))
        same(x, np.asarray(wanted, np.float32), str(shape))
        same(whole, np.stack([np.asarray(wanted, np.float32)] * view.size), str(shape))


@case
def special_values(view):
    row = np.array([np.nan, np.inf, -0.0, 1.0], np.float32)
    x = lazy(row if view.rank == 0 else np.zeros(4, np.float32))
    dist.broadcast(x, view.world(0), group=view.group)
    total = lazy(row if view.rank == 0 else np.ones(4, np.float32))
    dist.all_reduce(total, group=view.group)
    stale = torch.full((4,), float("nan"), device="lazy")
    dist.reduce_scatter_tensor(stale, torch.ones(4 * view.size, device="lazy"), group=view.group)
    step()
    same(x, row)
    assert np.signbit(x.cpu().numpy()[2])
    others = np.float32(view.size - 1)
    same(total, row + others)
    same(stale, np.full(4, view.size, np.float32), "overwritten NaN")


@case
def functional(view):
    import torch.distributed._functional_collectives as funcol

    name, ops = view.group.group_name, torch.ops._c10d_functional
    x = mine(view, 1, 4)
    total = ops.wait_tensor(ops.all_reduce(x, "sum", name))
    whole = funcol.all_gather_tensor(x, 0, view.group)
    part = ops.wait_tensor(
        ops.reduce_scatter_tensor(mine(view, 2, 4 * view.size), "sum", view.size, name)
    )
    first = ops.wait_tensor(ops.broadcast(x, 0, name))
    even = [2] * view.size
    turned = ops.wait_tensor(ops.all_to_all_single(mine(view, 3, 2 * view.size), even, even, name))
    lists = [ops.wait_tensor(t) for t in ops.all_reduce_coalesced([x, x * 2], "max", name)]
    base = mine(view, 4, 6)
    ops.wait_tensor(ops.all_reduce_(base[2:5], "sum", name))
    step()
    same(total, sum(every(view, 1, 4)))
    same(whole + 0, np.concatenate(every(view, 1, 4)))
    same(part, sum(every(view, 2, 4 * view.size)).reshape(view.size, 4)[view.rank])
    same(first, data(0, 1, 4))
    rows = [a.reshape(view.size, 2)[view.rank] for a in every(view, 3, 2 * view.size)]
    same(turned, np.concatenate(rows))
    same(lists[0], functools.reduce(np.maximum, every(view, 1, 4)))
    same(lists[1], functools.reduce(np.maximum, [2 * a for a in every(view, 1, 4)]))
    wanted = data(view.rank, 4, 6)
    wanted[2:5] = sum(every(view, 4, 6))[2:5]
    same(base, wanted, "in place, through a view")
