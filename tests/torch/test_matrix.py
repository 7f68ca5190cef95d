# SPDX-License-Identifier: BSD-3-Clause
"""Every collective by every entry point, over types, operations, layouts, worlds and groups."""

import collections
import itertools
import random

import cells
import layouts
import oracle
import pytest
import ranks

SEED = 20261
SHAPES = [(6, 4), (2, 3, 4, 5), (0, 4), (1, 1)]
AXES = ("entry", "dtype", "op", "layout", "shape", "ranks", "root", "asynchronous")


def groups_of(size: int) -> list[tuple[int, ...] | None]:
    """The world, and groups that are a part of it, with a gap, and out of order."""
    found = [None]
    if size >= 2:
        found.append((size - 1,))
    if size >= 3:
        found += [(0, 2), (2, 0, 1)]
    if size >= 4:
        found += [(3, 1), (1, 2, 3)]
    return found


def pairwise(size: int) -> list[cells.Cell]:
    """For each entry point all types, all operations, all layouts and all groups, each at least
    once, the other axes drawn at random."""
    draw = random.Random(SEED + size)
    made = []
    for entry in cells.ENTRIES:
        reduces = entry in {f.__name__ for f in cells.REDUCES}
        ops = oracle.OPS if reduces else ["sum"]
        axes = [
            [("dtype", dtype) for dtype in oracle.DTYPES],
            [("op", op) for op in ops],
            [("layout", layout) for layout in layouts.LAYOUTS],
            [("ranks", group) for group in groups_of(size)],
            [("shape", shape) for shape in SHAPES],
            [("root", root) for root in range(size)],
        ]
        for name, value in itertools.chain(*axes):
            chosen = {axis[0][0]: draw.choice(axis)[1] for axis in axes}
            chosen[name] = value
            if not oracle.allowed(chosen["dtype"], chosen["op"]):
                keep = "op" if name == "op" else "dtype"
                other = "dtype" if keep == "op" else "op"
                values = oracle.DTYPES if other == "dtype" else ops
                fitting = [
                    v
                    for v in values
                    if oracle.allowed(
                        v if other == "dtype" else chosen["dtype"],
                        v if other == "op" else chosen["op"],
                    )
                ]
                chosen[other] = draw.choice(fitting)
            made.append(
                cells.Cell(
                    entry=entry,
                    call=len(made) % 97,
                    asynchronous=draw.random() < 0.5 and entry not in cells.BLOCKING_ONLY,
                    **chosen,
                )
            )
    return made


def everything(size: int, entry: str):
    """Every type with every operation that it has, in every layout and group, synchronous and
    not; shapes and roots take turns."""
    ops = oracle.OPS if entry in {f.__name__ for f in cells.REDUCES} else ["sum"]
    waits = [False] if entry in cells.BLOCKING_ONLY else [False, True]
    axes = itertools.product(oracle.DTYPES, ops, layouts.LAYOUTS, groups_of(size), waits)
    for n, (dtype, op, layout, group, asynchronous) in enumerate(axes):
        # Other periods than the axes have, so that each shape and root meets all of their values.
        yield cells.Cell(
            entry, dtype, op, layout, SHAPES[n // 7 % len(SHAPES)], group, n // 11 % size,
            asynchronous, n % 97,
        )  # fmt: skip


def complex_through_torch(cell: cells.Cell) -> bool:
    """torch itself refuses products of complex numbers, and views them as pairs of reals."""
    reduces = cell.entry in {f.__name__ for f in cells.REDUCES}
    return reduces and cell.dtype in oracle.COMPLEX and cell.op == "product"


def run_chosen(size: int, chosen) -> list[cells.Cell]:
    """The cells that were run: those of `chosen` that torch has."""
    chosen = [
        cell
        for cell in chosen
        if oracle.allowed(cell.dtype, cell.op) and not complex_through_torch(cell)
    ]
    ran = ranks.team(size).run(cells.run_cells, chosen)
    assert sum(ran) >= len(chosen)
    return chosen


@pytest.mark.parametrize("size", [1, 2, 3, 4])
@pytest.mark.parametrize("entry", cells.ENTRIES)
def test_entry_point(entry, size):
    run_chosen(size, (cell for cell in pairwise(size) if cell.entry == entry))


@pytest.mark.full
@pytest.mark.parametrize("size", [5, 6, 7, 8])
def test_larger_worlds(size):
    run_chosen(size, pairwise(size))


@pytest.fixture(scope="module")
def counts(request):
    """Of cells, by axis and value; printed when the module is through."""
    found = {axis: collections.Counter() for axis in AXES}
    yield found
    total = sum(found["entry"].values())
    if not total:
        return
    with request.config.pluginmanager.getplugin("capturemanager").global_and_fixture_disabled():
        print(f"\nmatrix: {total} cells")
        for axis, values in found.items():
            print(f"  {axis}: " + ", ".join(f"{v} {n}" for v, n in sorted(values.items(), key=str)))


@pytest.mark.full
@pytest.mark.parametrize("size", [1, 2, 3, 4])
@pytest.mark.parametrize("entry", cells.ENTRIES)
def test_every_combination(entry, size, counts):
    for cell in run_chosen(size, everything(size, entry)):
        for axis, values in counts.items():
            values[getattr(cell, axis)] += 1
