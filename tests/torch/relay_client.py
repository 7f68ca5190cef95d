# SPDX-License-Identifier: BSD-3-Clause
"""A client of the relay interface as TorchRec is one (docs/torchrec.md): it looks the two names up
when it is set up, and calls with keywords, placeholders and cached flat buffers."""

import contextlib
import importlib
import os

import torch
import torch.distributed as dist

RELAY = "caffe2.torch.distributed.fb.sharded_relay_process_group"


@contextlib.contextmanager
def _place(rank, size):
    names = {"TORCHCOMM_RANK": str(rank), "TORCHCOMM_SIZE": str(size)}
    os.environ.update(names)
    try:
        yield
    finally:
        for name in names:
            del os.environ[name]


class Client:
    """One rank's side. `group_size` neighbours form a group; ranks left over only help."""

    def __init__(self, rank, size, group_size, name):
        relay = importlib.import_module(RELAY).FusedShardedRelayMultiGroup
        new_comm = importlib.import_module("torchcomms").new_comm
        with _place(rank, size):
            self.comm = new_comm(
                backend="rcclx",
                device=torch.device(f"cuda:{rank}"),
                name=name,
                store=dist.PrefixStore(name, dist.distributed_c10d._get_default_store()),
            )
        self.groups = [
            list(range(first, first + group_size))
            for first in range(0, size - group_size + 1, group_size)
        ]
        self.relay = relay(
            rcclx_comm=self.comm, world_size=size, rank=rank, all_active_ranks=self.groups
        )
        self.group = rank // group_size if rank // group_size < len(self.groups) else -1
        self.index = rank % group_size
        self.group_size = group_size
        self._buffers = {}
        self._placeholders = {}

    def buffer(self, what, dtype, count):
        """A view of a flat buffer that only grows."""
        key = what, dtype
        if key not in self._buffers or self._buffers[key].numel() < count:
            self._buffers[key] = torch.empty(count, dtype=dtype)
        return self._buffers[key][:count]

    def slots(self, mine, dtype):
        """This rank's tensor in its group's slot and a placeholder in all others."""
        if dtype not in self._placeholders:
            self._placeholders[dtype] = torch.full((1,), 77).to(dtype)
        slots = [self._placeholders[dtype]] * len(self.groups)
        if self.group >= 0:
            slots[self.group] = mine
        return slots

    def placeholders_untouched(self):
        for dtype, tensor in self._placeholders.items():
            assert torch.equal(tensor, torch.full((1,), 77).to(dtype)), dtype

    def call(self, method, **arguments):
        return getattr(self.relay, method)(
            num_groups=len(self.groups),
            all_active_ranks=self.groups,
            skip_validation=True,
            **arguments,
        )
