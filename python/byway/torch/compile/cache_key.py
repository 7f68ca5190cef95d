# SPDX-License-Identifier: BSD-3-Clause
"""Torch's caches of compiled graphs, told which groups are Byway's.

A functional collective names its group and not the group's backend, so the same program may be
compiled in one process for a `byway` group and in another for a Gloo group of the same name.
"""

import hashlib

_MARK = "|byway:"
_names: set[str] = set()


def _set(suffix):
    from torch.compiler import config

    config.cache_key_tag = config.cache_key_tag.split(_MARK)[0] + suffix


def add(group_name):
    """The group is one of Byway's."""
    if group_name in _names:
        return
    _names.add(group_name)
    digest = hashlib.sha256("\n".join(sorted(_names)).encode()).hexdigest()[:16]
    _set(_MARK + digest)


def remove():
    """The tag as it was."""
    if _names:
        _names.clear()
        _set("")
