# SPDX-License-Identifier: BSD-3-Clause
"""What a call on another backend's group traces to: exactly what it would without Byway.

A *clone* is a second function object with the original's code. Dynamo has no substitute for it, so it treats the clone
as it treats the original in a process without Byway: by upstream's functional collective where there is one, else by
tracing the original's code.
"""

import types

import torch
import torch.distributed as dist
from torch.distributed import _functional_collectives as functional
from torch.distributed import distributed_c10d as c10d

from . import reduce_ops

_REDUCING = ("all_reduce", "reduce_scatter_single", "reduce_scatter_tensor", "_reduce_scatter_base")
_POINT_TO_POINT = ("isend", "irecv", "batch_isend_irecv")

# Dynamo's flag, as it was before Byway needed P2POp in graphs.
_p2p_allowed = False


def allow_p2p(allowed):
    global _p2p_allowed
    _p2p_allowed = allowed


def clone(original):
    copy = types.FunctionType(
        original.__code__, original.__globals__, original.__name__, original.__defaults__, original.__closure__
    )
    copy.__kwdefaults__ = original.__kwdefaults__
    copy.__dict__.update(original.__dict__)
    copy.__qualname__ = original.__qualname__
    copy.__module__ = original.__module__
    return copy


def _refuse_p2p(name):
    torch._dynamo.graph_break(f"P2P compilation disabled for {name}: set TORCHDYNAMO_ENABLE_P2P_COMPILATION=1 to enable")


def _batch(remapped):
    def batch_isend_irecv(p2p_op_list):
        names = ["isend" if p2p.op is c10d.isend else "irecv" for p2p in p2p_op_list]
        return remapped(
            op_list=names,
            peer_list=[p2p.peer for p2p in p2p_op_list],
            tag_list=[p2p.tag for p2p in p2p_op_list],
            tensors=[p2p.tensor for p2p in p2p_op_list],
            group_name=p2p_op_list[0].group,
        )

    return batch_isend_irecv


def path(original, remapped):
    """The function that stands for `original` on other groups; `remapped` is upstream's own body, or None.

    Returns it and the clone that `traceable_collective_remaps` must map to `remapped` (None: no entry).
    """
    name = original.__name__
    copy = clone(original)
    if remapped is None:
        return copy, None
    if name == "batch_isend_irecv":
        copy, entry = _batch(remapped), None
    else:
        entry = copy
    if name in _POINT_TO_POINT:
        return _p2p_path(name, copy), entry
    if name in _REDUCING:
        return _reducing_path(name, copy, remapped), entry

    def other_group(*args, **kwargs):
        if not torch.compiler.is_dynamo_compiling():
            return remapped(*args, **kwargs)
        return copy(*args, **kwargs)

    return other_group, entry


def _p2p_path(name, copy):
    def other_group(*args, **kwargs):
        if not _p2p_allowed:
            _refuse_p2p(name)
        return copy(*args, **kwargs)

    return other_group


def _reducing_path(name, copy, remapped):
    position = 1 if name == "all_reduce" else 2

    def other_group(*args, **kwargs):
        if len(args) > position:
            args = [*args[:position], reduce_ops.upstream_name(args[position]), *args[position + 1 :]]
        elif "op" in kwargs:
            kwargs = {**kwargs, "op": reduce_ops.upstream_name(kwargs["op"])}
        if not torch.compiler.is_dynamo_compiling():
            return remapped(*args, **kwargs)
        return copy(*args, **kwargs)

    return other_group


def remaps():
    return functional.traceable_collective_remaps


__all__ = ["allow_p2p", "clone", "dist", "path", "remaps"]
