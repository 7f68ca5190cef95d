# SPDX-License-Identifier: BSD-3-Clause
"""Every collective of the PyTorch backend against Gloo's, interleaved in one run.

    .venv/bin/python bench/torch_vs_gloo.py [--ranks 2,4,8] [--sizes 8,4096,...] [--dtypes ...]
                                            [--collectives ...] [--json FILE]

A cell is the median of paired ratios Gloo/Byway: the same processes, tensors and moment, the order
of the two changing. At least 15 pairs, more (up to 60) until the interval of the median is within
3 %, else the cell is undecided. Bytes are those of a rank's input. The exit status is 1 if a cell's
interval lies below 1, the geometric mean is below 3, or a collective's mean at 1 MB and above is
below 1.3. Only ratios are printed: absolute times of a busy machine mean nothing.
"""

import argparse
import json
import math
import pathlib
import statistics
import sys
import time

import ranks

FEWEST, MOST, WITHIN = 15, 60, 0.03
MEAN_BAR, LARGE_BAR, LARGE = 3.0, 1.3, 1 << 20
SIZES = [8, 64, 512, 4 << 10, 32 << 10, 256 << 10, 1 << 20, 8 << 20, 64 << 20]
SAMPLE_SECONDS = 0.002  # small calls are repeated until they last this long


