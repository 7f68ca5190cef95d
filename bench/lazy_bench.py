#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Lazy mode's cost, and its overlap of calls with computation; two processes of this host.

    bench/lazy_bench.py cost       recording a call; a step of 20 x (matmul, tanh, all_reduce) on
                                   square matrices of SIZES against the eager loop, in alternation,
                                   and the same step without its calls
    bench/lazy_bench.py overlap    one lazy step with an asynchronous all_reduce on paced links and
                                   computation that does not need it, against each alone

Ratios are medians of pairs with the 95 % interval of their order statistics. Pairs are added until
half the interval is below 3 %; where MOST do not suffice the ratio is undecided. A bar is missed
where the whole interval is on its wrong side. Both print one JSON object and exit with 1 where a
bar is missed. BYWAY_TORCH_EXTENSION names the extension, as in the tests.
"""

from __future__ import annotations

import functools
import json
import os
import statistics
import sys
import time

import ranks

RANKS = 2
SIZES = {64: 40, 256: 3}  # steps of a sample: about a tenth of a second
LENGTH = 20
PAIRS, MOST = 21, 60
HALF_WIDTH = 0.03
PACE = 40_000_000  # bytes/s
RECORD_BAR_US, STEP_BAR, OVERLAP_BAR = 50.0, 1.0, 1.4


def _timed(function) -> float:
    import torch.distributed as dist

    dist.barrier()
    began = time.perf_counter()
    function()
    return time.perf_counter() - began


def interval(values: list[float]) -> tuple[float, float]:
    """About 95 % of the median, from order statistics."""
    ordered, count = sorted(values), len(values)
    reach = 0.98 * count**0.5
    return ordered[max(0, int(count / 2 - reach))], ordered[min(count - 1, int(count / 2 + reach))]


def paired(sample) -> tuple[list, dict]:
    """`sample`: one row and its ratio. The rows, and the ratio with what is known of it."""
    import torch.distributed as dist

    rows, ratios = [], []
    while True:
        row, ratio = sample()
        rows.append(row)
        ratios.append(ratio)
        if len(ratios) < PAIRS:
            continue
        low, high = interval(ratios)
        middle = statistics.median(ratios)
        decided = (high - low) / 2 < HALF_WIDTH * middle
        enough = [decided or len(ratios) == MOST]
        dist.broadcast_object_list(enough, 0)  # all ranks take the same number
        if enough[0]:
            return rows, {
                "ratio": middle,
                "interval": [low, high],
                "pairs": len(ratios),
                "decided": decided,
            }


def cost() -> dict:
    found = {str(size): step_cost(size, steps) for size, steps in SIZES.items()}
    record_us = recording()
    met = all(row["lazy_over_eager"]["interval"][0] <= STEP_BAR for row in found.values())
    return {
        "record_us": record_us,
        "by_size": found,
        "met": record_us < RECORD_BAR_US and met,
    }


def recording(count: int = 200) -> float:
    """Microseconds of recording one all_reduce, the median."""
    import torch
    import torch._lazy
    import torch.distributed as dist

    def once():
        x = torch.ones(4, device="lazy")
        torch._lazy.mark_step(wait=True)
        began = time.perf_counter()
        for _ in range(count):
            dist.all_reduce(x)
        seconds = time.perf_counter() - began
        torch._lazy.mark_step(wait=True)
        return seconds / count * 1e6

    once()
    return statistics.median(once() for _ in range(PAIRS))


def step_cost(size: int, steps: int) -> dict:
    """A step with its calls, and without: what the lazy tensors cost by themselves."""
    import torch.distributed as dist

    average = functools.partial(dist.all_reduce, op=dist.ReduceOp.AVG)
    whole, alone = lazy_over_eager(size, steps, average), lazy_over_eager(size, steps, None)
    return {**whole, "without_calls": alone["lazy_over_eager"]}


def lazy_over_eager(size: int, steps: int, call) -> dict:
    import torch
    import torch._lazy

    def program(x, weight):
        for _ in range(LENGTH):
            x = (x @ weight).tanh()
            if call:
                call(x)
        return x

    start, matrix = torch.ones(size, size) / size, torch.full((size, size), 1 / size)
    lazy_start, lazy_matrix = start.to("lazy"), matrix.to("lazy")

    def eager():
        program(start, matrix)

    def recorded():
        kept = program(lazy_start, lazy_matrix)
        torch._lazy.mark_step(wait=True)
        del kept

    def several(step):
        for _ in range(steps):
            step()

    for _ in range(3):
        eager(), recorded()

    def sample():
        pair = _timed(lambda: several(eager)), _timed(lambda: several(recorded))
        return pair, pair[1] / pair[0]

    pairs, found = paired(sample)
    return {
        "eager_step_ms": statistics.median(e for e, _ in pairs) * 1e3 / steps,
        "lazy_step_ms": statistics.median(lazily for _, lazily in pairs) * 1e3 / steps,
        "lazy_over_eager": found,
    }


def overlap() -> dict:
    import torch
    import torch._lazy
    import torch.distributed as dist

    data = torch.ones(1_000_000, device="lazy")  # 4 MB: a tenth of a second of link time
    matrix = torch.eye(512, device="lazy")
    torch._lazy.mark_step(wait=True)
    products = 1

    def compute(x):
        for _ in range(products):
            x = x @ matrix
        return x

    def call_alone():
        x = data * 1
        dist.all_reduce(x, async_op=True).wait()
        torch._lazy.mark_step(wait=True)

    def compute_alone():
        kept = compute(matrix)
        torch._lazy.mark_step(wait=True)
        del kept

    def both():
        x = data * 1
        work = dist.all_reduce(x, async_op=True)
        kept = compute(matrix)
        work.wait()
        torch._lazy.mark_step(wait=True)
        del kept

    call_alone(), call_alone()
    wanted = _timed(call_alone)
    compute_alone()
    once = min(_timed(compute_alone) for _ in range(3))
    # The same computation on every rank, as long as the transfer is.
    chosen = [max(1, round(wanted / once))]
    dist.broadcast_object_list(chosen, 0)
    products = chosen[0]
    both(), compute_alone(), call_alone()

    def sample():
        row = _timed(call_alone), _timed(compute_alone), _timed(both)
        return row, row[2] / max(row[:2])

    rows, found = paired(sample)
    return {
        "call_ms": statistics.median(row[0] for row in rows) * 1e3,
        "compute_ms": statistics.median(row[1] for row in rows) * 1e3,
        "both_ms": statistics.median(row[2] for row in rows) * 1e3,
        "both_over_longer": found,
        "met": found["interval"][0] <= OVERLAP_BAR,
    }


def _rank(rank: int, size: int, store: str, report, name: str) -> None:
    import byway.lazy
    import torch
    import torch.distributed as dist

    import byway.torch

    torch.set_num_threads(1)
    byway.lazy.init()
    dist.init_process_group("byway", rank=rank, world_size=size, store=dist.FileStore(store, size))
    result = {"cost": cost, "overlap": overlap}[name]()
    if rank == 0:
        report(result)
    dist.barrier()
    dist.destroy_process_group()


def main() -> int:
    if sys.argv[1:] not in (["cost"], ["overlap"]):
        print(__doc__)
        return 2
    os.environ["OMP_NUM_THREADS"] = "1"
    if sys.argv[1] == "overlap":
        os.environ["BYWAY_PACE"] = str(PACE)
    (result,) = ranks.reports(RANKS, _rank, sys.argv[1])
    print(json.dumps({"byway": "lazy_bench", "what": sys.argv[1], "ranks": RANKS, **result}))
    return int(not result["met"])


if __name__ == "__main__":
    sys.exit(main())
