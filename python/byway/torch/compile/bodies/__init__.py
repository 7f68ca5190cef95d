# SPDX-License-Identifier: BSD-3-Clause
"""Traceable bodies, one for each torch.distributed call. Importing this fills `registry.BODIES`."""

from . import coalesced, collectives, lists, point_to_point

__all__ = ["coalesced", "collectives", "lists", "point_to_point"]
