# SPDX-License-Identifier: BSD-3-Clause
"""A program for test_torchrun.py: in its first run the last rank is killed while the others are in
a call; the run after that ends well. Each rank writes what it saw to FOLDER/RUN-RANK.

    restarted.py FOLDER with-workers|plain
"""

import os
import pathlib
import signal
import sys
import time

import torch
import torch.distributed as dist

import byway.torch  # noqa: F401 (registers the backend)


class Numbers(torch.utils.data.Dataset):
    def __len__(self):
        return 1000

    def __getitem__(self, index):
        return torch.tensor(float(index))


def main() -> None:
    folder, workers = pathlib.Path(sys.argv[1]), sys.argv[2] == "with-workers"
    run = os.environ["TORCHELASTIC_RESTART_COUNT"]
    dist.init_process_group("byway")
    rank, size = dist.get_rank(), dist.get_world_size()
    out = folder / f"{run}-{rank}"
    x = torch.full((1000,), float(rank + 1))
    dist.all_reduce(x)
    assert x[0] == size * (size + 1) / 2
    loader = iter(torch.utils.data.DataLoader(Numbers(), num_workers=1)) if workers else None
    if loader:
        next(loader)
    dist.barrier()
    if run == "0" and rank == size - 1:
        (folder / "killed").write_text(repr(time.time()))
        os.kill(os.getpid(), signal.SIGKILL)
    if run == "0":
        try:
            dist.all_reduce(x)
        except dist.DistBackendError as error:
            killed = float((folder / "killed").read_text())
            out.write_text(f"{time.time() - killed:.3f} {error}")
            os._exit(3)
        out.write_text("no error")
        os._exit(4)
    pair = dist.new_group([0, 1])
    y = torch.ones(3)
    dist.all_reduce(y)
    if rank < 2:
        dist.all_reduce(y, group=pair)
    out.write_text(f"done {y[0].item():g}")
    dist.destroy_process_group()


main()
