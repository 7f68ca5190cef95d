# SPDX-License-Identifier: BSD-3-Clause
"""What a process holds, and what test_resources.py runs in the ranks."""

import os
import pathlib

import torch
import torch.distributed as dist


def held() -> dict[str, int]:
    own = pathlib.Path("/proc/self")
    status = (own / "status").read_text()
    return {
        "descriptors": len(os.listdir(own / "fd")),
        "threads": len(os.listdir(own / "task")),
        "mappings": len((own / "maps").read_text().splitlines()),
        "kilobytes": int(status.split("VmRSS:")[1].split()[0]),
    }


def one_cycle(context, destroy: bool) -> None:
    group = dist.new_group(list(range(context.size)))
    x = torch.full((10_000,), float(context.rank))
    dist.all_reduce(x, group=group)
    assert x[0] == sum(range(context.size))
    if destroy:
        dist.destroy_process_group(group)


def cycles(context, count: int, every: int) -> list[dict[str, int]]:
    """What is held after every `every` of `count` groups made, used and destroyed."""
    seen = []
    for cycle in range(1, count + 1):
        one_cycle(context, destroy=True)
        if cycle % every == 0:
            seen.append(held())
    return seen


def keys_left(context) -> int:
    """How many keys groups that met leave in a store. Made directly: all keys are Byway's."""
    from byway.torch import _extension

    # Its server is with rank 0, which therefore counts last.
    store = dist.TCPStore("127.0.0.1", 0, is_master=True) if context.rank == 0 else None
    port = [store.port if store else 0]
    dist.broadcast_object_list(port, 0)
    store = store or dist.TCPStore("127.0.0.1", port[0], is_master=False)
    before = store.num_keys()
    dist.barrier()
    for _ in range(5):
        module = _extension.load()
        group = module.create_group(
            store=dist.PrefixStore("again", store),
            rank=context.rank,
            size=context.size,
            options=None,
            name="byway",
            timeout=torch.distributed.distributed_c10d.default_pg_timeout,
            group="again",
            global_ranks=[],
        )
        group.shutdown()
    dist.barrier()
    left = store.num_keys() - before
    dist.barrier()
    return left
