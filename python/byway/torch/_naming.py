# SPDX-License-Identifier: BSD-3-Clause
"""Names of groups that are made by their members alone.

torch makes such a name from the ranks and the number of groups that the process has. Members that
belong to different numbers of other groups then wait for each other under different names. Here the
number is that of earlier groups of the same ranks, on which all members agree.
"""

from __future__ import annotations

import collections
import functools
import hashlib
import weakref

_made: weakref.WeakKeyDictionary = weakref.WeakKeyDictionary()


def install() -> None:
    """Replaces the function that makes names, once."""
    from torch.distributed import distributed_c10d as c10d

    original = c10d._process_group_name
    if getattr(original, "_byway", False):
        return

    @functools.wraps(original)
    def name(ranks, use_hashed_name):
        if not use_hashed_name or not c10d.is_initialized():
            return original(ranks, use_hashed_name)
        # A new world counts anew: its members may have other pasts.
        made = _made.setdefault(c10d._get_default_group(), collections.Counter())
        members = tuple(ranks)
        made[members] += 1
        text = f"{members} {made[members]}"
        return c10d.GroupName(hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest())

    name._byway = True
    c10d._process_group_name = name
