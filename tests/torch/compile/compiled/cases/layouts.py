# SPDX-License-Identifier: BSD-3-Clause
"""Strides, views, complex numbers, sizes that change."""

import torch
import torch.distributed as dist

from ..harness import Program, case


@case
def transposed_temp(c):
    def fn(x):
        y = (x * 2).t()
        dist.all_reduce(y, group=c.pg)
        return y + 1

    return Program(
        fn, lambda k: [c.x(k, shape=(3, 4))], lambda k: 2 * c.sum(k, shape=(3, 4)).t() + 1
    )


@case
def view_of_input(c):
    def fn(x):
        dist.all_reduce(x[1], group=c.pg)
        return x + 1

    def after(k):
        x = c.x(k, shape=(3, 4))
        x[1] = c.sum(k, shape=(3, 4))[1]
        return [x]

    return Program(fn, lambda k: [c.x(k, shape=(3, 4))], lambda k: after(k)[0] + 1, after)


@case
def two_views(c):
    """Two views of one input, reduced separately."""

    def fn(x):
        dist.all_reduce(x[0], group=c.pg)
        dist.all_reduce(x[1], op=dist.ReduceOp.MAX, group=c.pg)
        return x * 2

    def after(k):
        return [torch.stack([c.sum(k, shape=(2, 4))[0], c.x(k, c.n - 1, shape=(2, 4))[1]])]

    return Program(fn, lambda k: [c.x(k, shape=(2, 4))], lambda k: after(k)[0] * 2, after)


def _complex(c, k, rank=None, shape=(4,)):
    x = c.x(k, rank, shape=shape)
    return torch.complex(x, x + 2)


@case
def complex_all_reduce(c):
    def fn(x):
        y = x * 2
        dist.all_reduce(y, group=c.pg)
        return y + 1

    return Program(
        fn, lambda k: [_complex(c, k)], lambda k: 2 * sum(_complex(c, k, r) for r in range(c.n)) + 1
    )


@case
def complex_moves(c):
    """Data movement of complex numbers, in and out of arguments, started and not."""

    def fn(x, out):
        dist.all_gather_into_tensor(out, x, group=c.pg)
        parts = [torch.empty_like(x) for _ in range(c.n)]
        w = dist.all_gather(parts, x.conj(), group=c.pg, async_op=True)
        b = x + 1
        dist.broadcast(b, group=c.pg, group_src=0)
        w.wait()
        return parts, b

    def out(k):
        every = [_complex(c, k, r) for r in range(c.n)]
        return [t.conj().resolve_conj() for t in every], every[0] + 1

    return Program(
        fn,
        lambda k: [_complex(c, k), torch.zeros(c.n * 4, dtype=torch.complex64)],
        out,
        lambda k: [_complex(c, k), torch.cat([_complex(c, k, r) for r in range(c.n)])],
    )


def _growing(c, k):
    return (k + 3, 4)


@case
def dynamic_all_reduce(c):
    def fn(x):
        y = x * 2
        dist.all_reduce(y, group=c.pg)
        return y + 1

    def args(k):
        x = c.x(k, shape=_growing(c, k))
        torch._dynamo.mark_dynamic(x, 0)
        return [x]

    return Program(fn, args, lambda k: 2 * c.sum(k, shape=_growing(c, k)) + 1)


@case
def dynamic_all_gather_async(c):
    def fn(x):
        out = torch.empty(c.n, *x.shape)
        w = dist.all_gather_into_tensor(out, x, group=c.pg, async_op=True)
        w.wait()
        return out + 1

    def args(k):
        x = c.x(k, shape=_growing(c, k))
        torch._dynamo.mark_dynamic(x, 0)
        return [x]

    return Program(fn, args, lambda k: torch.stack(c.all(k, shape=_growing(c, k))) + 1)


@case
def empty_and_scalar(c):
    def fn(x, scalar):
        empty = x[:0] * 1
        dist.all_reduce(empty, group=c.pg)
        dist.all_reduce(scalar, group=c.pg)
        return empty, scalar + 1

    def total(k):
        return sum(c.x(k, r)[1] for r in range(c.n))

    return Program(
        fn,
        lambda k: [c.x(k), c.x(k)[1].clone()],
        lambda k: (torch.empty(0), total(k) + 1),
        lambda k: [c.x(k), total(k)],
    )


@case
def gradients_in_list(c):
    """The average of gradients that are arguments."""

    def fn(grads):
        for grad in grads:
            dist.all_reduce(grad, group=c.pg)
            grad.div_(c.n)
        return grads[0] * 1

    def after(k):
        return [[c.sum(k, shape=(i + 2,)) / c.n for i in range(3)]]

    return Program(
        fn, lambda k: [[c.x(k, shape=(i + 2,)) for i in range(3)]], lambda k: after(k)[0][0], after
    )
