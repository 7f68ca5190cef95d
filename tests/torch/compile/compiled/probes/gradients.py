# SPDX-License-Identifier: BSD-3-Clause
"""Gradients through each call are those that eager gives."""

import warnings

import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as functional

from ..harness import compare


def _all_reduce(x, n):
    y = x * 2
    dist.all_reduce(y)
    return y * x


def _broadcast(x, n):
    y = x * 3
    dist.broadcast(y, 0)
    return y * x


def _all_gather(x, n):
    outs = [torch.empty_like(x) for _ in range(n)]
    dist.all_gather(outs, x * 2)
    return outs[0] * x


def _all_gather_single(x, n):
    out = torch.empty(n * 4)
    dist.all_gather_into_tensor(out, x * 2)
    return out[:4] * x


def _reduce_scatter(x, n):
    out = torch.empty(4)
    dist.reduce_scatter_tensor(out, (x * 2).repeat(n))
    return out * x


def _all_to_all(x, n):
    out = torch.empty(n * 4)
    dist.all_to_all_single(out, (x * 2).repeat(n))
    return out[:4] * x


def _asynchronous(x, n):
    y = x * 2
    w = dist.all_reduce(y, async_op=True)
    z = x * x
    w.wait()
    return y.detach() * z


def _functional_all_reduce(x, n):
    return functional.all_reduce(x * 2, "sum", dist.group.WORLD) * x


def _functional_all_gather(x, n):
    return functional.all_gather_tensor(x * 2, 0, dist.group.WORLD)[:4] * x


def _functional_reduce_scatter(x, n):
    return functional.reduce_scatter_tensor((x * 2).repeat(n), "sum", 0, dist.group.WORLD) * x


def _functional_all_to_all(x, n):
    y = (x * 2).repeat(n)
    return functional.all_to_all_single(y, [4] * n, [4] * n, dist.group.WORLD)[:4] * x


_CALLS = (
    _all_reduce,
    _broadcast,
    _all_gather,
    _all_gather_single,
    _reduce_scatter,
    _all_to_all,
    _asynchronous,
    _functional_all_reduce,
    _functional_all_gather,
    _functional_reduce_scatter,
    _functional_all_to_all,
)


def _gradient(fn, c, k):
    x = c.x(k).requires_grad_()
    out = fn(x, c.n)
    out.sum().backward()
    return out.detach(), x.grad


def each_call(c, backend):
    for call in _CALLS:
        torch._dynamo.reset()
        compiled = torch.compile(call, backend=backend, fullgraph=True)
        for k in range(2):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # eager warns that plain calls have no formula
                expected = _gradient(call, c, k)
                got = _gradient(compiled, c, k)
            compare(got, expected, f"{call.__name__}, call {k}")


class _Summed(torch.autograd.Function):
    """What users write: an all-reduce forward and one backward."""

    @staticmethod
    def forward(ctx, x):
        y = x.clone()
        dist.all_reduce(y)
        return y

    @staticmethod
    def backward(ctx, grad):
        grad = grad.clone()
        dist.all_reduce(grad)
        return grad


def own_function(c, backend):
    def fn(x, n):
        return _Summed.apply(x * 2) * x

    compiled = torch.compile(fn, backend=backend, fullgraph=True)
    for k in range(2):
        compare(_gradient(compiled, c, k), _gradient(fn, c, k), f"call {k}")


PROBES = (each_call, own_function)
