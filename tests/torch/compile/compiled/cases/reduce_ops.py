# SPDX-License-Identifier: BSD-3-Clause
"""Every reduce operation, in every way users hold one."""

import functools

import torch
import torch.distributed as dist

from ..harness import Program, case

_PREMUL = dist._make_nccl_premul_sum(2.0)


def _all_reduce(c, op, expected, dtype=torch.float32):
    def fn(x):
        y = x * 1
        dist.all_reduce(y, op=op, group=c.pg)
        return y + 1

    return Program(fn, lambda k: [c.x(k, dtype=dtype)], lambda k: expected(k) + 1)


@case
def op_max(c):
    return _all_reduce(c, dist.ReduceOp.MAX, lambda k: c.x(k, c.n - 1))


@case
def op_min(c):
    return _all_reduce(c, dist.ReduceOp.MIN, lambda k: c.x(k, 0))


@case
def op_product(c):
    return _all_reduce(
        c,
        dist.ReduceOp.PRODUCT,
        lambda k: functools.reduce(torch.mul, c.all(k, dtype=torch.float64)),
        torch.float64,
    )


@case
def op_avg(c):
    return _all_reduce(c, dist.ReduceOp.AVG, lambda k: c.sum(k) / c.n)


def _bits(c, op, how):
    return _all_reduce(
        c, op, lambda k: functools.reduce(how, c.all(k, dtype=torch.int64)), torch.int64
    )


@case
def op_band(c):
    return _bits(c, dist.ReduceOp.BAND, torch.bitwise_and)


@case
def op_bor(c):
    return _bits(c, dist.ReduceOp.BOR, torch.bitwise_or)


@case
def op_bxor(c):
    return _bits(c, dist.ReduceOp.BXOR, torch.bitwise_xor)


@case
def premul_global(c):
    return _all_reduce(c, _PREMUL, lambda k: 2 * c.sum(k))


@case
def premul_in_graph(c):
    def fn(x):
        y = x * 1
        dist.all_reduce(y, op=dist._make_nccl_premul_sum(0.5), group=c.pg)
        return y + 1

    return Program(fn, lambda k: [c.x(k)], lambda k: c.sum(k) / 2 + 1)


@case
def premul_tensor_in_graph(c):
    def fn(x, factor):
        y = x * 1
        dist.all_reduce(y, op=dist._make_nccl_premul_sum(factor), group=c.pg)
        return y + 1

    return Program(
        fn, lambda k: [c.x(k), torch.tensor([1.0 + k])], lambda k: c.sum(k) * (1.0 + k) + 1
    )


@case
def op_argument(c):
    """One graph for each operation that is passed in."""
    ops = (dist.ReduceOp.SUM, dist.ReduceOp.MAX, dist.ReduceOp.SUM)

    def fn(x, op):
        y = x * 1
        dist.all_reduce(y, op, c.pg)
        return y + 1

    return Program(
        fn,
        lambda k: [c.x(k), ops[k]],
        lambda k: (c.x(k, c.n - 1) if k == 1 else c.sum(k)) + 1,
        graphs=2,
    )


@case
def op_partial(c):
    largest = functools.partial(dist.all_reduce, op=dist.ReduceOp.MAX)

    def fn(x):
        y = x * 1
        largest(y, group=c.pg)
        return y

    return Program(fn, lambda k: [c.x(k)], lambda k: c.x(k, c.n - 1))


@case
def reduce_scatter_premul(c):
    def fn(x):
        out = torch.empty(4)
        dist.reduce_scatter_tensor(out, x, op=_PREMUL, group=c.pg)
        return out + 1

    def out(k):
        return 2 * sum(c.all(k, shape=(c.n, 4)))[c.me] + 1

    return Program(fn, lambda k: [c.x(k, shape=(c.n * 4,))], out)
