# SPDX-License-Identifier: BSD-3-Clause
"""Two functions of torch.distributed that do not do for Byway's groups what they say.

Names of groups that are made by their members alone: torch makes such a name from the ranks and the
number of groups that the process has. Members that belong to different numbers of other groups then
wait for each other under different names. Here the number is that of earlier groups of the same
ranks, on which all members agree.

A time-out that is set later: torch sets it for Gloo and NCCL, and warns for others.
"""

from __future__ import annotations

import collections
import functools
import hashlib
import weakref

_made: weakref.WeakKeyDictionary = weakref.WeakKeyDictionary()


def install() -> None:
    """Replaces both functions, once."""
    from torch.distributed import distributed_c10d as c10d

    if not getattr(c10d._process_group_name, "_byway", False):
        _replace(c10d, "_process_group_name", _name)
        _replace(c10d, "_set_pg_timeout", _set_timeout)


def _replace(module, name: str, function) -> None:
    original = getattr(module, name)

    @functools.wraps(original)
    def replacement(*arguments, **named):
        return function(module, original, *arguments, **named)

    replacement._byway = True
    setattr(module, name, replacement)


def _name(c10d, original, ranks, use_hashed_name):
    if not use_hashed_name or not c10d.is_initialized():
        return original(ranks, use_hashed_name)
    # A new world counts anew: its members may have other pasts.
    made = _made.setdefault(c10d._get_default_group(), collections.Counter())
    members = tuple(ranks)
    made[members] += 1
    text = f"{members} {made[members]}"
    return c10d.GroupName(hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest())


def _set_timeout(c10d, original, timeout, group=None) -> None:
    from byway.torch._extension import load

    import torch

    group = group or c10d._get_default_group()
    kind = load().ProcessGroupByway
    others = False
    for device in group._device_types:
        backend = group._get_backend(torch.device(device))
        backend = getattr(backend, "wrapped_pg", backend)  # TORCH_DISTRIBUTED_DEBUG=DETAIL
        if isinstance(backend, kind):
            backend.options._timeout = timeout  # read at every call
        else:
            others = True
    if others:
        original(timeout, group)
