# SPDX-License-Identifier: BSD-3-Clause
"""Importing this fills `harness.CASES`."""

from . import (
    async_calls,
    fused,
    groups,
    layouts,
    lists,
    order,
    point_to_point,
    reduce_ops,
    singles,
    windows,
)

__all__ = [
    "async_calls",
    "fused",
    "groups",
    "layouts",
    "lists",
    "order",
    "point_to_point",
    "reduce_ops",
    "singles",
    "windows",
]
