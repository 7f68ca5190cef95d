# SPDX-License-Identifier: BSD-3-Clause
"""Views, bases and in-place operations around collectives on lazy tensors."""

from __future__ import annotations

import numpy as np
import torch
import torch.distributed as dist
from lazy_run import case, data, lazy, same, step


def total(view, call, count):
    return sum(data(rank, call, count) for rank in range(view.size))


@case
def views_of_a_reduced_tensor(view):
    x = lazy(data(view.rank, 1, 6))
    row, table = x[0:2], x.view(2, 3)
    turned, detached, inner = table.t(), x.detach(), x.data
    copy, plus = x.clone(), x + 0
    dist.all_reduce(x, group=view.group)
    wanted, old = total(view, 1, 6), data(view.rank, 1, 6)
    step()
    same(row, wanted[:2])
    same(table, wanted.reshape(2, 3))
    same(turned, wanted.reshape(2, 3).T)
    same(detached, wanted)
    same(inner, wanted)
    same(copy, old, "a clone is not a view")
    same(plus, old, "a sum is not a view")


@case
def collective_on_views(view):
    own = data(view.rank, 2, 12).reshape(3, 4)
    sum_ = total(view, 2, 12).reshape(3, 4)
    for name, choose in (
        ("slice", lambda t: t[1:3]),
        ("column", lambda t: t[:, 1]),
        ("transpose", lambda t: t.T),
        ("step", lambda t: t[:, ::2]),
    ):
        for inference in (False, True):
            with torch.inference_mode(inference):
                base = lazy(own)
                other = base.view(12)
                dist.all_reduce(choose(base), group=view.group)
                wanted = own.copy()
                choose(wanted)[...] = choose(sum_)
                step()
                same(base, wanted, f"{name}, inference {inference}")
                same(other, wanted.reshape(12), f"{name}, another view, inference {inference}")


@case
def chunks_as_outputs(view):
    whole = torch.zeros(view.size, 3, device="lazy")
    dist.all_gather(list(whole.unbind(0)), lazy(data(view.rank, 1, 3)), group=view.group)
    flat = torch.zeros(view.size * 3, device="lazy")
    own = flat[view.rank * 3 : view.rank * 3 + 3]
    own.copy_(lazy(data(view.rank, 2, 3)))
    dist.all_gather_into_tensor(flat, own, group=view.group)
    source = lazy(data(view.rank, 3, view.size * 3))
    part = source[view.rank * 3 : view.rank * 3 + 3]
    dist.reduce_scatter_tensor(part, source, group=view.group)
    step()
    same(whole, np.stack([data(rank, 1, 3) for rank in range(view.size)]))
    same(flat, np.concatenate([data(rank, 2, 3) for rank in range(view.size)]), "input in output")
    wanted = data(view.rank, 3, view.size * 3)
    here = slice(view.rank * 3, view.rank * 3 + 3)
    wanted[here] = total(view, 3, view.size * 3)[here]
    same(source, wanted, "output in input")


@case
def in_place_around(view):
    x = lazy(data(view.rank, 1, 6))
    x[1:3].mul_(2)
    dist.all_reduce(x, group=view.group)
    x.add_(1)
    x[0:2].neg_()
    step()
    wanted = total(view, 1, 6)
    wanted[1:3] *= 2
    wanted += 1
    wanted[0:2] *= -1
    same(x, wanted)


@case
def parameters(view):
    weight = torch.nn.Parameter(lazy(data(view.rank, 1, 4)))
    version = weight._version
    dist.broadcast(weight, view.world(0), group=view.group)
    with torch.no_grad():
        dist.all_reduce(weight, group=view.group)
    step()
    assert (weight.requires_grad, weight.is_leaf, weight._version) == (True, True, version)
    same(weight, data(0, 1, 4) * view.size)


@case
def fresh_scalars(view):
    for marks in (False, True):
        first = torch.tensor(4.0, device="lazy")
        dist.all_reduce(first, group=view.group)
        if marks:
            step()
        second = torch.tensor(4.0, device="lazy")
        dist.all_reduce(second, group=view.group)
        step()
        same(first, np.float32(4 * view.size).reshape(()), "the first")
        same(second, np.float32(4 * view.size).reshape(()), "the second")
    twice = torch.tensor(4.0, device="lazy")
    dist.all_reduce(twice, group=view.group)
    dist.all_reduce(twice, group=view.group)
    step()
    same(twice, np.float32(4 * view.size**2).reshape(()), "twice")
    for value in (0.0, 1.0):
        x = torch.tensor(value, device="lazy")
        dist.all_reduce(x, group=view.group)
        step()
        same(x, np.float32(value * view.size).reshape(()))
