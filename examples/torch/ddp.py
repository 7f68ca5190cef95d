# SPDX-License-Identifier: BSD-3-Clause
"""A model trained by four processes, each on its part of the data.

torchrun --standalone --nproc-per-node 4 ddp.py
"""

import torch
import torch.distributed as dist
from torch import nn

import byway.torch  # noqa: F401 (registers the backend; not needed where byway is installed)


def main() -> None:
    dist.init_process_group("byway")
    rank = dist.get_rank()
    torch.manual_seed(0)
    model = nn.parallel.DistributedDataParallel(nn.Linear(8, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    generator = torch.Generator().manual_seed(rank)
    x = torch.randn(64, 8, generator=generator)
    target = x.sum(1, keepdim=True)
    for _ in range(100):
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(x), target)
        loss.backward()
        optimizer.step()
    dist.all_reduce(loss := loss.detach(), dist.ReduceOp.MAX)
    if rank == 0:
        print(f"largest loss below 0.001: {loss.item() < 0.001}")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
