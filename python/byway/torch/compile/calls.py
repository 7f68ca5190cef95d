# SPDX-License-Identifier: BSD-3-Clause
"""How every body ends: the call is run, or started, or left to the window that coalesces it."""

from .ops import Options, run, start
from .works import TracedWork


def launch(kind, ins, outs, options, async_op):
    """A call as torch.distributed makes it: None, or the Work of a started one."""
    if not async_op:
        run(kind, ins, outs, options)
        return None
    return TracedWork(start(kind, ins, outs, options), outs)


__all__ = ["Options", "launch"]
