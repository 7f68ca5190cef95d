# SPDX-License-Identifier: BSD-3-Clause
"""One collective in several disjoint groups of ranks at once, with all other ranks helping.

Every rank of `group` makes the call with the same groups. `tensors` is the rank's own tensor or
list of tensors, of any mixture of types, and [] on ranks that are in none of the groups: nothing of
theirs is read or written. A list's tensors are served as if each had been called alone, without
being packed: they are sent and received where they are.

groups: lists of global ranks, in the group's order.
counts: elements for each group, the same on every rank. Of a group the whole (all_reduce,
    broadcast, reduce), a rank's block (all_gather, reduce_scatter) or a pair's segment
    (all_to_all); where blocks differ a list, one for each rank or (all_to_all) for each pair by
    source, then destination. A dict of such lists by type for tensors of several types. None: the
    ranks tell each other at the first call with these groups (and this `key`), and remember it.
out: where results go, as `tensors`. None: in place (all_reduce, broadcast, reduce).
async_op: returns a work at once.
dtype: with `counts` as a list, the type on ranks without tensors (torch.get_default_dtype()).
key: a name or number that tells calls of the same groups but different shapes apart, where counts
    are None.

Errors: ValueError before anything is sent where the call is wrong; the other ranks get a
DistBackendError that says which rank refused it and why.
"""

from __future__ import annotations

import functools
from collections.abc import Hashable, Sequence
from datetime import timedelta

from byway.torch._fused_call import FusedCall, Tensors

import torch
import torch.distributed as dist

__all__ = [
    "fused_all_gather",
    "fused_all_reduce",
    "fused_all_to_all",
    "fused_broadcast",
    "fused_reduce",
    "fused_reduce_scatter",
]


def _traced_in_export(function):
    """torch.export that is not strict runs the function on tensors without data: there it does
    what it does in a graph.
    """

    @functools.wraps(function)
    def call(*args, **kwargs):
        if torch.compiler.is_exporting():
            from byway.torch.compile.registry import OWN_BODIES

            return OWN_BODIES[call](*args, **kwargs)
        return function(*args, **kwargs)

    return call


@_traced_in_export
def fused_all_reduce(
    tensors: Tensors,
    groups: Sequence[Sequence[int]],
    counts=None,
    op=dist.ReduceOp.SUM,
    out: Tensors | None = None,
    group=None,
    async_op: bool = False,
    *,
    dtype: torch.dtype | None = None,
    key: Hashable = None,
    timeout: timedelta | None = None,
):
    """The reduction of the tensors of each group's ranks, on all of them."""
    call = FusedCall("all_reduce", groups, group, op, dtype, key, timeout)
    return call.make(counts, async_op, lambda: call.take(tensors, out, in_place=True))


@_traced_in_export
def fused_all_gather(
    tensors: Tensors,
    groups: Sequence[Sequence[int]],
    counts=None,
    out: Tensors | None = None,
    group=None,
    async_op: bool = False,
    *,
    dtype: torch.dtype | None = None,
    key: Hashable = None,
    timeout: timedelta | None = None,
):
    """Into each tensor of `out` the blocks of all ranks of the group, in its order.

    In place where an input is the rank's own block of its output.
    """
    call = FusedCall("all_gather", groups, group, None, dtype, key, timeout)
    return call.make(counts, async_op, lambda: call.take(tensors, out))


@_traced_in_export
def fused_reduce_scatter(
    tensors: Tensors,
    groups: Sequence[Sequence[int]],
    counts=None,
    op=dist.ReduceOp.SUM,
    out: Tensors | None = None,
    group=None,
    async_op: bool = False,
    *,
    dtype: torch.dtype | None = None,
    key: Hashable = None,
    timeout: timedelta | None = None,
):
    """Into `out` the reduction of the rank's own block of every rank's tensors.

    In place where an output is the rank's own block of its input.
    """
    call = FusedCall("reduce_scatter", groups, group, op, dtype, key, timeout)
    return call.make(counts, async_op, lambda: call.take(tensors, out))


@_traced_in_export
def fused_all_to_all(
    tensors: Tensors,
    groups: Sequence[Sequence[int]],
    counts=None,
    out: Tensors | None = None,
    group=None,
    async_op: bool = False,
    *,
    dtype: torch.dtype | None = None,
    key: Hashable = None,
    timeout: timedelta | None = None,
):
    """Block j of a rank's tensors to the group's rank j; never in place."""
    call = FusedCall("all_to_all", groups, group, None, dtype, key, timeout)
    return call.make(counts, async_op, lambda: call.take(tensors, out))


@_traced_in_export
def fused_broadcast(
    tensors: Tensors,
    groups: Sequence[Sequence[int]],
    counts=None,
    roots: Sequence[int] | None = None,
    out: Tensors | None = None,
    group=None,
    async_op: bool = False,
    *,
    dtype: torch.dtype | None = None,
    key: Hashable = None,
    timeout: timedelta | None = None,
):
    """The tensors of each group's root (a global rank; by default the group's first) on all ranks.

    Out of place only the root's `tensors` are read, and everybody gives `out`.
    """
    call = FusedCall("broadcast", groups, group, None, dtype, key, timeout, roots)
    return call.make(counts, async_op, lambda: call.take_broadcast(tensors, out))


@_traced_in_export
def fused_reduce(
    tensors: Tensors,
    groups: Sequence[Sequence[int]],
    counts=None,
    op=dist.ReduceOp.SUM,
    roots: Sequence[int] | None = None,
    out: Tensors | None = None,
    group=None,
    async_op: bool = False,
    *,
    dtype: torch.dtype | None = None,
    key: Hashable = None,
    timeout: timedelta | None = None,
):
    """The reduction of the tensors of each group's ranks, on its root (by default its first).

    Only the root's tensors, or its `out`, are written.
    """
    call = FusedCall("reduce", groups, group, op, dtype, key, timeout, roots)
    return call.make(counts, async_op, lambda: call.take_reduce(tensors, out))
