# SPDX-License-Identifier: BSD-3-Clause
"""Traceable bodies, one for each torch.distributed call."""

from ..registry import BODIES, OWN_BODIES
from . import coalesced, collectives, fused, lists, point_to_point

__all__ = ["BODIES", "OWN_BODIES", "coalesced", "collectives", "fused", "lists", "point_to_point"]
