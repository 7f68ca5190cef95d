# SPDX-License-Identifier: BSD-3-Clause
"""What compiled collectives cost, against eager ones of the same run.

    .venv/bin/python bench/compiled.py [--ranks 2] [--json FILE]

overlap: a transfer that takes 100 ms on paced links and a computation of about as long, in one
    inductor graph; the time of both over the time of the longer one, and the same for eager code.
cost: the slope between programs of 1 and of 50 small all-reduces, compiled over eager.

Exit status 1 if the overlap is above 1.3 or the cost above 1.5.
"""

import argparse
import json
import statistics
import sys
import time
import warnings

import ranks

OVERLAP_BAR, COST_BAR = 1.3, 1.5
TRANSFER_S, RATE = 0.1, 20_000_000  # bytes per second
ROUNDS = 9
SMALL, MANY = 256, 50


def _timed(function, rounds, before):
    times = []
    for _ in range(rounds):
        before()
        start = time.perf_counter()
        function()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def _overlap(rank, size):
    import torch
    import torch.distributed as dist

    numbers = int(TRANSFER_S * RATE) // 4
    x = torch.full((numbers,), float(rank))
    m = torch.randn(256, 256) / 16

    def transfer(x):
        out = torch.empty(size, numbers)
        return out, dist.all_gather_into_tensor(out, x, async_op=True)

    def compute(m, steps):
        z = m
        for _ in range(steps):
            z = torch.tanh(z @ m)
        return z

    step_s = _timed(lambda: compute(m, 20), 5, lambda: None) / 20
    steps = max(1, int(TRANSFER_S / step_s))
    torch._dynamo.config.recompile_limit = 64

    def both(x, m):
        out, work = transfer(x * 2)
        z = compute(m, steps)
        work.wait()
        return out.sum() + z.sum()

    def only_transfer(x, m):
        out, work = transfer(x * 2)
        work.wait()
        return out.sum()

    def only_compute(x, m):
        return compute(m, steps).sum()

    times = {}
    for name, program in (("both", both), ("transfer", only_transfer), ("compute", only_compute)):
        compiled = torch.compile(program, fullgraph=True)
        compiled(x, m)
        for how, function in (("eager", program), ("compiled", compiled)):
            times[name, how] = _timed(lambda f=function: f(x, m), ROUNDS, dist.barrier)
    result = {
        "transfer_s": times["transfer", "compiled"],
        "compute_s": times["compute", "compiled"],
    }
    for how in ("eager", "compiled"):
        longer = max(times["transfer", how], times["compute", how])
        result[f"both_{how}_s"] = times["both", how]
        result[f"overlap_{how}"] = times["both", how] / longer
    return result


def _cost(rank, size):
    import torch
    import torch.distributed as dist

    def program(count):
        def fn(x):
            for _ in range(count):
                dist.all_reduce(x)
            return x

        return fn

    x = torch.zeros(SMALL)
    times = {}
    for count in (1, MANY):
        compiled = torch.compile(program(count), fullgraph=True)
        compiled(x)
        # Interleaved, so that whatever else runs slows both.
        pairs = [
            [_timed(lambda f=f: f(x), 3, dist.barrier) for f in (program(count), compiled)]
            for _ in range(ROUNDS)
        ]
        times[count] = [statistics.median(column) for column in zip(*pairs, strict=True)]
    eager, compiled = ((b - a) / (MANY - 1) for a, b in zip(times[1], times[MANY], strict=True))
    return {"eager_call_s": eager, "compiled_call_s": compiled, "cost": compiled / eager}


def _rank(rank, size, store, report):
    import torch
    import torch.distributed as dist

    import byway.torch

    torch.set_num_threads(1)
    warnings.simplefilter("ignore", FutureWarning)  # torch 2.13 has new names for old calls
    results = {}
    for name, measure, options in (
        ("cost", _cost, None),
        ("overlap", _overlap, byway.torch.Options(pace=str(RATE))),
    ):
        dist.init_process_group(
            "byway",
            rank=rank,
            world_size=size,
            store=dist.FileStore(f"{store}-{name}", size),
            pg_options=options,
        )
        results[name] = measure(rank, size)
        dist.destroy_process_group()
    report(results)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--json", metavar="FILE", help="also write the numbers there")
    options = parser.parse_args()
    results = list(ranks.reports(options.ranks, _rank))
    worst = max(results, key=lambda r: r["overlap"]["overlap_compiled"])
    overlap, cost = (
        worst["overlap"],
        max((r["cost"] for r in results), key=lambda c: c["cost"]),
    )
    print(
        f"overlap  {overlap['overlap_compiled']:.2f} compiled, "
        f"{overlap['overlap_eager']:.2f} eager "
        f"(transfer {overlap['transfer_s'] * 1e3:.0f} ms, "
        f"compute {overlap['compute_s'] * 1e3:.0f} ms)\n"
        f"cost     {cost['cost']:.2f} (a call: {cost['compiled_call_s'] * 1e6:.1f} us compiled, "
        f"{cost['eager_call_s'] * 1e6:.1f} us eager)"
    )
    if options.json:
        with open(options.json, "w") as file:
            json.dump({"overlap": overlap, "cost": cost}, file, indent=2)
    return int(overlap["overlap_compiled"] > OVERLAP_BAR or cost["cost"] > COST_BAR)


if __name__ == "__main__":
    sys.exit(main())
