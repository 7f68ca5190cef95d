# SPDX-License-Identifier: BSD-3-Clause
"""Putting the bodies where Dynamo and non-strict export look, and taking them away again."""

import torch
import torch.distributed as dist
from torch._dynamo import trace_rules
from torch._dynamo.variables import PolyfilledFunctionVariable
from torch._dynamo.variables.builder import VariableBuilder

from . import groups, reduce_ops, registry, upstream
from .bodies import BODIES, OWN_BODIES


def _chooses_by_group(body, other, position):
    """The body for Byway's groups, `other` for the rest."""

    def traced(*args, **kwargs):
        group = args[position] if len(args) > position else kwargs.get("group")
        if groups.served(group):
            return body(*args, **kwargs)
        return other(*args, **kwargs)

    return traced


def _batch_chooses(body, other):
    def batch_isend_irecv(p2p_op_list):
        if groups.served(p2p_op_list[0].group):
            return body(p2p_op_list)
        return other(p2p_op_list)

    return batch_isend_irecv


def _is_substituted(original):
    return original in PolyfilledFunctionVariable._get_polyfill_handlers()


def _unsubstitute(original, wrapped):
    for function in (original, wrapped):
        VariableBuilder._id_dispatch().pop(id(function), None)
        trace_rules._polyfilled_function_ids.remove(id(function))
        trace_rules.get_torch_obj_rule_map().pop(function, None)
        PolyfilledFunctionVariable._get_polyfill_handlers().pop(function, None)


class Substitutions:
    """Everything that `add` did, so that `remove` can undo it."""

    def __init__(self):
        self._wrapped = {}
        self._remaps = None

    def add(self):
        remaps = upstream.remaps()
        self._remaps = dict(remaps)
        for original, body in BODIES.items():
            other = upstream.path(original, self._remaps.get(original))
            position = registry.position_of_group(original)
            traced = (
                _batch_chooses(body, other)
                if position is None
                else _chooses_by_group(body, other, position)
            )
            self._substitute(original, traced)
            remaps[original] = traced
        for original, body in OWN_BODIES.items():
            self._substitute(original, body)
        self._substitute(dist._make_nccl_premul_sum, reduce_ops.make_premul_sum)

    def add_own(self, original, body):
        self._substitute(original, body)

    def remove(self):
        for original, wrapped in self._wrapped.items():
            _unsubstitute(original, wrapped)
        self._wrapped.clear()
        if self._remaps is not None:
            remaps = upstream.remaps()
            remaps.clear()
            remaps.update(self._remaps)
            self._remaps = None

    def _substitute(self, original, traced):
        if _is_substituted(original):  # by somebody else: theirs stays
            return
        wrapped = torch.compiler.substitute_in_graph(original, skip_signature_check=True)(traced)
        self._wrapped[original] = wrapped
