# SPDX-License-Identifier: BSD-3-Clause
"""A model of TorchRec's in replicas on CPU, and what a rank has of it after some steps."""

from __future__ import annotations

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
BATCH, STEPS, WIDTH, ROWS = 8, 3, 16, 60000  # states are large enough for relay, too
Values = dict[str, torch.Tensor]


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


class Bags(torch.nn.Module):
    def __init__(self, bags):
        super().__init__()
        self.bags = bags

    def forward(self, features):
        return self.bags(features)


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
        module=Bags(module),
        device=CPU,
        plan=ShardingPlan({"bags": plan}),
        world_size=world,
        sharding_group_size=shards,
        global_pg=dist.group.WORLD,
        sharders=[sharder],
        init_data_parallel=False,
        use_sharded_relay=relay,
    )


def batch(rank: int, step: int, names: list[str]) -> KeyedJaggedTensor:
    make = torch.Generator().manual_seed(1000 * step + rank)
    lengths = torch.full((len(names) * BATCH,), 3)
    ids = torch.randint(ROWS, (3 * len(lengths),), generator=make)
    return KeyedJaggedTensor(keys=names, values=ids, lengths=lengths)


def trained(rank: int, world: int, replicas: int, relay: bool, steps: int) -> list[Values]:
    """Weights and optimizer states of this rank: before the first sync, and after each."""
    model = collection(world, replicas, relay)
    names = [config.feature_names[0] for config in tables(world // replicas)]
    seen = []
    for step in range(steps):
        model(batch(rank, step, names)).values().pow(2).sum().backward()
        if step == 0:
            seen.append(values_of(model))
        model.sync()
        seen.append(values_of(model))
    return seen


def values_of(model) -> Values:
    found = {f"weight {name}": joined(value) for name, value in model.state_dict().items()}
    for name, state in model.fused_optimizer.state_dict()["state"].items():
        found |= {f"{key} of {name}": joined(value) for key, value in state.items()}
    return {name: value for name, value in found.items() if value.numel()}


def joined(value: torch.Tensor) -> torch.Tensor:
    """What this rank has of a tensor that may be spread, as one copy."""
    local = value.to_local() if hasattr(value, "to_local") else value
    parts = local.local_shards() if hasattr(local, "local_shards") else [local]
    parts = [getattr(part, "tensor", part).detach().flatten() for part in parts]
    return torch.cat(parts) if parts else torch.zeros(0)
