# SPDX-License-Identifier: BSD-3-Clause
"""Several calls in one graph: they run in program order, whatever is computed around them."""

import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as functional

from ..harness import Program, case


@case
def chain(c):
    def fn(x):
        y = x * 1
        dist.all_reduce(y, group=c.pg)
        out = torch.empty(c.n * 4)
        dist.all_gather_into_tensor(out, y + 1, group=c.pg)
        part = torch.empty(4)
        dist.reduce_scatter_tensor(part, out, group=c.pg)
        dist.broadcast(part, group=c.pg, group_src=0)
        return part

    return Program(fn, lambda k: [c.x(k)], lambda k: c.n * (c.sum(k) + 1))


@case
def independent(c):
    """Independent collectives and transfers, with compute that differs by rank."""

    def fn(x):
        a, b, got = x * 1, x + 1, torch.empty_like(x)
        if c.me % 2 == 0:
            a = torch.sin(a) * 0 + x
        dist.all_reduce(a, group=c.pg)
        if c.me == 0:
            dist.send(x, group_dst=1, group=c.pg)
            got = x * 1
        elif c.me == 1:
            b = torch.exp(b * 0) * b
            dist.recv(got, group_src=0, group=c.pg)
        else:
            got = x * 1
        dist.all_reduce(b, op=dist.ReduceOp.MAX, group=c.pg)
        return a, b, got

    return Program(
        fn,
        lambda k: [c.x(k)],
        lambda k: (c.sum(k), c.x(k, c.n - 1) + 1, c.x(k, 0) if c.me == 1 else c.x(k)),
    )


@case
def unused_result(c):
    """Nothing uses what the call computes; the other ranks need it made."""

    def fn(x):
        y = x * 2
        if c.me == 0:
            dist.all_reduce(y, group=c.pg)
            return x + 1
        dist.all_reduce(y, group=c.pg)
        return y

    return Program(fn, lambda k: [c.x(k)], lambda k: c.x(k) + 1 if c.me == 0 else 2 * c.sum(k))


@case
def functional_and_plain(c):
    def fn(x):
        a = functional.all_reduce(x, "sum", c.group)
        b = x + 1
        dist.broadcast(b, group=c.pg, group_src=0)
        gathered = functional.all_gather_tensor(b, 0, c.group)
        y = x * 2
        dist.all_reduce(y, group=c.pg)
        return a, gathered, y

    return Program(
        fn,
        lambda k: [c.x(k)],
        lambda k: (c.sum(k), torch.cat([c.x(k, 0) + 1] * c.n), 2 * c.sum(k)),
    )


@case
def functional_all(c):
    """Every functional collective; first uses by cast, view, slice, in-place call."""

    def fn(x):
        a = functional.all_reduce(x, "max", c.group).to(torch.float64)
        b = functional.all_gather_tensor(x, 0, c.group).view(c.n, -1)
        s = functional.reduce_scatter_tensor(b, "sum", 0, c.group)[0]
        t = functional.all_to_all_single(b * 1, [1] * c.n, [1] * c.n, c.group)
        u = functional.broadcast(x, 1, c.group)
        u.add_(1)
        v, w = functional.all_reduce_coalesced([x, x * 2], "sum", c.group)
        p, q = functional.all_gather_into_tensor_coalesced([x, x + 1], c.group)
        f, g = functional.reduce_scatter_tensor_coalesced([p, q], "sum", [0, 0], c.group)
        return a, b, s, t, u, v, w, p, q, f, g

    def out(k):
        every, total = torch.stack(c.all(k)), c.sum(k)
        return (
            c.x(k, c.n - 1).double(),
            every,
            c.n * c.x(k),
            c.x(k).repeat(c.n, 1),
            c.x(k, 1) + 1,
            total,
            2 * total,
            every.reshape(-1),
            every.reshape(-1) + 1,
            c.n * c.x(k),
            c.n * (c.x(k) + 1),
        )

    return Program(fn, lambda k: [c.x(k)], out)


@case
def functional_complex(c):
    """Functional collectives on complex numbers, between plain ones, and beside real ones."""

    def fn(x):
        z = torch.complex(x, x + 2)
        dist.broadcast(x, group=c.pg, group_src=1)
        a = functional.all_reduce(z.conj(), "sum", c.group)
        b = functional.all_gather_tensor(z, 0, c.group)
        s = functional.all_reduce(z[1], "avg", c.group)
        d = functional.reduce_scatter_tensor(b * 1, "sum", 0, c.group)
        t = functional.all_to_all_single(b * 1, [4] * c.n, [4] * c.n, c.group)
        v, w = functional.all_reduce_coalesced([z * 2, x * 1], "sum", c.group)
        dist.all_reduce(x, group=c.pg)
        return a, b, s, d, t, v, w

    def numbers(k, r):
        return torch.complex(c.x(k, r), c.x(k, r) + 2)

    def out(k):
        every = [numbers(k, r) for r in range(c.n)]
        return (
            sum(every).conj().resolve_conj(),
            torch.cat(every),
            sum(every)[1] / c.n,
            c.n * every[c.me],
            every[c.me].repeat(c.n),
            2 * sum(every),
            c.n * c.x(k, 1),
        )

    return Program(fn, lambda k: [c.x(k)], out, lambda k: [c.n * c.x(k, 1)])


@case
def five_independent(c):
    def fn(x):
        ys = [x * (i + 1) for i in range(5)]
        for y in ys:
            dist.all_reduce(y, group=c.pg)
        return ys

    return Program(fn, lambda k: [c.x(k)], lambda k: [c.sum(k) * (i + 1) for i in range(5)])
