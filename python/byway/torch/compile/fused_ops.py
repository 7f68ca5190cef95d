# SPDX-License-Identifier: BSD-3-Clause
"""The operators that fused calls in graphs consist of: `fused`, and its halves `fused_start` and
`wait`.

They make the eager call on the tensors that they are given: it checks, and exchanges counts that
are not stated, when the graph runs. What is no tensor is flat lists in the schema: a list of groups
is their members one after another, and the number of members of each.
"""

import ast
import dataclasses
from datetime import timedelta

import torch

_OPTIONS = (
    "bool in_place, bool[] complex_ins, bool[] complex_outs, str group, str op, float? scale, "
    "Tensor? factor, int[] members, int[] group_sizes, int[]? roots, SymInt[] counts, "
    "int[]? count_sizes, ScalarType[] count_types, ScalarType? dtype, str key, int timeout_ms"
)
_ROOTED = ("broadcast", "reduce")
_REDUCING = ("all_reduce", "reduce_scatter", "reduce")
_library = None


@dataclasses.dataclass
class Arguments:
    """The schema's options, by its names and in its order."""

    in_place: bool
    complex_ins: list
    complex_outs: list
    group: str
    op: str
    scale: float | None
    factor: torch.Tensor | None
    members: list
    group_sizes: list
    roots: list | None
    counts: list
    count_sizes: list | None  # of each group's counts, type after type; None: no counts stated
    count_types: list  # empty where counts are a list and not by type
    dtype: torch.dtype | None
    key: str  # a literal
    timeout_ms: int


def define():
    """Makes the operators, once. Imports no Dynamo."""
    global _library
    if _library is not None:
        return
    library = torch.library.Library("byway", "FRAGMENT")
    tags = (torch.Tag.pt2_compliant_tag,)
    library.define(
        f"fused(Tensor(t!) token, str collective, Tensor[] ins, Tensor(o!)[] outs, {_OPTIONS}) "
        "-> ()",
        tags=tags,
    )
    library.define(
        "fused_start(Tensor(t!) token, str collective, Tensor[] ins, SymInt[] sizes, int[] dims, "
        f"ScalarType[] dtypes, Device device, {_OPTIONS}) -> Tensor",
        tags=tags,
    )
    library.impl("fused", _fused, "CompositeExplicitAutograd")
    library.impl("fused_start", _fused_start, "CompositeExplicitAutograd")
    _library = library


def _fused(token, collective, ins, outs, *options):
    a = Arguments(*options)
    _call(collective, _restored(ins, a.complex_ins), _restored(outs, a.complex_outs), a, False)


def _fused_start(token, collective, ins, sizes, dims, dtypes, device, *options):
    from byway.torch._extension import load

    a = Arguments(*options)
    copies = [t.clone(memory_format=torch.contiguous_format) for t in ins]
    if a.in_place:
        ins, outs = [], copies
    else:
        ins, outs = copies, []
        for shape, dtype in zip(_split(sizes, dims), dtypes, strict=True):
            outs.append(torch.empty(shape, dtype=dtype, device=device))
    ins, outs = _restored(ins, a.complex_ins), _restored(outs, a.complex_outs)
    work = _call(collective, ins, outs, a, True)
    return load().hold_traced(f"fused_{collective}", ins, outs, work)


def _call(collective, ins, outs, a, async_op):
    """The eager call of this name."""
    import byway.torch
    import torch.distributed.distributed_c10d as c10d

    group = c10d._resolve_process_group(a.group)
    ranks = c10d.get_process_group_ranks(group)
    groups = [[ranks[place] for place in each] for each in _split(a.members, a.group_sizes)]
    more = {}
    if collective in _REDUCING:
        more["op"] = _reduce_op(a.op, a.scale, a.factor)
    if collective in _ROOTED and a.roots is not None:
        more["roots"] = list(a.roots)
    needs_out = collective not in ("all_reduce", *_ROOTED)
    return getattr(byway.torch, f"fused_{collective}")(
        outs if a.in_place else ins,
        groups,
        _counts(a),
        out=None if a.in_place or (needs_out and not outs) else outs,
        group=group,
        async_op=async_op,
        dtype=a.dtype,
        key=ast.literal_eval(a.key),
        timeout=None if a.timeout_ms < 0 else timedelta(milliseconds=a.timeout_ms),
        **more,
    )


def _reduce_op(name, scale, factor):
    import torch.distributed as dist

    if name == "premul_sum":
        return dist._make_nccl_premul_sum(scale if factor is None else factor)
    return getattr(dist.ReduceOp, name.upper())


def _counts(a):
    if a.count_sizes is None:
        return None
    lists = _split(a.counts, a.count_sizes)
    if not a.count_types:
        return lists
    each = len(lists) // len(a.count_types)
    return {dtype: lists[i * each : (i + 1) * each] for i, dtype in enumerate(a.count_types)}


def _restored(tensors, is_complex):
    """Complex numbers again, where the graph has their parts."""
    return [
        torch.view_as_complex(t) if each else t for t, each in zip(tensors, is_complex, strict=True)
    ]


def _split(flat, sizes):
    lists, used = [], 0
    for size in sizes:
        lists.append(list(flat[used : used + size]))
        used += size
    return lists
