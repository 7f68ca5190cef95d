# SPDX-License-Identifier: BSD-3-Clause
"""BYWAY_AS=gloo: the name "gloo" makes this backend, for programs that have it written in."""

from __future__ import annotations

import functools

from byway.torch._register import NAME, _say, create


def answer_to(alias: str) -> None:
    """From now on groups of backend `alias` are ours. Only "gloo" is possible."""
    from torch.distributed import distributed_c10d as c10d

    if alias != "gloo":
        _say(f'byway: BYWAY_AS="{alias}" is not possible, only "gloo"; left alone')
        return
    helper = c10d._new_process_group_helper
    if getattr(helper, "_byway_alias", False):
        return
    backend = c10d.Backend
    inner = "byway_as_gloo"
    backend.register_backend(
        inner, functools.partial(create, name="gloo"), extended_api=True, devices=["cpu", "lazy"]
    )

    def renamed(text: str) -> str:
        parts = [part.split(":") for part in text.split(",")]
        return ",".join(":".join([*p[:-1], inner if p[-1] == "gloo" else p[-1]]) for p in parts)

    @functools.wraps(helper)
    def with_alias(group_size, group_rank, global_ranks_in_group, asked, *rest, **named):
        text = str(asked).lower()
        ours = renamed(text)
        if text == backend.UNDEFINED and backend.default_device_backend_map["cpu"] == "gloo":
            ours = inner
        if ours == text:
            return helper(group_size, group_rank, global_ranks_in_group, asked, *rest, **named)
        made = helper(group_size, group_rank, global_ranks_in_group, backend(ours), *rest, **named)
        group = made[0]
        if group in c10d._world.pg_map:
            # What get_backend() and the like answer.
            c10d._world.pg_map[group] = (backend(asked), c10d._world.pg_map[group][1])
            config = c10d._world.pg_backend_config[group]
            c10d._world.pg_backend_config[group] = config.replace(inner, "gloo")
        return made

    with_alias._byway_alias = True
    c10d._new_process_group_helper = with_alias
    _say(f'byway: groups of backend "gloo" are made by {NAME} (BYWAY_AS=gloo)')
