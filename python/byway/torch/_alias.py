# SPDX-License-Identifier: BSD-3-Clause
"""Groups that ask for another name, or for none, and are to be byway's.

torch makes groups of the name "gloo" itself, and gives a group that names no backend a default
that no custom backend fits. So the function that makes groups is wrapped, once, when one of the two
is asked for.
"""

from __future__ import annotations

import functools

from byway.torch._register import NAME, create

_ALIAS = "byway_as_gloo"


class _Names:
    """What is asked for in this process."""

    gloo = False
    default = False


def _renamed(asked: str) -> str:
    """The name that makes the group; `asked` itself where it is none of ours."""
    from torch.distributed.distributed_c10d import Backend

    if asked == Backend.UNDEFINED:
        return NAME if _Names.default else _renamed("gloo") if _Names.gloo else asked
    if not _Names.gloo:
        return asked
    pairs = [pair.rpartition(":") for pair in asked.split(",")]
    return ",".join(
        device + colon + (_ALIAS if name == "gloo" else name) for device, colon, name in pairs
    )


def _on_cpu() -> bool:
    """Whether groups that name no backend are for CPU tensors: without an accelerator they are."""
    import torch

    return torch._C._get_accelerator().type == "cpu"


def _wrap() -> None:
    from torch.distributed import distributed_c10d as c10d

    helper = c10d._new_process_group_helper
    if getattr(helper, "_byway", False):
        return

    @functools.wraps(helper)
    def make(group_size, group_rank, global_ranks_in_group, backend, *rest, **named):
        asked = str(backend).lower()
        undefined = asked == c10d.Backend.UNDEFINED
        ours = asked if undefined and not _on_cpu() else _renamed(asked)
        if ours == asked:
            ours = backend
        made = helper(
            group_size, group_rank, global_ranks_in_group, c10d.Backend(ours), *rest, **named
        )
        if _ALIAS in str(ours) and made[0] in c10d._world.pg_map:
            # What get_backend() and its like answer.
            seen = c10d.Backend("gloo" if undefined else asked)
            c10d._world.pg_map[made[0]] = (seen, c10d._world.pg_map[made[0]][1])
            config = c10d._world.pg_backend_config[made[0]]
            c10d._world.pg_backend_config[made[0]] = config.replace(_ALIAS, "gloo")
        return made

    make._byway = True
    c10d._new_process_group_helper = make


def take_default() -> None:
    """Groups that name no backend are byway's from now on."""
    _Names.default = True
    _wrap()


def answer_to_gloo() -> None:
    """Groups of backend "gloo" are ours from now on."""
    from torch.distributed.distributed_c10d import Backend

    Backend.register_backend(
        _ALIAS, functools.partial(create, name="gloo"), extended_api=True, devices=["cpu", "lazy"]
    )
    _Names.gloo = True
    _wrap()
