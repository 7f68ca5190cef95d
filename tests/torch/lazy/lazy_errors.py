# SPDX-License-Identifier: BSD-3-Clause
"""What goes wrong in lazy mode; run in the ranks of a team."""

from __future__ import annotations

import re
from datetime import timedelta

import byway.lazy
import numpy as np
import torch
import torch._lazy
import torch.distributed as dist
from lazy_run import data, lazy, same


def _wrong_calls(rank, size, device):
    """Calls with wrong arguments, the same on every rank."""

    def ones(count, dtype=torch.float32):
        return torch.ones(count, dtype=dtype, device=device)

    return [
        lambda: dist.all_reduce(ones(4), dist.ReduceOp.BXOR),
        lambda: dist.all_gather_into_tensor(ones(4 * size + 1), ones(4)),
        lambda: dist.all_gather([ones(4)] * (size + 1), ones(4)),
        lambda: dist.reduce_scatter_tensor(ones(4), ones(4 * size - 1)),
        lambda: dist.all_to_all_single(ones(size), ones(size), [size + 1] * size, [1] * size),
        lambda: dist.all_to_all(list(ones(3 * size).chunk(size)), list(ones(size).chunk(1))),
        lambda: dist.send(ones(3), (rank + 1) % size, tag=-2),
    ]


def _told(call) -> tuple[str, str]:
    try:
        call()
    except Exception as error:
        # Sequence numbers differ from call to call.
        return type(error).__name__, re.sub(r"#?\d+", "N", str(error))
    return "", "no error"


def argument_errors(context):
    byway.lazy.init("record")
    pairs = []
    for eager, recorded in zip(
        _wrong_calls(context.rank, context.size, "cpu"),
        _wrong_calls(context.rank, context.size, "lazy"),
        strict=True,
    ):
        pairs.append((_told(eager), _told(recorded)))
    x = lazy(data(context.rank, 1, 4))
    dist.all_reduce(x)
    torch._lazy.mark_step()
    same(x, sum(data(rank, 1, 4) for rank in range(context.size)))
    mixed = _told(
        lambda: dist.all_gather([torch.ones(2)] * context.size, lazy(np.ones(2, np.float32)))
    )
    return pairs, mixed


def late_peer(context):
    """Rank 1 never makes the call: what the step's error is, and what comes after it."""
    byway.lazy.init("record")
    group = dist.new_group(timeout=timedelta(seconds=2))
    seen = {}
    if context.rank == 0:
        x = lazy(data(0, 1, 4))
        dist.all_reduce(x, group=group)
        seen["flush"] = _told(byway.lazy.flush)
        seen["next"] = _told(lambda: dist.all_reduce(lazy(data(0, 1, 4))))
        byway.lazy.reset()
    context_group = context.group(None)
    y = lazy(data(context.rank, 2, 4))
    dist.all_reduce(y, group=context_group)
    byway.lazy.flush()
    same(y, sum(data(rank, 2, 4) for rank in range(context.size)))
    return seen


def without_init(context):
    import torch._lazy.ts_backend

    torch._lazy.ts_backend.init()
    x = torch.ones(4, device="lazy")
    told = [_told(lambda: dist.all_reduce(x))]
    with torch.inference_mode():
        y = torch.ones(4, device="lazy")
        told.append(_told(lambda: dist.broadcast(y, 0)))
    name = dist.group.WORLD.group_name
    told.append(_told(lambda: torch.ops._c10d_functional.all_reduce(x, "sum", name)))
    return told


def liveness(context):
    """Rank 1 waits for what rank 0 does after it has read a result: a cut does not hang."""
    byway.lazy.init("cut")
    store = dist.distributed_c10d._get_default_store()
    x = lazy(data(context.rank, 1, 4))
    dist.all_reduce(x)
    if context.rank == 0:
        same(x, sum(data(rank, 1, 4) for rank in range(context.size)))
        store.set("read", "yes")
    else:
        store.wait(["read"], timedelta(seconds=20))
    byway.lazy.init("record")
