# SPDX-License-Identifier: BSD-3-Clause
"""Four processes as a 2 x 2 mesh: groups of rows and columns, and a tensor spread over it.

torchrun --standalone --nproc-per-node 4 device_mesh.py
"""

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import Replicate, Shard, distribute_tensor

import byway.torch  # noqa: F401 (registers the backend; not needed where byway is installed)


def main() -> None:
    dist.init_process_group("byway")
    rank = dist.get_rank()
    mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("replicate", "shard"))
    x = torch.tensor([rank])
    dist.all_reduce(x, group=mesh.get_group("shard"))
    whole = torch.arange(12).reshape(3, 4)
    rows = distribute_tensor(whole, mesh, [Replicate(), Shard(0)])
    columns = rows.redistribute(placements=[Replicate(), Shard(1)])
    print(f"rank {rank}: row sum {x.item()}, columns {columns.to_local().tolist()}")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
