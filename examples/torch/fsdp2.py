# SPDX-License-Identifier: BSD-3-Clause
"""Parameters and optimizer state in parts: each of four processes holds a quarter.

torchrun --standalone --nproc-per-node 4 fsdp2.py
"""

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard

import byway.torch  # noqa: F401 (registers the backend; not needed where byway is installed)


def main() -> None:
    dist.init_process_group("byway")
    rank, size = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 4))
    mesh = init_device_mesh("cpu", (size,))
    # Calculated in bfloat16; gradients are summed in float32.
    policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
    for part in (model[0], model[2], model):
        fully_shard(part, mesh=mesh, mp_policy=policy)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    generator = torch.Generator().manual_seed(rank)
    x = torch.randn(32, 16, generator=generator)
    losses = []
    for _ in range(50):
        optimizer.zero_grad()
        loss = (model(x).float() - x[:, :4]).square().mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    local = model[0].weight.to_local()
    print(f"rank {rank}: {local.numel()} of 512 weights; loss fell: {losses[-1] < losses[0]}")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
