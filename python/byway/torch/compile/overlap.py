# SPDX-License-Identifier: BSD-3-Clause
"""Keeps what a program computes between a start and its wait between the two.

Inductor has two passes that order computations anew, for locality and for memory. Nothing but data
binds a computation to its place, so they let a wait follow its start at once and put what was to
overlap the call behind both. A graph that starts calls keeps its order.
"""

import functools
import sys

import torch
from torch._higher_order_ops.auto_functionalize import AutoFunctionalized, AutoFunctionalizedV2

from . import ops
from .import_hook import ImportHook


def _is_start(operator):
    return any(operator is getattr(torch.ops.byway, name).default for name in ops.STARTS)


def _starts_in_graph(graph):
    """Whether a functional FX graph has a start."""
    functional = (AutoFunctionalized, AutoFunctionalizedV2)
    return any(isinstance(n.target, functional) and _is_start(n.args[0]) for n in graph.nodes)


def _starts_in_schedule(nodes):
    """Whether a list of the scheduler's nodes has a start."""
    return any(
        _is_start(getattr(one.node, "op_overload", None))
        for node in nodes
        for one in node.get_nodes()
    )


def _for_locality(reorder):
    @functools.wraps(reorder)
    def keep_order(graph):
        if not _starts_in_graph(graph):
            reorder(graph)

    return keep_order


def _for_memory(reorder):
    @functools.wraps(reorder)
    def keep_order(nodes, *args, **kwargs):
        if _starts_in_schedule(nodes):
            kwargs["methods"] = []  # measures memory, which other passes need, and changes nothing
        return reorder(nodes, *args, **kwargs)

    return keep_order


# Module, its pass, and what stands for it.
_PASSES = (
    ("torch._inductor.fx_passes.post_grad", "reorder_for_locality", _for_locality),
    ("torch._inductor.memory", "reorder_for_peak_memory", _for_memory),
)


class _Replacement:
    """One pass, replaced now or when its module is imported; a torch without it is left alone."""

    def __init__(self, module, name, wrap):
        self._module = module
        self._name = name
        self._wrap = wrap
        self._plain = None
        self._hook = None
        if module in sys.modules:
            self._replace()
        else:
            self._hook = ImportHook(module, self._replace)
            self._hook.start()

    def _replace(self):
        module = sys.modules[self._module]
        self._plain = getattr(module, self._name, None)
        if self._plain is not None:
            setattr(module, self._name, self._wrap(self._plain))

    def undo(self):
        if self._hook is not None:
            self._hook.stop()
        if self._plain is not None:
            setattr(sys.modules[self._module], self._name, self._plain)


class Overlap:
    """Replaces the passes, and gives them back."""

    def __init__(self):
        self._replacements = []

    def install(self):
        self._replacements = [_Replacement(*each) for each in _PASSES]

    def undo(self):
        for each in self._replacements:
            each.undo()
        self._replacements = []
