# SPDX-License-Identifier: BSD-3-Clause
"""Byway as a backend of torch.distributed: ``init_process_group("byway")``.

Importing this registers the name and does nothing else: the extension is loaded when the first
group is made (docs/torch.md).
"""

from byway.torch._groups import (
    monitored_barrier,
    sequence_number,
    set_default,
    split_group,
)
from byway.torch._options import Options
from byway.torch._register import register as _register

__all__ = ["Options", "monitored_barrier", "sequence_number", "set_default", "split_group"]

_register()
