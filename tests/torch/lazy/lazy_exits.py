# SPDX-License-Identifier: BSD-3-Clause
"""A rank that is a program of its own: lazy_exits.py CASE RANK SIZE STORE."""

from __future__ import annotations

import os
import signal
import sys
import time


def _prepare(rank, size, store):
    import byway.lazy
    import torch.distributed as dist

    import byway.torch

    byway.lazy.init()
    dist.init_process_group("byway", rank=rank, world_size=size, store=dist.FileStore(store, size))


def _reduced(rank, **options):
    import torch
    import torch.distributed as dist

    x = torch.full((4,), rank + 1.0, device="lazy")
    return x, dist.all_reduce(x, **options)


def exit_with_work_pending(rank, size):
    """Only rank 0 runs its step; the others end with theirs recorded."""
    x, _ = _reduced(rank)
    if rank == 0:
        print(x.cpu().tolist())


def destroy_with_work_pending(rank, size):
    import torch.distributed as dist

    x, _ = _reduced(rank)
    dist.destroy_process_group()
    print(x.cpu().tolist())


def _killed(rank, size, prepare):
    import byway.lazy
    import torch.distributed as dist

    dist.barrier()
    if rank == size - 1:
        prepare()
        os.kill(os.getpid(), signal.SIGKILL)
    began = time.monotonic()
    try:
        prepare()
        byway.lazy.flush()
        print("no error")
    except Exception as error:
        print(
            type(error).__name__, f"{time.monotonic() - began:.1f}", str(error).replace("\n", " ")
        )
    sys.stdout.flush()
    os._exit(0)  # the group is broken


def killed_before(rank, size):
    last = rank == size - 1
    _killed(rank, size, lambda: None if last else _reduced(rank))


def killed_with_work_recorded(rank, size):
    _killed(rank, size, lambda: _reduced(rank))


def killed_with_work_under_way(rank, size):
    import torch

    def prepare():
        x, work = _reduced(rank, async_op=True)
        if rank == size - 1:
            x = torch.zeros(1, device="lazy")
            torch.ops.byway_lazy.flush_calls()  # begun, and not waited for
            return
        work.wait()
        y, _ = _reduced(rank)
        y.add_(x)

    _killed(rank, size, prepare)


POINTS = 10  # of killed_at


def _steps(rank, size, point):
    """Steps of which each line is a point at which the process may end."""
    import byway.lazy
    import torch
    import torch._lazy
    import torch.distributed as dist

    right, left = (rank + 1) % size, (rank - 1) % size
    for turn in range(2):
        at = 5 * turn
        x, _ = _reduced(rank)
        point(at)
        work = dist.all_reduce(x, async_op=True)
        y = torch.zeros(200_000, device="lazy")
        received = dist.irecv(y, left)
        dist.isend(torch.ones(200_000, device="lazy"), right)
        point(at + 1)
        torch.ops.byway_lazy.flush_calls()  # all are begun
        point(at + 2)
        received.wait()
        whole = torch.zeros(size * 4, device="lazy")
        dist.all_gather_into_tensor(whole, x)
        point(at + 3)
        work.wait()
        torch._lazy.mark_step()
        point(at + 4)
        dist.barrier()
    byway.lazy.flush()


def killed_at(rank, size):
    """The last rank ends at the point of TEST_POINT; the others go on."""
    import torch.distributed as dist

    chosen = int(os.environ["TEST_POINT"])

    def point(at):
        if rank == size - 1 and at == chosen:
            os.kill(os.getpid(), signal.SIGKILL)

    dist.barrier()
    began = time.monotonic()
    try:
        _steps(rank, size, point)
        print("no error")
    except Exception as error:
        seconds = time.monotonic() - began
        print(type(error).__name__, f"{seconds:.1f}", str(error).replace("\n", " "))
    sys.stdout.flush()
    os._exit(0)  # the group is broken


if __name__ == "__main__":
    name, rank, size, store = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
    _prepare(rank, size, store)
    globals()[name](rank, size)
