# SPDX-License-Identifier: BSD-3-Clause
"""Collectives on lists of tensors."""

from torch.distributed import ReduceOp

from .. import groups, reduce_ops
from ..calls import Options, launch
from ..registry import body


@body("all_gather")
def all_gather(tensor_list, tensor, group=None, async_op=False):
    pg = groups.member(group)
    if pg is None:
        return None
    return launch("all_gather", [tensor], tensor_list, Options(pg), async_op)


@body("reduce_scatter")
def reduce_scatter(output, input_list, op=ReduceOp.SUM, group=None, async_op=False):
    pg = groups.member(group)
    if pg is None:
        return None
    return launch(
        "reduce_scatter", input_list, [output], Options(pg, *reduce_ops.describe(op)), async_op
    )


@body("all_to_all")
def all_to_all(output_tensor_list, input_tensor_list, group=None, async_op=False):
    pg = groups.member(group)
    if pg is None:
        return None
    return launch("all_to_all", input_tensor_list, output_tensor_list, Options(pg), async_op)


def _root(pg, global_rank, group_rank, name):
    if global_rank is None and group_rank is None:
        global_rank = 0
    return groups.group_rank(pg, global_rank, group_rank, name)


@body("scatter")
def scatter(tensor, scatter_list=None, src=None, group=None, async_op=False, group_src=None):
    pg = groups.member(group)
    if pg is None:
        return None
    root = _root(pg, src, group_src, "src")
    ins = list(scatter_list) if scatter_list else []
    if pg.rank() == root and not ins:
        raise ValueError("Argument ``scatter_list`` must be specified on source rank.")
    if pg.rank() != root and ins:
        raise ValueError("Argument ``scatter_list`` must NOT be specified on non-source ranks.")
    return launch("scatter", ins, [tensor], Options(pg, peers=[root]), async_op)


@body("gather")
def gather(tensor, gather_list=None, dst=None, group=None, async_op=False, group_dst=None):
    pg = groups.member(group)
    if pg is None:
        return None
    root = _root(pg, dst, group_dst, "dst")
    outs = list(gather_list) if gather_list else []
    if pg.rank() == root and not outs:
        raise ValueError("Argument ``gather_list`` must be specified on destination rank.")
    if pg.rank() != root and outs:
        raise ValueError("Argument ``gather_list`` must NOT be specified on non-destination ranks.")
    return launch("gather", [tensor], outs, Options(pg, peers=[root]), async_op)
