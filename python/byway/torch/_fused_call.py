# SPDX-License-Identifier: BSD-3-Clause
"""One fused call: checks, the rank's tensors, counts."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from datetime import timedelta

from byway.torch._groups import byway_backend

import torch
import torch.distributed as dist
from byway.torch import _fused_shape as shapes
from torch.distributed import distributed_c10d as c10d

_GROUPS_TIMEOUT = timedelta(milliseconds=-1)
Tensors = torch.Tensor | Sequence[torch.Tensor]


def _listed(tensors: Tensors | None, what: str) -> list[torch.Tensor]:
    if isinstance(tensors, torch.Tensor):
        return [tensors]
    made = list(tensors or ())
    for tensor in made:
        if not isinstance(tensor, torch.Tensor):
            raise TypeError(f"{what} has a {type(tensor).__name__} where a tensor is expected")
    return made


def _by_type(tensors: Sequence[torch.Tensor]) -> dict[torch.dtype, list[torch.Tensor]]:
    lists: dict[torch.dtype, list[torch.Tensor]] = {}
    for tensor in tensors:
        lists.setdefault(tensor.dtype, []).append(tensor)
    return lists


class FusedCall:
    """One call while it is made. What only this rank can get wrong is refused with make()."""

    def __init__(self, collective, groups, group, op, dtype, key, timeout, roots=None):
        self.collective = collective
        self.group = group if group is not None else c10d._get_default_group()
        self.op = dist.ReduceOp.SUM if op is None else op
        self.dtype = dtype
        self.key = key
        self.timeout = _GROUPS_TIMEOUT if timeout is None else timeout
        self.inputs: list[torch.Tensor] = []
        self.outputs: list[torch.Tensor] = []
        self._asked = groups, roots
        if self.group is not dist.GroupMember.NON_GROUP_MEMBER:
            self.backend = byway_backend(self.group)

    def make(self, counts, async_op: bool, take):
        """Checks, finds the counts, calls. `take` sets inputs and outputs."""
        if self.group is dist.GroupMember.NON_GROUP_MEMBER:
            return None
        try:
            self._place()
            take()
            if self.place.group < 0 and (self.inputs or self.outputs):
                raise ValueError(
                    f"rank {self.backend.rank()} of the group is in none of the groups of the "
                    "call and only helps: it gives [] for tensors and out"
                )
            shape = self._shape(counts)
            types = self._types(shape)
        except shapes.DisagreementError:
            raise
        except (TypeError, ValueError) as error:
            with contextlib.suppress(Exception):  # it tells the others; the reason is `error`
                self.backend.refuse(str(error))
            raise
        work = self.backend.fused(
            self.collective, self.groups, self.roots, types, self.op, self.timeout
        )
        if async_op:
            return work
        work.wait()
        return None

    def _place(self) -> None:
        groups, roots = self._asked
        if not len(groups):
            raise ValueError("groups is empty; give at least one list of ranks")
        ranks = {rank: place for place, rank in enumerate(dist.get_process_group_ranks(self.group))}
        outside = [rank for each in groups for rank in each if rank not in ranks]
        if outside:
            raise ValueError(
                f"groups name rank {outside[0]}, which is not one of the process group's "
                f"{len(ranks)} ranks"
            )
        self.groups = tuple(tuple(ranks[rank] for rank in each) for each in groups)
        listed = [rank for each in self.groups for rank in each]
        if len(set(listed)) != len(listed) or not all(self.groups):
            raise ValueError(f"groups must be disjoint and not empty: {[*map(list, groups)]}")
        self.roots = self._root_places(groups, roots)
        self.place = shapes.place_of(self.backend.rank(), self.groups)
        self.is_root = bool(self.roots) and (
            self.place.group >= 0 and self.roots[self.place.group] == self.place.index
        )

    def _root_places(self, groups, roots) -> tuple[int, ...]:
        if self.collective not in ("broadcast", "reduce"):
            return ()
        if roots is None:
            return (0,) * len(groups)
        if len(roots) != len(groups):
            raise ValueError(f"{len(roots)} roots for {len(groups)} groups; give one for each")
        for root, ranks in zip(roots, groups, strict=True):
            if root not in ranks:
                raise ValueError(f"root {root} is not a rank of its group {list(ranks)}")
        return tuple(list(each).index(root) for root, each in zip(roots, groups, strict=True))

    def take(self, tensors, out, in_place: bool = False) -> None:
        self.inputs = _listed(tensors, "tensors")
        self.outputs = self.inputs if out is None and in_place else _listed(out, "out")
        if len(self.outputs) != len(self.inputs):
            missing = "" if out is not None else f"; fused_{self.collective} needs out="
            raise ValueError(
                f"tensors and out are lists of {len(self.inputs)} and {len(self.outputs)}{missing}"
            )
        self._check_pairs()

    def take_broadcast(self, tensors, out) -> None:
        given = _listed(tensors, "tensors")
        self.outputs = given if out is None else _listed(out, "out")
        self.inputs = given if self.is_root else self.outputs
        if self.is_root and len(self.outputs) != len(given):
            raise ValueError(f"tensors and out are lists of {len(given)} and {len(self.outputs)}")
        self._check_pairs()

    def take_reduce(self, tensors, out) -> None:
        self.inputs = _listed(tensors, "tensors")
        given = self.inputs if out is None else _listed(out, "out")
        if not self.is_root:
            if out is not None and given:
                raise ValueError("out is the root's: other ranks give None or []")
            return
        self.outputs = given
        if len(self.outputs) != len(self.inputs):
            raise ValueError(
                f"tensors and out are lists of {len(self.inputs)} and {len(self.outputs)}"
            )
        self._check_pairs()

    def _check_pairs(self) -> None:
        """Types are the same; sizes too in lists of several, whose blocks are equal."""
        into, onto = {
            "all_gather": (self.place.size, 1),
            "reduce_scatter": (1, self.place.size),
        }.get(self.collective, (1, 1))
        for number, (a, b) in enumerate(zip(self.inputs, self.outputs, strict=True)):
            if a.dtype != b.dtype:
                raise ValueError(f"element {number} is {a.dtype} in tensors and {b.dtype} in out")
            if len(self.inputs) > 1 and a.numel() * into != b.numel() * onto:
                raise ValueError(
                    f"element {number} has {a.numel()} elements in tensors and {b.numel()} in out "
                    f"of fused_{self.collective} among {self.place.size} ranks"
                )

    def _shape(self, counts) -> shapes.Shape:
        if counts is not None:
            first = (self.inputs or self.outputs or [None])[0]
            default = self.dtype or torch.get_default_dtype()
            return shapes.stated(counts, self.groups, default if first is None else first.dtype)
        blocks = self.outputs if self.collective == "reduce_scatter" else self.inputs
        own = shapes.own_counts(self.collective, blocks, self.place)
        sizes = shapes.sizes_digest([*_by_type(blocks).values()])
        key = (self.collective, self.groups, self.roots, self.key)
        return shapes.cache_of(self.group).get(self.backend, key, own, sizes, self.timeout)

    def _types(self, shape: shapes.Shape) -> list:
        from byway.torch._extension import load

        inputs, outputs = _by_type(self.inputs), _by_type(self.outputs)
        for dtype in {*inputs, *outputs} - shape.counts.keys():
            if any(t.numel() for t in [*inputs.get(dtype, ()), *outputs.get(dtype, ())]):
                raise ValueError(f"tensors of {dtype} are not in counts")
        of_type = load().FusedOfType
        return [
            of_type(dtype, counts, inputs.get(dtype, []), outputs.get(dtype, []))
            for dtype, counts in shape.counts.items()
        ]
