# SPDX-License-Identifier: BSD-3-Clause
"""One rank of a job that trains replicas of embedding tables, with TorchRec's own sync and with
relay, and writes what it found as JSON. Run with -O: TorchRec asserts that devices are GPUs.

    python -O train.py REPLICAS FOLDER      (RANK, WORLD_SIZE, LOCAL_WORLD_SIZE in the environment)
"""

import importlib
import json
import os
import pathlib
import sys
import warnings

import byway.torchrec
import torch
import torch.distributed as dist
from torchrec.distributed.embeddingbag import EmbeddingBagCollectionSharder
from torchrec.distributed.model_parallel import DMPCollection
from torchrec.distributed.sharding_plan import (
    construct_module_sharding_plan,
    row_wise,
    table_wise,
)
from torchrec.distributed.types import ShardingPlan
from torchrec.modules.embedding_configs import DataType, EmbeddingBagConfig
from torchrec.modules.embedding_modules import EmbeddingBagCollection
from torchrec.sparse.jagged_tensor import KeyedJaggedTensor

CPU = torch.device("cpu")
BATCH, STEPS, WIDTH, ROWS = 8, 3, 64, 6000


class CpuCollection(DMPCollection):
    """TorchRec's, whose plan for CPU has placements that its tensors refuse."""

    def _remap_sharding_plan(self, plan, rank, step, *_, **__):
        from torch.distributed.remote_device import _remote_device

        def moved(place: int) -> int:
            return place * step + rank % step

        for module in plan.plan.values():
            for sharding in module.values():
                sharding.ranks = [moved(place) for place in sharding.ranks]
                for shard in sharding.sharding_spec.shards:
                    place = moved(shard.placement.rank())
                    shard.placement = _remote_device(f"rank:{place}/cpu")


def tables(shards: int) -> list[EmbeddingBagConfig]:
    """For each rank of a replica one of each type, sizes that divide by nothing; a shared one."""
    kinds = {"float": DataType.FP32, "half": DataType.FP16}
    made = [
        EmbeddingBagConfig(
            name=f"{kind}-{number}",
            num_embeddings=ROWS + 7 * number,
            embedding_dim=WIDTH,
            feature_names=[f"{kind}-{number}"],
            data_type=kinds[kind],
        )
        for kind in kinds
        for number in range(shards)
    ]
    shared = EmbeddingBagConfig(
        name="shared", num_embeddings=ROWS, embedding_dim=WIDTH, feature_names=["shared"]
    )
    return [*made, shared]


def collection(world: int, replicas: int, relay: bool) -> CpuCollection:
    from fbgemm_gpu.split_embedding_configs import EmbOptimType

    shards = world // replicas
    configs = tables(shards)
    torch.manual_seed(11)
    module = EmbeddingBagCollection(configs, device=CPU)
    sharder = EmbeddingBagCollectionSharder(
        fused_params={
            "optimizer": EmbOptimType.EXACT_ROWWISE_ADAGRAD,
            "learning_rate": 0.1,
            "eps": 1e-4,
        }
    )
    per_table = {
        config.name: row_wise(compute_kernel="fused")
        if config.name == "shared"
        else table_wise(int(config.name.split("-")[1]), compute_kernel="fused")
        for config in configs
    }
    plan = construct_module_sharding_plan(
        module, per_table, sharder, local_size=shards, world_size=shards, device_type="cpu"
    )
    return CpuCollection(
        module=Wrapped(module),
        device=CPU,
        plan=ShardingPlan({"bags": plan}),
        world_size=world,
        sharding_group_size=shards,
        global_pg=dist.group.WORLD,
        sharders=[sharder],
        init_data_parallel=False,
        use_sharded_relay=relay,
    )


class Wrapped(torch.nn.Module):
    def __init__(self, bags):
        super().__init__()
        self.bags = bags

    def forward(self, features):
        return self.bags(features)


def batch(rank: int, step: int, names: list[str]) -> KeyedJaggedTensor:
    make = torch.Generator().manual_seed(1000 * step + rank)
    lengths = torch.full((len(names) * BATCH,), 3)
    ids = torch.randint(ROWS, (3 * len(lengths),), generator=make)
    return KeyedJaggedTensor(keys=names, values=ids, lengths=lengths)


def trained(rank: int, world: int, replicas: int, relay: bool) -> dict[str, torch.Tensor]:
    model = collection(world, replicas, relay)
    names = [config.feature_names[0] for config in tables(world // replicas)]
    for step in range(STEPS):
        model(batch(rank, step, names)).values().pow(2).sum().backward()
        model.sync()
    found = {f"weight {name}": joined(value) for name, value in model.state_dict().items()}
    for name, state in model.fused_optimizer.state_dict()["state"].items():
        found |= {f"{key} of {name}": joined(value) for key, value in state.items()}
    return found


def joined(value: torch.Tensor) -> torch.Tensor:
    """What this rank has of a tensor that may be spread, as one copy."""
    local = value.to_local() if hasattr(value, "to_local") else value
    parts = local.local_shards() if hasattr(local, "local_shards") else [local]
    parts = [getattr(part, "tensor", part).detach().flatten() for part in parts]
    return torch.cat(parts) if parts else torch.zeros(0)


def main() -> None:
    replicas, folder = int(sys.argv[1]), pathlib.Path(sys.argv[2])
    rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    torch.set_num_threads(1)
    store = dist.FileStore(str(folder / "store"), world)
    dist.init_process_group("gloo", rank=rank, world_size=world, store=store)
    byway.torchrec.install()
    torchcomms = importlib.import_module("torchcomms")
    new_comm, comms = torchcomms.new_comm, []

    def kept(*arguments, **options):
        comms.append(new_comm(*arguments, **options))
        return comms[-1]

    torchcomms.new_comm = kept
    with warnings.catch_warnings(record=True):
        default = trained(rank, world, replicas, relay=False)
        relayed = trained(rank, world, replicas, relay=True)
    worst = {
        name: (default[name].double() - relayed[name].double()).abs().max().item()
        for name in default
        if default[name].numel()
    }
    replica = torch.cat([value.double().flatten() for value in relayed.values()])
    others = [None] * world
    dist.all_gather_object(
        others, (rank // replicas, replica.sum().item(), replica.abs().sum().item())
    )
    calls = [call for comm in comms for call in comm.recorded_calls()["calls"]]
    result = {
        "communicators": len(comms),
        "tensors": {name: list(value.shape) for name, value in relayed.items()},
        "types": sorted({str(value.dtype) for value in relayed.values()}),
        "largest": max(value.abs().max().item() for value in relayed.values() if value.numel()),
        "difference": max(worst.values()),
        "replicas_agree": all(
            o[1:] == others[rank][1:] for o in others if o[0] == rank // replicas
        ),
        "calls": [[c["call"], c["bytes"], c["route"], c["state"]] for c in calls],
    }
    (folder / f"rank-{rank}.json").write_text(json.dumps(result))
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
