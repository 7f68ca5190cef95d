# SPDX-License-Identifier: BSD-3-Clause
"""Collectives on single tensors."""

from torch.distributed import ReduceOp

from .. import groups, reduce_ops
from ..calls import Options, launch
from ..ops import milliseconds
from ..registry import body
from .coalesced import window_of


@body("all_reduce")
def all_reduce(tensor, op=ReduceOp.SUM, group=None, async_op=False):
    pg = groups.member(group)
    if pg is None:
        return None
    name, scale, factor = reduce_ops.describe(op)
    reduce_ops.check_complex(name, [tensor], "all_reduce")
    window = window_of(pg)
    if window is not None:
        return window.add("all_reduce_coalesced", [], tensor, Options(pg, name, scale, factor))
    return launch("all_reduce", [], [tensor], Options(pg, name, scale, factor), async_op)


@body("broadcast")
def broadcast(tensor, src=None, group=None, async_op=False, group_src=None):
    pg = groups.member(group)
    if pg is None:
        return None
    root = groups.group_rank(pg, src, group_src, "src")
    return launch("broadcast", [], [tensor], Options(pg, peers=[root]), async_op)


@body("reduce")
def reduce(tensor, dst=None, op=ReduceOp.SUM, group=None, async_op=False, group_dst=None):
    pg = groups.member(group)
    if pg is None:
        return None
    root = groups.group_rank(pg, dst, group_dst, "dst")
    return launch(
        "reduce", [], [tensor], Options(pg, *reduce_ops.describe(op), peers=[root]), async_op
    )


@body("all_gather_single", "all_gather_into_tensor", "_all_gather_base")
def all_gather_single(output_tensor, input_tensor, group=None, async_op=False):
    pg = groups.member(group)
    if pg is None:
        return None
    window = window_of(pg)
    if window is not None:
        return window.add("all_gather_single_coalesced", [input_tensor], output_tensor, Options(pg))
    return launch("all_gather_single", [input_tensor], [output_tensor], Options(pg), async_op)


@body("reduce_scatter_single", "reduce_scatter_tensor", "_reduce_scatter_base")
def reduce_scatter_single(output, input, op=ReduceOp.SUM, group=None, async_op=False):
    pg = groups.member(group)
    if pg is None:
        return None
    options = Options(pg, *reduce_ops.describe(op))
    window = window_of(pg)
    if window is not None:
        return window.add("reduce_scatter_single_coalesced", [input], output, options)
    return launch("reduce_scatter_single", [input], [output], options, async_op)


@body("all_to_all_single")
def all_to_all_single(
    output, input, output_split_sizes=None, input_split_sizes=None, group=None, async_op=False
):
    pg = groups.member(group)
    if pg is None:
        return None
    options = Options(
        pg,
        in_splits=[] if input_split_sizes is None else input_split_sizes,
        out_splits=[] if output_split_sizes is None else output_split_sizes,
    )
    return launch("all_to_all_single", [input], [output], options, async_op)


@body("barrier")
def barrier(group=None, async_op=False, device_ids=None, timeout=None):
    pg = groups.member(group)
    if pg is None:
        return None
    return launch("barrier", [], [], Options(pg, timeout=milliseconds(timeout)), async_op)