def _calls(size: int, count: int, dtype):
    """collective: a function of the group that makes one call, on tensors made once."""
    import torch
    import torch.distributed as dist

    part = max(1, count // size)
    x = torch.ones(part * size, dtype=dtype)
    y = torch.ones(part, dtype=dtype)
    whole = torch.ones(part * size * size, dtype=dtype)
    own = torch.empty_like(x)
    small = torch.empty_like(y)
    parts = list(x.chunk(size))
    wide = list(whole.chunk(size))
    first = dist.get_rank() == 0
    return {
        "all_reduce": lambda g: dist.all_reduce(x, group=g),
        "reduce": lambda g: dist.reduce(x, 0, group=g),
        "broadcast": lambda g: dist.broadcast(x, 0, group=g),
        "all_gather": lambda g: dist.all_gather(wide, x, group=g),
        "all_gather_into_tensor": lambda g: dist.all_gather_into_tensor(whole, x, group=g),
        "reduce_scatter": lambda g: dist.reduce_scatter(small, parts, group=g),
        "reduce_scatter_tensor": lambda g: dist.reduce_scatter_tensor(small, x, group=g),
        "all_to_all_single": lambda g: dist.all_to_all_single(own, x, group=g),
        "gather": lambda g: dist.gather(x, wide if first else None, 0, group=g),
        "scatter": lambda g: dist.scatter(small, parts if first else None, 0, group=g),
        "barrier": lambda g: dist.barrier(g),
    }


COLLECTIVES = [
    "all_reduce", "reduce", "broadcast", "all_gather", "all_gather_into_tensor", "reduce_scatter",
    "reduce_scatter_tensor", "all_to_all_single", "gather", "scatter", "barrier",
]  # fmt: skip


def interval(ratios: list[float]) -> tuple[float, float]:
    """Of the median, by order statistics, at 95 %."""
    ordered, n = sorted(ratios), len(ratios)
    low = max(0, math.floor((n - 1.96 * math.sqrt(n)) / 2))
    return ordered[low], ordered[n - 1 - low]


def _sample(call, group, repeats: int) -> float:
    """Seconds of one call on the slowest rank."""
    import torch
    import torch.distributed as dist

    dist.barrier()
    start = time.perf_counter()
    for _ in range(repeats):
        call(group)
    took = torch.tensor([(time.perf_counter() - start) / repeats], dtype=torch.float64)
    dist.all_reduce(took, dist.ReduceOp.MAX)
    return took.item()


def _cell(call, byway, gloo) -> list[float]:
    once = max(_sample(call, each, 1) for each in (byway, gloo, byway, gloo))
    repeats = max(1, min(200, int(SAMPLE_SECONDS / once)))
    ratios: list[float] = []
    while len(ratios) < MOST:
        order = (byway, gloo) if len(ratios) % 2 == 0 else (gloo, byway)
        times = {id(group): _sample(call, group, repeats) for group in order}
        ratios.append(times[id(gloo)] / times[id(byway)])
        if len(ratios) >= FEWEST:
            low, high = interval(ratios)
            if high - low < 2 * WITHIN * statistics.median(ratios):
                break
    return ratios


def _rank(rank: int, size: int, store: str, report, asked) -> None:
    import torch
    import torch.distributed as dist

    import byway.torch

    torch.set_num_threads(1)
    dist.init_process_group("byway", rank=rank, world_size=size, store=dist.FileStore(store, size))
    byway, gloo = dist.group.WORLD, dist.new_group(backend="gloo")
    for dtype in asked.dtypes.split(","):
        kind = getattr(torch, dtype)
        for nbytes in map(int, asked.sizes.split(",")):
            calls = _calls(size, max(1, nbytes // kind.itemsize), kind)
            for collective in asked.collectives.split(","):
                if collective == "barrier" and nbytes != int(asked.sizes.split(",")[0]):
                    continue
                ratios = _cell(calls[collective], byway, gloo)
                if rank == 0:
                    report((collective, dtype, nbytes, size, ratios))
    dist.destroy_process_group()


def measure(size: int, asked) -> list[dict]:
    cells = []
    for collective, dtype, nbytes, _, ratios in ranks.reports(size, _rank, asked):
        low, high = interval(ratios)
        median = statistics.median(ratios)
        cell = {"collective": collective, "dtype": dtype, "bytes": nbytes, "ranks": size}
        cell |= {"ratio": median, "interval": [low, high], "samples": len(ratios)}
        cell["decided"] = high - low < 2 * WITHIN * median or low > 1 or high < 1
        cells.append(cell)
        mark = "" if cell["decided"] else "  undecided"
        print(
            f"{size} ranks  {collective:<24}{dtype:<10}{nbytes:>10} B  {median:7.2f}  "
            f"[{low:.2f}, {high:.2f}]{mark}",
            flush=True,
        )
    return cells


def mean(cells: list[dict]) -> float:
    return math.exp(statistics.fmean(math.log(cell["ratio"]) for cell in cells))


def judge(cells: list[dict]) -> bool:
    """Prints what the bars say of the cells; whether all are kept."""
    below = [cell for cell in cells if cell["interval"][1] < 1]
    undecided = sum(not cell["decided"] for cell in cells)
    print(f"{len(cells)} cells, {len(below)} below 1.0, {undecided} undecided")
    print(f"geometric mean {mean(cells):.2f} (bar {MEAN_BAR})")
    good = not below and mean(cells) >= MEAN_BAR and undecided <= 0.02 * len(cells)
    for collective in dict.fromkeys(cell["collective"] for cell in cells):
        large = [c for c in cells if c["collective"] == collective and c["bytes"] >= LARGE]
        if not large:
            continue
        print(f"  {collective:<24} 1 MB and above: {mean(large):.2f} (bar {LARGE_BAR})")
        good = good and mean(large) >= LARGE_BAR
    return good


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--ranks", default="2,4,8")
    parser.add_argument("--sizes", default=",".join(map(str, SIZES)), help="bytes")
    parser.add_argument("--dtypes", default="float32,bfloat16")
    parser.add_argument("--collectives", default=",".join(COLLECTIVES))
    parser.add_argument("--json", help="write the cells to this file")
    asked = parser.parse_args()
    unknown = set(asked.collectives.split(",")) - set(COLLECTIVES)
    if unknown:
        parser.error(f"--collectives: no such: {', '.join(sorted(unknown))}")
    cells = [cell for size in map(int, asked.ranks.split(",")) for cell in measure(size, asked)]
    if asked.json:
        pathlib.Path(asked.json).write_text(json.dumps(cells, indent=1) + "\n")
    return 0 if judge(cells) else 1


if __name__ == "__main__":
    sys.exit(main())
