# SPDX-License-Identifier: BSD-3-Clause
"""Lazy mode: collectives on torch's lazy tensors (docs/lazy.md).

import byway.lazy
byway.lazy.init()
x = torch.ones(4, device="lazy")
dist.all_reduce(x)          # recorded in x's graph
torch._lazy.mark_step()     # runs, with everything else of the step
"""

from byway.lazy._control import Statistics, flush, init, reset, set_mode, statistics

__all__ = ["Statistics", "flush", "init", "reset", "set_mode", "statistics"]
