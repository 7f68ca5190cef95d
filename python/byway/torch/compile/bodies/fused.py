# SPDX-License-Identifier: BSD-3-Clause
"""Calls of several groups with the other ranks helping (byway.torch.fused_*)."""

import byway.torch as byway_torch
import torch
from torch.distributed import ReduceOp
from torch.distributed import distributed_c10d as c10d

from .. import groups as traced_groups
from .. import reduce_ops
from ..calls import launch
from ..ops import milliseconds
from ..registry import own_body

_IN_PLACE = ("all_reduce", "broadcast", "reduce")


@torch.compiler.assume_constant_result
def _literal(key):
    """The key as text that names the same key when the graph runs, in whichever process."""
    if not _is_literal(key):
        raise NotImplementedError(
            f"key={key!r} in a compiled graph: use numbers, strings or tuples of them"
        )
    return repr(key)


def _is_literal(key):
    if isinstance(key, tuple):
        return all(_is_literal(each) for each in key)
    return key is None or isinstance(key, (int, float, str, bytes))


def _listed(tensors):
    if tensors is None:
        return []
    return [tensors] if isinstance(tensors, torch.Tensor) else list(tensors)


def _flat(count):
    if isinstance(count, (list, tuple)):
        return [number for part in count for number in _flat(part)]
    return [count]


def _flat_lists(lists):
    """All members one after another, and the number of each list's."""
    return [each for one in lists for each in one], [len(one) for one in lists]


class FusedOptions:
    """The arguments of `fused` and `fused_start` (fused_ops.py)."""

    def __init__(self, pg, groups, counts, op, roots, in_place, dtype, key, timeout):
        ranks = c10d.get_process_group_ranks(pg)
        for rank in [rank for each in groups for rank in each]:
            if rank not in ranks:
                raise ValueError(
                    f"groups name rank {rank}, which is not one of the process group's "
                    f"{len(ranks)} ranks"
                )
        self.group = pg.group_name
        self.calls_in_place = in_place
        self.reduction = ("", None, None) if op is None else reduce_ops.describe(op)
        self.groups = _flat_lists([[ranks.index(rank) for rank in each] for each in groups])
        self.roots = None if roots is None else list(roots)
        self.counts, self.count_sizes, self.count_types = [], None, []
        if isinstance(counts, dict):
            self.count_types = list(counts.keys())
            lists = [_flat(each) for one in counts.values() for each in one]
            self.counts, self.count_sizes = _flat_lists(lists)
        elif counts is not None:
            self.counts, self.count_sizes = _flat_lists([_flat(each) for each in counts])
        self.dtype = dtype
        self.key = _literal(key)
        self.timeout = milliseconds(timeout)

    def run(self, *args):
        torch.ops.byway.fused.default(*args)

    def start(self, *args):
        return torch.ops.byway.fused_start.default(*args)

    def in_place(self, kind):
        return self.calls_in_place

    def values(self, ins, outs):
        return (
            self.calls_in_place,
            [t.is_complex() for t in ins],
            [t.is_complex() for t in outs],
            self.group,
            *self.reduction,
            *self.groups,
            self.roots,
            self.counts,
            self.count_sizes,
            self.count_types,
            self.dtype,
            self.key,
            self.timeout,
        )


def _is_root(pg, groups, roots):
    """Whether this rank is the root of its group; roots that do not fit are refused by the call."""
    me = c10d.get_process_group_ranks(pg)[pg.rank()]
    for number, each in enumerate(groups):
        if me in each:
            if roots is None:
                return each[0] == me
            return number < len(roots) and roots[number] == me
    return False


def _fused(
    collective, tensors, groups, counts, out, group, async_op, dtype, key, timeout, op=None,
    roots=None,
):  # fmt: skip
    pg = traced_groups.member(group)
    if pg is None:
        return None
    given, outs = _listed(tensors), _listed(out)
    in_place = out is None and collective in _IN_PLACE
    # What a rank gives and does not get back is no output of the graph's operator.
    if in_place and collective == "reduce" and not _is_root(pg, groups, roots):
        in_place = False
    if collective == "broadcast" and not in_place and not _is_root(pg, groups, roots):
        given = []
    ins, outs = ([], given) if in_place else (given, outs)
    options = FusedOptions(pg, groups, counts, op, roots, in_place, dtype, key, timeout)
    return launch(collective, ins, outs, options, async_op)


@own_body(byway_torch.fused_all_reduce)
def fused_all_reduce(tensors, groups, counts=None, op=ReduceOp.SUM, out=None, group=None,
                     async_op=False, *, dtype=None, key=None, timeout=None):  # fmt: skip
    return _fused("all_reduce", tensors, groups, counts, out, group, async_op, dtype, key, timeout,
                  op)  # fmt: skip


@own_body(byway_torch.fused_all_gather)
def fused_all_gather(tensors, groups, counts=None, out=None, group=None, async_op=False, *,
                     dtype=None, key=None, timeout=None):  # fmt: skip
    return _fused("all_gather", tensors, groups, counts, out, group, async_op, dtype, key, timeout)


@own_body(byway_torch.fused_reduce_scatter)
def fused_reduce_scatter(tensors, groups, counts=None, op=ReduceOp.SUM, out=None, group=None,
                         async_op=False, *, dtype=None, key=None, timeout=None):  # fmt: skip
    return _fused("reduce_scatter", tensors, groups, counts, out, group, async_op, dtype, key,
                  timeout, op)  # fmt: skip


@own_body(byway_torch.fused_all_to_all)
def fused_all_to_all(tensors, groups, counts=None, out=None, group=None, async_op=False, *,
                     dtype=None, key=None, timeout=None):  # fmt: skip
    return _fused("all_to_all", tensors, groups, counts, out, group, async_op, dtype, key, timeout)


@own_body(byway_torch.fused_broadcast)
def fused_broadcast(tensors, groups, counts=None, roots=None, out=None, group=None,
                    async_op=False, *, dtype=None, key=None, timeout=None):  # fmt: skip
    return _fused("broadcast", tensors, groups, counts, out, group, async_op, dtype, key, timeout,
                  roots=roots)  # fmt: skip


@own_body(byway_torch.fused_reduce)
def fused_reduce(tensors, groups, counts=None, op=ReduceOp.SUM, roots=None, out=None, group=None,
                 async_op=False, *, dtype=None, key=None, timeout=None):  # fmt: skip
    return _fused("reduce", tensors, groups, counts, out, group, async_op, dtype, key, timeout, op,
                  roots)  # fmt: skip
