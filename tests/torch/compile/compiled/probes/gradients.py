# SPDX-License-Identifier: BSD-3-Clause
"""Gradients through each call are those that eager gives."""

import warnings

import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as functional
from torch.distributed.distributed_c10d import _coalescing_manager

import byway.torch as bt

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


def _reduce(x, n):
    y = x * 2
    dist.reduce(y, 0)
    return y * x if dist.get_rank() == 0 else x * x


def _all_gather_stacked(x, n):
    out = torch.empty(n, 4)
    dist.all_gather_into_tensor(out, x * 2)
    return out[0] * x


def _reduce_scatter_list(x, n):
    out = torch.empty(4)
    dist.reduce_scatter(out, [x * (i + 1) for i in range(n)])
    return out * x


def _all_to_all_list(x, n):
    outs = [torch.empty(4) for _ in range(n)]
    dist.all_to_all(outs, [x * (i + 1) for i in range(n)])
    return outs[-1] * x


def _scatter(x, n):
    out = torch.empty(4)
    dist.scatter(out, [x * (i + 1) for i in range(n)] if dist.get_rank() == 0 else None)
    return out * x


def _gather(x, n):
    outs = [torch.empty(4) for _ in range(n)] if dist.get_rank() == 0 else None
    dist.gather(x * 2, outs)
    return x * x if outs is None else outs[-1] * x


def _all_reduce_coalesced(x, n):
    y, z = x * 2, x * x
    dist.all_reduce_coalesced([y, z])
    return y * x + z


def _window(x, n):
    y, z = x * 2, x * x
    with _coalescing_manager():
        dist.all_reduce(y)
        dist.all_reduce(z)
    return y * x + z


def _transfer(x, n):
    y, rank = torch.empty(4), dist.get_rank()
    sent = dist.isend(x * 2, (rank + 1) % n)
    dist.recv(y, (rank - 1) % n)
    sent.wait()
    return y * x


def _batch(x, n):
    y, rank = torch.empty(4), dist.get_rank()
    ends = [
        dist.P2POp(dist.isend, x * 2, (rank + 1) % n),
        dist.P2POp(dist.irecv, y, (rank - 1) % n),
    ]
    for work in dist.batch_isend_irecv(ends):
        work.wait()
    return y * x


def _barrier(x, n):
    y = x * 2
    dist.barrier()
    return y * x


def _fused_all_reduce(x, n):
    y = x * 2
    bt.fused_all_reduce(y, [list(range(n))], [4])
    return y * x


def _fused_all_gather(x, n):
    out = torch.empty(4 * n)
    bt.fused_all_gather(x * 2, [list(range(n))], [4], out=out)
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


_PLAIN = (
    _all_reduce,
    _broadcast,
    _all_gather,
    _all_gather_single,
    _reduce_scatter,
    _all_to_all,
    _reduce,
    _all_gather_stacked,
    _reduce_scatter_list,
    _all_to_all_list,
    _scatter,
    _gather,
    _all_reduce_coalesced,
    _window,
    _transfer,
    _batch,
    _barrier,
    _fused_all_reduce,
    _fused_all_gather,
    _asynchronous,
)
_FUNCTIONAL = (
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


def _compare_each(calls, c, backend):
    for call in calls:
        torch._dynamo.reset()
        compiled = torch.compile(call, backend=backend, fullgraph=True)
        for k in range(2):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # eager warns that plain calls have no formula
                expected = _gradient(call, c, k)
                got = _gradient(compiled, c, k)
            compare(got, expected, f"{call.__name__}, call {k}")


def plain_calls(c, backend):
    _compare_each(_PLAIN, c, backend)


def functional_calls(c, backend):
    _compare_each(_FUNCTIONAL, c, backend)


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


PROBES = (plain_calls, functional_calls, own_function)
