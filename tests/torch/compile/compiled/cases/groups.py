# SPDX-License-Identifier: BSD-3-Clause
"""The ways in which users hold a group and name a function."""

import functools

import torch
import torch.distributed as dist
from torch.distributed import all_reduce

from ..harness import Program, case


def _expected(c, k):
    return 2 * c.sum(k) + 1


@case
def group_argument(c):
    def fn(x, group):
        y = x * 2
        dist.all_reduce(y, group=group)
        return y + 1

    return Program(fn, lambda k: [c.x(k), c.group], lambda k: _expected(c, k))


@case
def group_positional(c):
    def fn(x, group):
        y = x * 2
        dist.all_reduce(y, dist.ReduceOp.SUM, group)
        return y + 1

    return Program(fn, lambda k: [c.x(k), c.group], lambda k: _expected(c, k))


@case
def group_in_module(c):
    class Layer(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.group = c.group

        def forward(self, x):
            y = x * 2
            dist.all_reduce(y, group=self.group)
            return y + 1

    return Program(Layer(), lambda k: [c.x(k)], lambda k: _expected(c, k))


@case
def group_in_dict(c):
    held = {"tp": c.group, "none": None}

    def fn(x):
        y = x * 2
        dist.all_reduce(y, group=held["tp"])
        return y + 1

    return Program(fn, lambda k: [c.x(k)], lambda k: _expected(c, k))


@case
def group_facts(c):
    """Rank and size read in the graph."""

    def fn(x):
        out = torch.empty(dist.get_world_size(c.group) * 4)
        dist.all_gather_into_tensor(out, x + dist.get_rank(c.group), group=c.group)
        return out

    return Program(
        fn, lambda k: [c.x(k)], lambda k: torch.cat([x + r for r, x in enumerate(c.all(k))])
    )


@case
def root_argument(c):
    """One graph for each root that is passed in."""

    def fn(x, root):
        y = x * 1
        dist.broadcast(y, root, group=c.pg)
        return y + 1

    return Program(
        fn,
        lambda k: [c.x(k), c.ranks[k % 2]],
        lambda k: c.x(k, k % 2) + 1,
        graphs=2,
        dynamic=False,
    )


@case
def imported_name(c):
    partial = functools.partial(all_reduce, group=c.pg)

    def fn(x):
        y = x * 2
        all_reduce(y, group=c.pg)
        partial(y)
        return y

    return Program(fn, lambda k: [c.x(k)], lambda k: 2 * c.n * c.sum(k))


@case
def not_a_member(c):
    """A call on a group that this rank is not in does nothing."""
    outside = dist.GroupMember.NON_GROUP_MEMBER

    def fn(x):
        y = x * 2
        dist.all_reduce(y, group=outside)
        dist.barrier(group=outside)
        dist.broadcast(y, 0, group=outside)
        dist.all_reduce(y, group=c.pg)
        return y + 1

    return Program(fn, lambda k: [c.x(k)], lambda k: _expected(c, k))
