# SPDX-License-Identifier: BSD-3-Clause
"""Byway as a backend of torch.distributed: ``init_process_group("byway")``.

Importing this registers the name and does nothing else: the extension is loaded when the first
group is made (docs/torch.md).
"""

from byway.torch._groups import (
    flight_record,
    monitored_barrier,
    recorded_calls,
    sequence_number,
    set_default,
    split_group,
)
from byway.torch._options import Options
from byway.torch._register import register as _register

__all__ = [
    "Options",
    "flight_record",
    "fused_all_gather",
    "fused_all_reduce",
    "fused_all_to_all",
    "fused_broadcast",
    "fused_reduce",
    "fused_reduce_scatter",
    "monitored_barrier",
    "recorded_calls",
    "sequence_number",
    "set_default",
    "split_group",
]


def __getattr__(name: str):
    """Loads byway.torch.fused at its first use: this module also runs within `import torch`."""
    if not (name.startswith("fused_") and name in __all__):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from byway.torch import fused

    globals().update({each: getattr(fused, each) for each in fused.__all__})
    return globals()[name]


_register()
