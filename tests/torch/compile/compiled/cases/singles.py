# SPDX-License-Identifier: BSD-3-Clause
"""Collectives on single tensors."""

import torch
import torch.distributed as dist

from ..harness import Program, case


@case
def all_reduce_temp(c):
    def fn(x):
        y = x * 2
        dist.all_reduce(y, group=c.pg)
        return y + 1

    return Program(fn, lambda k: [c.x(k)], lambda k: c.sum(k) * 2 + 1)


@case
def all_reduce_input(c):
    def fn(x):
        dist.all_reduce(x, group=c.pg)
        return x * 2

    return Program(fn, lambda k: [c.x(k)], lambda k: c.sum(k) * 2, lambda k: [c.sum(k)])


@case
def broadcast(c):
    root = c.ranks[-1]

    def fn(x):
        y = x + 1
        dist.broadcast(y, root, group=c.pg)
        dist.broadcast(x, src=root, group=c.pg)
        return y

    return Program(
        fn, lambda k: [c.x(k)], lambda k: c.x(k, c.n - 1) + 1, lambda k: [c.x(k, c.n - 1)]
    )


@case
def broadcast_group_src(c):
    def fn(x):
        y = x + 1
        dist.broadcast(y, group=c.pg, group_src=1)
        return y * 2

    return Program(fn, lambda k: [c.x(k)], lambda k: (c.x(k, 1) + 1) * 2)


@case
def reduce_sum(c):
    root = c.ranks[0]

    def fn(x):
        y = x * 2
        dist.reduce(y, root, group=c.pg)
        return y if dist.get_rank() == root else x  # elsewhere the tensor's value is unspecified

    return Program(fn, lambda k: [c.x(k)], lambda k: c.sum(k) * 2 if c.me == 0 else c.x(k))


@case
def reduce_min(c):
    def fn(x):
        y = -x
        dist.reduce(y, group_dst=1, op=dist.ReduceOp.MIN, group=c.pg)
        return y + 1 if c.me == 1 else x

    return Program(fn, lambda k: [c.x(k)], lambda k: -c.x(k, c.n - 1) + 1 if c.me == 1 else c.x(k))


def _gather_tensor(call):
    def make(c):
        def fn(x):
            out = torch.empty(c.n * 3, 2)
            call(out, x * 1, group=c.pg)
            return out + 1

        return Program(
            fn, lambda k: [c.x(k, shape=(3, 2))], lambda k: torch.cat(c.all(k, shape=(3, 2))) + 1
        )

    return make


@case
def all_gather_into_tensor(c):
    return _gather_tensor(dist.all_gather_into_tensor)(c)


@case
def all_gather_single(c):
    return _gather_tensor(dist.all_gather_single)(c)


@case
def all_gather_base(c):
    return _gather_tensor(dist.distributed_c10d._all_gather_base)(c)


@case
def all_gather_stack(c):
    def fn(x):
        out = torch.empty(c.n, 3, 2)
        dist.all_gather_into_tensor(out, x, group=c.pg)
        return out + 1

    return Program(
        fn, lambda k: [c.x(k, shape=(3, 2))], lambda k: torch.stack(c.all(k, shape=(3, 2))) + 1
    )


@case
def all_gather_into_slice_of_output(c):
    """The input is a slice of the output."""

    def fn(out):
        dist.all_gather_into_tensor(out, out[c.me * 4 : (c.me + 1) * 4], group=c.pg)
        return out * 2

    def args(k):
        out = torch.zeros(c.n * 4)
        out[c.me * 4 : (c.me + 1) * 4] = c.x(k)
        return [out]

    return Program(fn, args, lambda k: torch.cat(c.all(k)) * 2, lambda k: [torch.cat(c.all(k))])


def _mine(c, k, shape):
    return sum(c.all(k, shape=(c.n, *shape)))[c.me]


def _scatter_tensor(call):
    def make(c):
        def fn(x):
            out = torch.empty(3, 2)
            call(out, x * 1, group=c.pg)
            return out + 1

        return Program(
            fn, lambda k: [c.x(k, shape=(c.n * 3, 2))], lambda k: _mine(c, k, (3, 2)) + 1
        )

    return make


@case
def reduce_scatter_tensor(c):
    return _scatter_tensor(dist.reduce_scatter_tensor)(c)


@case
def reduce_scatter_single(c):
    return _scatter_tensor(dist.reduce_scatter_single)(c)


