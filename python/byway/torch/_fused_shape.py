# SPDX-License-Identifier: BSD-3-Clause
"""How many elements of which type every group of a fused call moves: stated, or exchanged once."""

from __future__ import annotations

import dataclasses
import hashlib
import weakref
from collections.abc import Hashable, Mapping, Sequence

import torch

# The types of a row of counts, in its order; those that this torch has.
TYPES = tuple(
    getattr(torch, name)
    for name in (
        *("float32", "float16", "bfloat16", "float64", "int64", "int32", "int16", "int8", "uint8"),
        *("bool", "uint16", "uint32", "uint64", "complex64", "complex128", "complex32"),
        *("float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz", "float8_e8m0fnu"),
    )
    if hasattr(torch, name)
)
# Collectives of which each rank has a block of its own size.
BLOCKS_DIFFER = ("all_gather", "reduce_scatter")

Groups = tuple[tuple[int, ...], ...]
Counts = list[list[int]]  # for each group one count for all of its blocks, or one for each block


@dataclasses.dataclass(frozen=True)
class Place:
    """Where a rank is in the groups of a call; `group` is -1 on ranks that only help."""

    group: int
    index: int
    size: int


def place_of(rank: int, groups: Groups) -> Place:
    for number, ranks in enumerate(groups):
        if rank in ranks:
            return Place(number, ranks.index(rank), len(ranks))
    return Place(-1, -1, 0)


class Shape:
    """The counts of a call by type; types that no group has are left out."""

    def __init__(self, counts: Mapping[torch.dtype, Counts]):
        self.counts = {dtype: each for dtype, each in counts.items() if any(map(any, each))}

    def own(self, place: Place) -> dict[torch.dtype, int]:
        """What own_counts() gives on a rank whose tensors fit."""
        mine = {}
        for dtype, each in self.counts.items():
            blocks = each[place.group]
            mine[dtype] = blocks[0] if len(blocks) == 1 else blocks[place.index]
        return {dtype: count for dtype, count in mine.items() if count}


def own_counts(
    collective: str, blocks: Sequence[torch.Tensor], place: Place
) -> dict[torch.dtype, int]:
    """What one rank says of its tensors: its block, or for all_to_all one segment."""
    totals: dict[torch.dtype, int] = {}
    for tensor in blocks:
        totals[tensor.dtype] = totals.get(tensor.dtype, 0) + tensor.numel()
    if collective == "all_to_all":
        for dtype, total in totals.items():
            if total % place.size:
                raise ValueError(
                    f"{total} elements of {dtype} do not divide among {place.size} ranks; give "
                    "counts"
                )
            totals[dtype] = total // place.size
    return {dtype: count for dtype, count in totals.items() if count}


def stated(counts, groups: Groups, dtype: torch.dtype) -> Shape:
    """The shape that the caller gives: one entry a group, or such a list for each type."""
    by_type = counts if isinstance(counts, Mapping) else {dtype: counts}
    return Shape({kind: _listed(each, groups) for kind, each in by_type.items()})


def _listed(counts, groups: Groups) -> Counts:
    if len(counts) != len(groups):
        raise ValueError(f"{len(counts)} counts for {len(groups)} groups; give one for each")
    return [_flat(count) for count in counts]


def _flat(count) -> list[int]:
    if isinstance(count, int):
        if count < 0:
            raise ValueError(f"a count is {count}; it is a number of elements")
        return [count]
    flat = [number for part in count for number in _flat(part)]
    if not flat:
        raise ValueError("a group's list of counts is empty")
    return flat


def _digest(*what) -> int:
    """63 bits, the same in every process."""
    return int.from_bytes(hashlib.blake2b(repr(what).encode(), digest_size=8).digest(), "big") >> 1


def sizes_digest(lists: Sequence[Sequence[torch.Tensor]]) -> int:
    """Of the sizes within lists of several tensors, which all ranks of a group must share."""
    sizes = [(str(each[0].dtype), [t.numel() for t in each]) for each in lists if len(each) > 1]
    return _digest(sizes) if sizes else 0


class ShapeCache:
    """Shapes of a process group's calls that state no counts, by what every rank knows of them."""

    def __init__(self):
        self._shapes: dict[Hashable, Shape] = {}

    def get(self, backend, key, own: dict[torch.dtype, int], sizes: int, timeout) -> Shape:
        """The shape of `key` (collective, groups, roots, the caller's name for it).

        At the first call of a key every rank tells the others `own`, its counts, and `sizes`.
        """
        collective, groups = key[:2]
        place = place_of(backend.rank(), groups)
        if key not in self._shapes:
            unknown = [str(dtype) for dtype in own if dtype not in TYPES]
            if unknown:
                raise ValueError(f"{unknown[0]} is no type that Byway moves")
            row = [_digest(*key), sizes, *(own.get(dtype, 0) for dtype in TYPES)]
            flat = backend.exchange_counts(row, timeout)
            rows = [flat[at : at + len(row)] for at in range(0, len(flat), len(row))]
            self._shapes[key] = _agreed(collective, groups, rows)
            return self._shapes[key]
        shape = self._shapes[key]
        if place.group >= 0 and shape.own(place) != own:
            raise ValueError(
                f"this rank's tensors have {_words(own)}, but had {_words(shape.own(place))} at "
                "the first call with these groups, when counts were exchanged; give counts=, or "
                "another key= for each shape, on every rank"
            )
        return shape


def _words(own: dict[torch.dtype, int]) -> str:
    texts = [f"{count} of {str(dtype).removeprefix('torch.')}" for dtype, count in own.items()]
    return ", ".join(texts) or "no elements"


class DisagreementError(ValueError):
    """Raised alike on every rank, since all have the same rows."""


def _agreed(collective: str, groups: Groups, rows: list[list[int]]) -> Shape:
    other = next((rank for rank, row in enumerate(rows) if row[0] != rows[0][0]), None)
    if other is not None:
        raise DisagreementError(
            f"ranks 0 and {other} call fused_{collective} with different groups, roots, key or "
            "collective"
        )
    counts: dict[torch.dtype, Counts] = {dtype: [] for dtype in TYPES}
    for ranks in groups:
        first = rows[ranks[0]]
        for rank in ranks:
            if rows[rank][1] != first[1]:
                raise DisagreementError(
                    f"the lists of ranks {ranks[0]} and {rank}, which are in one group, have "
                    "tensors of different sizes"
                )
        for place, dtype in enumerate(TYPES, start=2):
            each = [rows[rank][place] for rank in ranks]
            if len(set(each)) == 1:
                counts[dtype].append(each[:1])
            elif collective in BLOCKS_DIFFER:
                counts[dtype].append(each)
            else:
                text = ", ".join(f"rank {r}: {c}" for r, c in zip(ranks, each, strict=True))
                raise DisagreementError(
                    f"ranks of one group have different numbers of elements of {dtype}: {text}"
                )
    return Shape(counts)


_caches: weakref.WeakKeyDictionary = weakref.WeakKeyDictionary()


def cache_of(group) -> ShapeCache:
    """The cache of a process group; it goes with the group."""
    return _caches.setdefault(group, ShapeCache())
