# SPDX-License-Identifier: BSD-3-Clause
"""The bodies by the function that each stands for."""

import inspect

from torch.distributed import distributed_c10d as c10d

# Function of torch.distributed -> body with the same arguments. `bodies` fills it.
BODIES: dict = {}
# The same, for functions of Byway's own: no other backend has them.
OWN_BODIES: dict = {}


def body(*names):
    """Registers a body for functions of `torch.distributed.distributed_c10d`; a name that this
    torch lacks is left out.
    """

    def register(traced):
        for name in names:
            original = getattr(c10d, name, None)
            if original is not None:
                BODIES[original] = traced
        return traced

    return register


def own_body(original):
    """Registers a body for a function of Byway's own (fused calls)."""

    def register(traced):
        OWN_BODIES[original] = traced
        return traced

    return register


def position_of_group(original):
    """Where the group stands among a function's arguments; None where it has none."""
    names = list(inspect.signature(original).parameters)
    return names.index("group") if "group" in names else None