@case
def reduce_scatter_base(c):
    return _scatter_tensor(dist.distributed_c10d._reduce_scatter_base)(c)


@case
def reduce_scatter_stack(c):
    def fn(x):
        out = torch.empty(3, 2)
        dist.reduce_scatter_tensor(out, x, group=c.pg)
        return out + 1

    return Program(fn, lambda k: [c.x(k, shape=(c.n, 3, 2))], lambda k: _mine(c, k, (3, 2)) + 1)


@case
def reduce_scatter_into_slice_of_input(c):
    """The output is a slice of the input."""

    def fn(x):
        dist.reduce_scatter_tensor(x[c.me * 4 : (c.me + 1) * 4], x, group=c.pg)
        return x[c.me * 4 : (c.me + 1) * 4] + 1

    def after(k):
        x = c.x(k, shape=(c.n * 4,))
        x[c.me * 4 : (c.me + 1) * 4] = _mine(c, k, (4,))
        return [x]

    return Program(fn, lambda k: [c.x(k, shape=(c.n * 4,))], lambda k: _mine(c, k, (4,)) + 1, after)


@case
def all_to_all_single_even(c):
    def fn(x):
        out = torch.empty_like(x)
        dist.all_to_all_single(out, x, group=c.pg)
        return out + 1

    def out(k):
        return torch.cat([c.x(k, r, shape=(c.n, 2))[c.me] for r in range(c.n)]).reshape(c.n * 2) + 1

    return Program(fn, lambda k: [c.x(k, shape=(c.n * 2,))], out)


def _uneven(c):
    """Rank s sends s + d + 1 elements to rank d."""
    sends = [c.me + d + 1 for d in range(c.n)]
    receives = [s + c.me + 1 for s in range(c.n)]
    return sends, receives


def _uneven_parts(c, k):
    parts = []
    for s in range(c.n):
        sizes = [s + d + 1 for d in range(c.n)]
        parts.append(torch.split(c.x(k, s, shape=(sum(sizes),)), sizes)[c.me])
    return parts


@case
def all_to_all_single_uneven(c):
    sends, receives = _uneven(c)

    def fn(x):
        out = torch.empty(sum(receives))
        dist.all_to_all_single(out, x, receives, sends, group=c.pg)
        return out + 1

    return Program(
        fn, lambda k: [c.x(k, shape=(sum(sends),))], lambda k: torch.cat(_uneven_parts(c, k)) + 1
    )


def _scaled(c, k):
    """(sends, receives) for call k: the uneven sizes times k + 1."""
    sends, receives = _uneven(c)
    return [s * (k + 1) for s in sends], [r * (k + 1) for r in receives]


def _scaled_out(c, k):
    parts = []
    for s in range(c.n):
        sizes = [(s + d + 1) * (k + 1) for d in range(c.n)]
        parts.append(torch.split(c.x(k, s, shape=(sum(sizes),)), sizes)[c.me])
    return torch.cat(parts) + 1


@case
def all_to_all_single_symbolic(c):
    """Split sizes are arguments that change with every call."""

    def fn(x, receives, sends):
        out = torch.empty(sum(receives))
        dist.all_to_all_single(out, x, receives, sends, group=c.pg)
        return out + 1

    def args(k):
        sends, receives = _scaled(c, k + 1)
        return [c.x(k + 1, shape=(sum(sends),)), receives, sends]

    return Program(fn, args, lambda k: _scaled_out(c, k + 1), dynamic=True)


@case
def all_to_all_single_tolist(c):
    """Split sizes come out of tensors inside the graph."""

    def fn(x, receives, sends):
        outs, ins = receives.tolist(), sends.tolist()
        for size in [*outs, *ins]:
            torch._check(size >= 0)
        out = torch.empty(sum(outs))
        dist.all_to_all_single(out, x, outs, ins, group=c.pg)
        return out + 1

    def args(k):
        sends, receives = _scaled(c, k + 1)
        return [c.x(k + 1, shape=(sum(sends),)), torch.tensor(receives), torch.tensor(sends)]

    return Program(
        fn,
        args,
        lambda k: _scaled_out(c, k + 1),
        dynamic=True,
        config={"capture_scalar_outputs": True},
    )


@case
def barrier(c):
    def fn(x):
        dist.barrier(group=c.pg)
        y = x + 1
        w = dist.barrier(group=c.pg, async_op=True)
        w.wait()
        return y

    return Program(fn, lambda k: [c.x(k)], lambda k: c.x(k) + 1)
