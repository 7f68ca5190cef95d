# SPDX-License-Identifier: BSD-3-Clause
"""A small recommender in replicas: what share of a step the replicas' sync takes, without relay and
with it.

byway run -n 4 -- python examples/torch/recommender.py
byway run -n 8 -- python examples/torch/recommender.py --replicas 4

Each replica spreads its embedding tables over its ranks, and after every step the ranks that hold
the same tables, which are neighbours, average them. The links are paced, so that they are what the
time goes into: a pair has one link of its own each way, and relay adds those to all other ranks.
"""

import argparse
import os
import statistics
import time

import torch
import torch.distributed as dist
from torch.distributed._functional_collectives import all_to_all_single_autograd

import byway.torch

TABLES, WIDTH, BATCH = 2, 32, 64  # tables of a rank, samples of a rank


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--replicas", type=int, default=2, help="must divide the number of ranks")
    parser.add_argument("--rows", type=int, default=20000, help="of each table")
    parser.add_argument("--rate", default="20M", help="of each link, in bytes per second")
    parser.add_argument("--steps", type=int, default=5)
    return parser.parse_args()


class Recommender(torch.nn.Module):
    """This rank's tables, and a dense part that every rank has."""

    def __init__(self, rows: int, replica):
        super().__init__()
        self.tables = torch.nn.ModuleList(
            torch.nn.EmbeddingBag(rows, WIDTH, mode="sum") for _ in range(TABLES)
        )
        self.replica = replica
        self.parts = dist.get_world_size(replica)
        self.dense = torch.nn.Sequential(
            torch.nn.Linear(self.parts * TABLES * WIDTH, 64),
            torch.nn.ReLU(),
            torch.nn.Linear(64, 1),
        )

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        """`ids`: [samples of the replica, tables of the rank, ids of a sample]."""
        own = torch.cat([table(ids[:, i]) for i, table in enumerate(self.tables)], dim=1)
        # Every rank has its tables' rows for all samples, and needs all tables' for its own.
        counts = [BATCH] * self.parts
        mixed = all_to_all_single_autograd(own, counts, counts, self.replica)
        return self.dense(torch.cat([*mixed.reshape(self.parts, BATCH, TABLES * WIDTH)], dim=1))


def train(model, given, same_tables, group, seed: int) -> tuple[float, list[float]]:
    """Seconds of all steps, and of the sync in each."""
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    make = torch.Generator().manual_seed(seed)
    weights = [table.weight.data for table in model.tables]
    start, syncs = 0.0, []
    for step in range(-1, given.steps):  # the first is not counted
        if step == 0:
            dist.barrier()
            start, syncs = time.perf_counter(), []
        ids = torch.randint(given.rows, (model.parts * BATCH, TABLES, 4), generator=make)
        target = (ids[:BATCH].sum(dim=(1, 2)) % 2).float().unsqueeze(1)
        loss = torch.nn.functional.binary_cross_entropy_with_logits(model(ids), target)
        optimizer.zero_grad()
        loss.backward()
        for parameter in model.dense.parameters():
            dist.all_reduce(parameter.grad, op=dist.ReduceOp.AVG)
        optimizer.step()
        dist.barrier()  # so that the sync's time is its own, not the wait for slower ranks
        before = time.perf_counter()
        byway.torch.fused_all_reduce(weights, same_tables, op=dist.ReduceOp.AVG, group=group)
        syncs.append(time.perf_counter() - before)
    return time.perf_counter() - start, syncs


def main() -> None:
    given = parse()
    torch.set_num_threads(1)
    world = int(os.environ["WORLD_SIZE"])
    links = {"topology": f"mesh:{world}@{given.rate},20", "pace": f"{given.rate},20"}
    dist.init_process_group("byway", pg_options=byway.torch.Options(**links))
    rank, count = dist.get_rank(), given.replicas
    if world % count or world == count:
        raise SystemExit(f"{count} replicas of {world} ranks: give a divisor, with ranks to share")
    same_tables = [[*range(first, first + count)] for first in range(0, world, count)]
    replicas = [dist.new_group([*range(number, world, count)]) for number in range(count)]
    replica = replicas[rank % count]
    groups = {
        name: dist.new_group(pg_options=byway.torch.Options(route=route, **links))
        for name, route in (("direct", "direct"), ("relay", ""))
    }
    found, medians = {}, {}
    for name, group in groups.items():
        torch.manual_seed(rank // count)
        model = Recommender(given.rows, replica)
        for parameter in model.dense.parameters():
            dist.broadcast(parameter.data, 0)
        total, syncs = train(model, given, same_tables, group, seed=rank % count)
        route = byway.torch.recorded_calls(group)["calls"][-1]["route"]
        found[name] = sum(table.weight.double().sum().item() for table in model.tables)
        medians[name] = statistics.median(syncs)
        if rank == 0:
            print(
                f"{name} ({route}): a step takes {1e3 * total / given.steps:.1f} ms, of which the "
                f"sync {1e3 * medians[name]:.1f} ms ({100 * sum(syncs) / total:.0f} %)"
            )
    if rank == 0:
        megabytes = TABLES * given.rows * WIDTH * 4 / 1e6
        print(
            f"the sync of {megabytes:.1f} MB a rank with relay takes "
            f"{medians['relay'] / medians['direct']:.3f} of the time without"
        )
        same = found["direct"] == found["relay"]
        print(f"weights are {'the same' if same else 'different'} with relay and without")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
