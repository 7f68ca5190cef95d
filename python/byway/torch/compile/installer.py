# SPDX-License-Identifier: BSD-3-Clause
"""Installs tracing support into a Dynamo that is loaded; imported when one is."""

import torch
import torch._dynamo

from . import functional, ops, upstream
from .overlap import Overlap
from .substitutions import Substitutions

_fakes_registered = False


class Installation:
    """What was changed in torch, and its undoing. A step is recorded before the next is taken."""

    def __init__(self):
        self.substitutions = Substitutions()
        self._overlap = Overlap()
        self._tied = []
        self._p2p = None

    def install(self):
        global _fakes_registered
        if not hasattr(torch.ops.byway, "run"):
            raise RuntimeError(
                "byway's traced operators are not loaded: create a byway group first"
            )
        if not _fakes_registered:
            ops.register_fakes()
            _fakes_registered = True
        self._p2p = torch._dynamo.config.enable_p2p_compilation
        upstream.allow_p2p(self._p2p)
        # Gates the construction of P2POp in a graph, before its group is known.
        torch._dynamo.config.enable_p2p_compilation = True
        self.substitutions.add()
        self._tied = functional.install()
        self._overlap.install()

    def undo(self):
        self._overlap.undo()
        functional.uninstall(self._tied)
        self._tied = []
        self.substitutions.remove()
        if self._p2p is not None:
            torch._dynamo.config.enable_p2p_compilation = self._p2p
            self._p2p = None
        torch._dynamo.reset()
