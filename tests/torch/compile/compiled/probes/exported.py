# SPDX-License-Identifier: BSD-3-Clause
"""torch.export, strict and not."""

import torch
import torch.distributed as dist

import byway.torch as bt

from ..harness import compare


class _Moves(torch.nn.Module):
    def forward(self, x):
        y = x * 2
        dist.broadcast(y, 0)
        outs = [torch.empty_like(x) for _ in range(dist.get_world_size())]
        dist.all_gather(outs, x)
        return y, torch.cat(outs)


class _Sums(torch.nn.Module):
    def forward(self, x):
        y = x * 2
        dist.all_reduce(y)
        out = torch.empty(4)
        dist.reduce_scatter_tensor(
            out, torch.cat([x] * dist.get_world_size()), op=dist.ReduceOp.MAX
        )
        return y + 1, out


class _Asynchronous(torch.nn.Module):
    def forward(self, x):
        y = x * 2
        w = dist.all_reduce(y, async_op=True)
        z = x + 1
        w.wait()
        return y + z


class _Fused(torch.nn.Module):
    def forward(self, x):
        groups, y, out = [[1, 0]], x * 2, torch.empty(8)
        helps = dist.get_rank() > 1
        work = bt.fused_all_reduce([] if helps else y, groups, [4], async_op=True)
        bt.fused_all_gather([] if helps else x, groups, [4], out=[] if helps else out)
        work.wait()
        return y, x + 1 if helps else out


def _expected(c, k):
    pair = [c.x(k, 1), c.x(k, 0)]
    helps = c.me > 1
    fused = (2 * c.x(k) if helps else 2 * sum(pair), c.x(k) + 1 if helps else torch.cat(pair))
    return {
        _Fused: fused,
        _Moves: (2 * c.x(k, 0), torch.cat(c.all(k))),
        _Sums: (2 * c.sum(k) + 1, c.x(k, c.n - 1)),
        _Asynchronous: 2 * c.sum(k) + c.x(k) + 1,
    }


def _exports(c, strict):
    for module, _ in _expected(c, 0).items():
        program = torch.export.export(module(), (c.x(0),), strict=strict)
        for what, callable_ in (
            ("exported", program.module()),
            ("decomposed", program.run_decompositions().module()),
        ):
            for k in range(2):
                compare(
                    callable_(c.x(k)),
                    _expected(c, k)[module],
                    f"{module.__name__} {what}, call {k}",
                )


def strict(c, backend):
    _exports(c, True)


def not_strict(c, backend):
    _exports(c, False)


PROBES = (strict, not_strict)
