# SPDX-License-Identifier: BSD-3-Clause
"""Makes the name "byway" known to torch.distributed. Never raises: it may run in `import torch`."""

from __future__ import annotations

import os
import sys

NAME = "byway"


def _say(line: str) -> None:
    import logging

    logging.getLogger("byway").warning(line)


def create(options, pg_options, name: str = NAME):
    """The creator that torch calls: `options` is a DistributedBackendOptions."""
    from byway.torch._extension import load
    from byway.torch._mending import install as mend_torch
    from byway.torch._options import native_options

    from byway.torch import compile as tracing
    from torch.distributed import distributed_c10d

    extension = load()
    mend_torch()
    tracing.install(options.group_id)
    return extension.create_group(
        store=options.store,
        rank=options.group_rank,
        size=options.group_size,
        options=native_options(pg_options, extension),
        name=name,
        timeout=options.timeout,
        group=options.group_id,
        global_ranks=options.global_ranks_in_group,
        of_job=distributed_c10d._world.default_pg is not None,
    )


def set_default() -> None:
    """Makes byway the backend of CPU tensors for groups that name none."""
    from byway.torch._alias import take_default

    from torch.distributed.distributed_c10d import Backend

    register()
    Backend.default_device_backend_map["cpu"] = NAME
    take_default()


def register() -> None:
    """Registers the backend, once, and applies BYWAY_DEFAULT and BYWAY_AS."""
    import torch.distributed

    if not torch.distributed.is_available():
        return
    from torch.distributed.distributed_c10d import Backend

    if NAME.upper() in Backend._plugins:
        return
    Backend.register_backend(NAME, create, extended_api=True, devices=["cpu", "lazy"])
    if os.environ.get("BYWAY_DEFAULT") == "1":
        set_default()
        _say("byway: the default backend of CPU tensors (BYWAY_DEFAULT=1)")
    alias = os.environ.get("BYWAY_AS", "")
    if alias == "gloo":
        from byway.torch._alias import answer_to_gloo

        answer_to_gloo()
        _say(f'byway: groups of backend "gloo" are made by {NAME} (BYWAY_AS=gloo)')
    elif alias:
        _say(f'byway: BYWAY_AS="{alias}" is not possible, only "gloo"; left alone')


def autoload() -> None:
    """The entry point. A failure must not break `import torch` for those who do not use byway."""
    try:
        register()
    except Exception as error:
        sys.modules[__name__].autoload_error = error


autoload_error: Exception | None = None
