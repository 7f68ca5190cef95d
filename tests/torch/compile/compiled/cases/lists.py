# SPDX-License-Identifier: BSD-3-Clause
"""Collectives on lists of tensors."""

import torch
import torch.distributed as dist

from ..harness import Program, case


@case
def all_gather_list(c):
    def fn(x):
        outs = [torch.empty_like(x) for _ in range(c.n)]
        dist.all_gather(outs, x * 2, group=c.pg)
        return [o + 1 for o in outs]

    return Program(fn, lambda k: [c.x(k)], lambda k: [2 * x + 1 for x in c.all(k)])


@case
def all_gather_list_inputs(c):
    """The outputs are arguments."""

    def fn(x, outs):
        dist.all_gather(outs, x, group=c.pg)
        return outs[0] + outs[-1]

    return Program(
        fn,
        lambda k: [c.x(k), [torch.zeros(4) for _ in range(c.n)]],
        lambda k: c.x(k, 0) + c.x(k, c.n - 1),
        lambda k: [c.x(k), c.all(k)],
    )


@case
def all_gather_list_uneven(c):
    def fn(x):
        outs = [torch.empty(r + 2) for r in range(c.n)]
        dist.all_gather(outs, x, group=c.pg)
        return torch.cat(outs) + 1

    def out(k):
        return torch.cat([c.x(k, r, shape=(r + 2,)) for r in range(c.n)]) + 1

    return Program(fn, lambda k: [c.x(k, shape=(c.me + 2,))], out)


@case
def all_gather_list_views(c):
    """The outputs are chunks of one tensor."""

    def fn(x):
        whole = torch.empty(c.n * 4)
        dist.all_gather(list(whole.chunk(c.n)), x, group=c.pg)
        return whole + 1

    return Program(fn, lambda k: [c.x(k)], lambda k: torch.cat(c.all(k)) + 1)


def _column(c, k, how):
    return how(torch.stack([c.x(k, r, shape=(c.n, 4))[c.me] for r in range(c.n)]))


@case
def reduce_scatter_list(c):
    def fn(x):
        out = torch.empty(4)
        dist.reduce_scatter(out, [t * 1 for t in x.unbind()], group=c.pg)
        return out + 1

    return Program(
        fn, lambda k: [c.x(k, shape=(c.n, 4))], lambda k: _column(c, k, lambda t: t.sum(0)) + 1
    )


@case
def reduce_scatter_list_max(c):
    def fn(x, out):
        dist.reduce_scatter(out, list(x.unbind()), op=dist.ReduceOp.MAX, group=c.pg)
        return out + 1

    def reduced(k):
        return _column(c, k, lambda t: t.amax(0))

    return Program(
        fn,
        lambda k: [c.x(k, shape=(c.n, 4)), torch.zeros(4)],
        lambda k: reduced(k) + 1,
        lambda k: [c.x(k, shape=(c.n, 4)), reduced(k)],
    )


@case
def reduce_scatter_list_uneven(c):
    def fn(x):
        out = torch.empty(c.me + 2)
        dist.reduce_scatter(out, list(x.split([r + 2 for r in range(c.n)])), group=c.pg)
        return out * 2

    total = sum(r + 2 for r in range(c.n))

    def out(k):
        whole = sum(c.x(k, r, shape=(total,)) for r in range(c.n))
        return whole.split([r + 2 for r in range(c.n)])[c.me] * 2

    return Program(fn, lambda k: [c.x(k, shape=(total,))], out)


@case
def all_to_all_list_uneven(c):
    def fn(x):
        outs = [torch.empty(s + c.me + 1) for s in range(c.n)]
        dist.all_to_all(outs, list(x.split([c.me + d + 1 for d in range(c.n)])), group=c.pg)
        return [o + 1 for o in outs]

    def out(k):
        parts = []
        for s in range(c.n):
            sizes = [s + d + 1 for d in range(c.n)]
            parts.append(c.x(k, s, shape=(sum(sizes),)).split(sizes)[c.me] + 1)
        return parts

    return Program(fn, lambda k: [c.x(k, shape=(sum(c.me + d + 1 for d in range(c.n)),))], out)


@case
def scatter(c):
    root = c.ranks[-1]

    def fn(x):
        out = torch.empty(4)
        parts = list(x.unbind()) if dist.get_rank() == root else None
        dist.scatter(out, parts, src=root, group=c.pg)
        return out + 1

    return Program(
        fn, lambda k: [c.x(k, shape=(c.n, 4))], lambda k: c.x(k, c.n - 1, shape=(c.n, 4))[c.me] + 1
    )


@case
def scatter_group_src(c):
    def fn(x, out):
        dist.scatter(
            out, [t * 2 for t in x.unbind()] if c.me == 1 else None, group=c.pg, group_src=1
        )
        return x + 1

    return Program(
        fn,
        lambda k: [c.x(k, shape=(c.n, 4)), torch.zeros(4)],
        lambda k: c.x(k, shape=(c.n, 4)) + 1,
        lambda k: [c.x(k, shape=(c.n, 4)), c.x(k, 1, shape=(c.n, 4))[c.me] * 2],
    )


@case
def gather(c):
    root = c.ranks[0]

    def fn(x):
        outs = [torch.empty_like(x) for _ in range(c.n)] if c.me == 0 else None
        dist.gather(x * 2, outs, dst=root, group=c.pg)
        return torch.stack(outs) if outs is not None else x + 1

    return Program(
        fn, lambda k: [c.x(k)], lambda k: 2 * torch.stack(c.all(k)) if c.me == 0 else c.x(k) + 1
    )


@case
def gather_group_dst(c):
    def fn(x):
        outs = [torch.empty_like(x) for _ in range(c.n)] if c.me == 1 else None
        dist.gather(x, outs, group=c.pg, group_dst=1)
        return torch.cat(outs) if outs is not None else x

    return Program(fn, lambda k: [c.x(k)], lambda k: torch.cat(c.all(k)) if c.me == 1 else c.x(k))
