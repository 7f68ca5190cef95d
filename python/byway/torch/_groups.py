# SPDX-License-Identifier: BSD-3-Clause
"""What torch.distributed refuses to offer for backends that it does not know by name."""

from __future__ import annotations

from datetime import timedelta

from byway.torch._register import set_default

__all__ = [
    "flight_record",
    "monitored_barrier",
    "recorded_calls",
    "sequence_number",
    "set_default",
    "split_group",
]


def _group(group):
    from torch.distributed import distributed_c10d as c10d

    return group if group is not None else c10d._get_default_group()


def byway_backend(group):
    """The group's backend for CPU tensors. Raises ValueError where that is not byway."""
    import sys

    import torch

    backend = group._get_backend(torch.device("cpu"))
    backend = getattr(backend, "wrapped_pg", backend)  # TORCH_DISTRIBUTED_DEBUG=DETAIL
    extension = sys.modules.get("byway.torch._C")
    if extension is None or not isinstance(backend, extension.ProcessGroupByway):
        name = backend.name() if hasattr(backend, "name") else type(backend).__name__
        raise ValueError(
            f'the process group\'s backend for CPU tensors is "{name}", not byway: '
            'init_process_group("byway")'
        )
    return backend


def recorded_calls(group=None) -> dict:
    """This rank's last calls on the group: what, by which route, when (docs/recorder.md)."""
    import json

    return json.loads(byway_backend(_group(group)).recorded_calls())


def flight_record() -> bytes:
    """This process's last calls on all byway groups, pickled for torch.distributed.flight_recorder.

    What torch._C._distributed_c10d._dump_fr_trace() is for NCCL and Gloo, without stacks. Write one
    file a rank, PREFIX followed by the rank, then `torchfrtrace FOLDER` (docs/recorder.md).
    """
    import sys

    extension = sys.modules.get("byway.torch._C")
    if extension is None:
        raise ValueError('no byway group was made yet: init_process_group("byway")')
    return extension.flight_record()


def monitored_barrier(group=None, timeout=None, wait_all_ranks: bool = False) -> None:
    """A barrier that names every rank that did not come in time.

    As torch.distributed.monitored_barrier; all missing ranks are named whatever `wait_all_ranks`.
    """
    if timeout is None:
        timeout = timedelta(milliseconds=-1)  # the group's
    _group(group).monitored_barrier(timeout, wait_all_ranks=wait_all_ranks)


def sequence_number(group=None) -> int:
    """The number of collectives called on the group, the same on every rank that is not behind."""
    import torch

    backend = _group(group)._get_backend(torch.device("cpu"))
    return backend._get_sequence_number_for_group()


def split_group(
    parent_pg=None,
    split_ranks: list[list[int]] | None = None,
    timeout: timedelta | None = None,
    pg_options=None,
    group_desc: str | None = None,
):
    """Groups made of a group's ranks, as torch.distributed.split_group, which refuses CPU.

    Every rank of `parent_pg` calls it. `split_ranks` are ranks of the parent; a group has them in
    ascending order. Returns the group that the caller is in, else None.
    """
    from byway.torch._extension import load
    from byway.torch._options import native_options

    import torch
    from torch.distributed import distributed_c10d as c10d

    parent = _group(parent_pg)
    if not split_ranks or any(not ranks for ranks in split_ranks):
        raise ValueError("split_ranks must be lists of ranks, none of them empty")
    listed = [rank for ranks in split_ranks for rank in ranks]
    if len(set(listed)) != len(listed) or not set(listed) <= set(range(parent.size())):
        raise ValueError(f"split_ranks name a rank twice or one outside 0 to {parent.size() - 1}")
    mine = next((sorted(ranks) for ranks in split_ranks if parent.rank() in ranks), None)
    if mine is None:
        return None
    global_ranks = [c10d.get_global_rank(parent, rank) for rank in mine]
    name = c10d._process_group_name(global_ranks, use_hashed_name=True)
    backend_name, _ = c10d._world.pg_map[parent]
    if pg_options is None:
        pg_options = parent._get_backend(torch.device("cpu")).options.__copy__()
    # torch mends the options that it is given.
    options = native_options(pg_options, load())
    made = parent.split_group(
        mine,
        timeout=timeout or options._timeout,
        opts=options,
        group_name=name,
        group_desc=group_desc or f"{parent.group_desc}:split",
    )
    c10d._register_pg_in_world(
        made,
        backend_name=backend_name,
        store=made.get_group_store(),
        group_name=name,
        backend_config=c10d._world.pg_backend_config[parent],
        rank_mapping={rank: position for position, rank in enumerate(global_ranks)},
    )
    return made
