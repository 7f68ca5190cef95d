# SPDX-License-Identifier: BSD-3-Clause
"""A small recommender in two replicas of two ranks: what share of a step the replicas' sync takes,
without relay and with it.

byway run -n 4 -- python examples/torch/recommender.py

Each replica spreads its embedding tables over its ranks, and after every step the ranks that hold
the same tables average them. The links are paced, so that they are what the time goes into: a pair
has one link of its own each way, and relay adds the three others.
"""

import argparse
import time

import torch
import torch.distributed as dist
from torch.distributed._functional_collectives import all_to_all_single_autograd

import byway.torch

REPLICAS = [[0, 2], [1, 3]]  # each has all tables
SAME_TABLES = [[0, 1], [2, 3]]  # the ranks that must agree
TABLES, WIDTH, BATCH, STEPS = 2, 32, 64, 5  # tables of a rank, samples of a rank


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=20000, help="of each table")
    parser.add_argument("--rate", default="40M", help="of each link, in bytes per second")
    return parser.parse_args()


class Recommender(torch.nn.Module):
    """This rank's tables, and a dense part that every rank has."""

    def __init__(self, rows: int, replica):
        super().__init__()
        self.tables = torch.nn.ModuleList(
            torch.nn.EmbeddingBag(rows, WIDTH, mode="sum") for _ in range(TABLES)
        )
        self.dense = torch.nn.Sequential(
            torch.nn.Linear(2 * TABLES * WIDTH, 64), torch.nn.ReLU(), torch.nn.Linear(64, 1)
        )
        self.replica = replica

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        """`ids`: [samples of the replica, tables of the rank, ids of a sample]."""
        own = torch.cat([table(ids[:, i]) for i, table in enumerate(self.tables)], dim=1)
        # Every rank has its tables' rows for all samples, and needs all tables' for its own.
        mixed = all_to_all_single_autograd(own, [BATCH] * 2, [BATCH] * 2, self.replica)
        halves = mixed.reshape(2, BATCH, TABLES * WIDTH)
        return self.dense(torch.cat([halves[0], halves[1]], dim=1))


def train(model, rows: int, group, seed: int) -> tuple[float, float]:
    """Seconds of all steps, and of the sync within them."""
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    make = torch.Generator().manual_seed(seed)
    weights = [table.weight.data for table in model.tables]
    start, syncing = 0.0, 0.0
    for step in range(-1, STEPS):  # the first is not counted
        if step == 0:
            dist.barrier()
            start, syncing = time.perf_counter(), 0.0
        ids = torch.randint(rows, (2 * BATCH, TABLES, 4), generator=make)
        target = (ids[:BATCH].sum(dim=(1, 2)) % 2).float().unsqueeze(1)
        loss = torch.nn.functional.binary_cross_entropy_with_logits(model(ids), target)
        optimizer.zero_grad()
        loss.backward()
        for parameter in model.dense.parameters():
            dist.all_reduce(parameter.grad, op=dist.ReduceOp.AVG)
        optimizer.step()
        dist.barrier()  # so that the sync's time is its own, not the wait for slower ranks
        before = time.perf_counter()
        byway.torch.fused_all_reduce(weights, SAME_TABLES, op=dist.ReduceOp.AVG, group=group)
        syncing += time.perf_counter() - before
    return time.perf_counter() - start, syncing


def main() -> None:
    given = parse()
    torch.set_num_threads(1)
    links = {"topology": f"mesh:4@{given.rate},20", "pace": f"{given.rate},20"}
    dist.init_process_group("byway", pg_options=byway.torch.Options(**links))
    rank = dist.get_rank()
    replicas = [dist.new_group(ranks) for ranks in REPLICAS]
    replica = replicas[0] if rank in REPLICAS[0] else replicas[1]
    everybody = list(range(4))
    groups = {
        "direct": dist.new_group(
            everybody, pg_options=byway.torch.Options(route="direct", **links)
        ),
        "relay": dist.new_group(everybody, pg_options=byway.torch.Options(**links)),
    }
    found = {}
    for name, group in groups.items():
        torch.manual_seed(rank // 2)
        model = Recommender(given.rows, replica)
        for parameter in model.dense.parameters():
            dist.broadcast(parameter.data, 0)
        total, sync = train(model, given.rows, group, seed=rank % 2)
        route = byway.torch.recorded_calls(group)["calls"][-1]["route"]
        found[name] = sum(table.weight.double().sum().item() for table in model.tables)
        if rank == 0:
            print(
                f"{name} ({route}): a step takes {1e3 * total / STEPS:.1f} ms, of which the sync "
                f"{1e3 * sync / STEPS:.1f} ms ({100 * sync / total:.0f} %)"
            )
    if rank == 0:
        same = found["direct"] == found["relay"]
        print(f"weights are {'the same' if same else 'different'} with relay and without")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
