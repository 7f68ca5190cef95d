# SPDX-License-Identifier: BSD-3-Clause
"""Coalesced calls and windows."""

import torch
import torch.distributed as dist
from torch.distributed.distributed_c10d import _coalescing_manager

from ..harness import Program, case


@case
def all_reduce_coalesced(c):
    def fn(x, y):
        a, b = x * 2, y + 1
        dist.all_reduce_coalesced([a, b], group=c.pg)
        return a, b

    return Program(
        fn,
        lambda k: [c.x(k), c.x(k, shape=(2, 3))],
        lambda k: (2 * c.sum(k), sum(t + 1 for t in c.all(k, shape=(2, 3)))),
    )


@case
def all_reduce_coalesced_async(c):
    def fn(x, y):
        future = dist.all_reduce_coalesced([x, y], op=dist.ReduceOp.MAX, group=c.pg, async_op=True)
        future.wait()
        return x + 1

    return Program(
        fn,
        lambda k: [c.x(k), c.x(k, shape=(2, 3))],
        lambda k: c.x(k, c.n - 1) + 1,
        lambda k: [c.x(k, c.n - 1), c.x(k, c.n - 1, shape=(2, 3))],
    )


@case
def all_gather_coalesced(c):
    def fn(x, y):
        outs = [[torch.empty_like(x), torch.empty_like(y)] for _ in range(c.n)]
        dist.all_gather_coalesced(outs, [x, y], group=c.pg)
        return [a.sum() + b for a, b in outs]

    return Program(
        fn,
        lambda k: [c.x(k), c.x(k, shape=(2, 3)) + 1],
        lambda k: [c.x(k, r).sum() + c.x(k, r, shape=(2, 3)) + 1 for r in range(c.n)],
    )


@case
def window(c):
    def fn(x):
        a, b = x * 2, x + 1
        with _coalescing_manager(c.pg):
            dist.all_reduce(a, group=c.pg)
            dist.all_reduce(b, group=c.pg)
        return a, b

    return Program(fn, lambda k: [c.x(k)], lambda k: (2 * c.sum(k), c.sum(k) + c.n))


@case
def window_async(c):
    def fn(x):
        a, b = x * 2, x + 1
        with _coalescing_manager(c.pg, async_ops=True) as cm:
            dist.all_reduce(a, group=c.pg)
            dist.all_reduce(b, group=c.pg)
        z = x * 5
        cm.wait()
        return a, b, z

    return Program(fn, lambda k: [c.x(k)], lambda k: (2 * c.sum(k), c.sum(k) + c.n, 5 * c.x(k)))


@case
def window_gather_and_scatter(c):
    def fn(x):
        a, b = torch.empty(c.n * 4), torch.empty(c.n * 4)
        with _coalescing_manager(c.pg):
            dist.all_gather_into_tensor(a, x, group=c.pg)
            dist.all_gather_into_tensor(b, x + 1, group=c.pg)
        p, q = torch.empty(4), torch.empty(4)
        with _coalescing_manager(c.pg):
            dist.reduce_scatter_tensor(p, a, group=c.pg)
            dist.reduce_scatter_tensor(q, b * 2, group=c.pg)
        return p, q

    return Program(fn, lambda k: [c.x(k)], lambda k: (c.n * c.x(k), 2 * c.n * (c.x(k) + 1)))
