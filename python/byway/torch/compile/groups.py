# SPDX-License-Identifier: BSD-3-Clause
"""What a traced call needs to know of its group, read while tracing."""

import sys

import torch
import torch.distributed as dist
from torch.distributed import distributed_c10d as c10d


def is_served(group):
    """True where one of the group's backends is Byway, whatever name it was made by."""
    extension = sys.modules.get("byway.torch._C")
    if extension is None:
        return False
    for device in group._device_types:
        backend = group._get_backend(device)
        backend = getattr(backend, "wrapped_pg", backend)  # TORCH_DISTRIBUTED_DEBUG=DETAIL
        if isinstance(backend, extension.ProcessGroupByway):
            return True
    return False


@torch.compiler.assume_constant_result
def _is_served_in_trace(name):
    return is_served(c10d._resolve_process_group(name))


def served(group):
    """Whether the bodies answer for this group; a group that this rank is not in has no backend
    and no calls.
    """
    if isinstance(group, int):
        return True
    if group is None:
        group = dist.group.WORLD
    return group is None or _is_served_in_trace(group.group_name)


def member(group):
    """The ProcessGroup that a call names; None where this rank is not in it."""
    if isinstance(group, int):
        return None
    if group is None:
        group = dist.group.WORLD
        if group is None:
            raise ValueError(
                "Default process group has not been initialized, "
                "please make sure to call init_process_group."
            )
    return group


def group_rank(group, global_rank, rank_in_group, name):
    """The group rank that a call names by either of two arguments."""
    if rank_in_group is not None:
        if global_rank is not None:
            raise ValueError("Can't specify both group_rank and global_rank")
        return rank_in_group
    if global_rank is None:
        raise ValueError("Must specify global_rank or group_rank")
    ranks = c10d.get_process_group_ranks(group)
    if global_rank not in ranks:
        raise ValueError(
            f"Global rank {global_rank} ({name}) is not part of group {group.group_name}"
        )
    return ranks.index(global_rank)


def refuse_self(group, rank, name):
    if group.rank() == rank:
        raise ValueError(
            f"Invalid {name} rank: {name} rank should not be the same as the rank of the current "
            "process."
        )
