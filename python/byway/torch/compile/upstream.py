# SPDX-License-Identifier: BSD-3-Clause
"""What a call on another backend's group traces to: what it would without Byway.

That is upstream's functional collective where there is one. Elsewhere it is the original's own
code, as a second function object: Dynamo has no substitute for that one, so it traces it, or
refuses it, as it does the original in a process without Byway.
"""

import inspect
import types

import torch
from torch.distributed import _functional_collectives as functional
from torch.distributed import distributed_c10d as c10d

from . import reduce_ops

_POINT_TO_POINT = ("isend", "irecv", "batch_isend_irecv")
_REDUCING = ("all_reduce", "reduce_scatter_single", "reduce_scatter_tensor", "_reduce_scatter_base")

# Dynamo's flag, as it was before Byway needed P2POp in graphs.
_p2p_allowed = False


def allow_p2p(allowed):
    global _p2p_allowed
    _p2p_allowed = allowed


def remaps():
    """Upstream's table: the function -> what Dynamo and non-strict export trace in its place."""
    return functional.traceable_collective_remaps


def path(original, remapped):
    """What stands for `original` on other groups; `remapped` is upstream's, or None."""
    if remapped is None:
        return _second_object(original)
    if original is c10d.batch_isend_irecv:
        return _batch(remapped)
    return _as_dynamo_calls(original, remapped)


def _second_object(original):
    copy = types.FunctionType(
        original.__code__,
        original.__globals__,
        original.__name__,
        original.__defaults__,
        original.__closure__,
    )
    copy.__kwdefaults__ = original.__kwdefaults__
    copy.__dict__.update(original.__dict__)
    copy.__qualname__ = original.__qualname__
    copy.__module__ = original.__module__
    return copy


def _check_p2p(name):
    if not _p2p_allowed and torch.compiler.is_dynamo_compiling():
        torch._dynamo.graph_break(
            f"P2P compilation disabled for {name}: "
            "set TORCHDYNAMO_ENABLE_P2P_COMPILATION=1 to enable"
        )


def _as_dynamo_calls(original, remapped):
    """Upstream's rules for its own table: arguments by name, no async_op, operations as strings."""
    name = original.__name__
    names = tuple(inspect.signature(original).parameters)
    reducing = name in _REDUCING
    p2p = name in _POINT_TO_POINT

    def other_group(*args, **kwargs):
        if p2p:
            _check_p2p(name)
        given = dict(zip(names, args))  # noqa: B905 (args may be fewer)
        given.update(kwargs)
        if given.get("async_op", False) and torch.compiler.is_dynamo_compiling():
            torch._dynamo.graph_break(
                f"async_op=True for distributed collectives is not supported for {name}"
            )
        if reducing and "op" in given:
            given["op"] = reduce_ops.upstream_name(given["op"])
        return remapped(**given)

    return other_group


def _batch(remapped):
    def batch_isend_irecv(p2p_op_list):
        _check_p2p("batch_isend_irecv")
        return remapped(
            op_list=["isend" if p2p.op is c10d.isend else "irecv" for p2p in p2p_op_list],
            peer_list=[p2p.peer for p2p in p2p_op_list],
            tag_list=[p2p.tag for p2p in p2p_op_list],
            tensors=[p2p.tensor for p2p in p2p_op_list],
            group_name=p2p_op_list[0].group,
        )

    return batch_isend_irecv
