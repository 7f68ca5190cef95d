# SPDX-License-Identifier: BSD-3-Clause
"""What TorchRec asks of the relay, and by which plans that was done."""

from __future__ import annotations

import dataclasses
import functools
import importlib
import os

import byway.torchrec
import torch
import torch.distributed as dist

import byway.torch

NAMES = {
    "allreduce_multi_group": "allreduce",
    "reduce_scatter_multi_group": "reduce-scatter",
    "all_gather_multi_group": "all-gather",
    "all_to_all_multi_group": "all-to-all",
}


@dataclasses.dataclass
class Call:
    name: str
    counts: list[int]
    dtype: torch.dtype
    relay: byway.torchrec.FusedShardedRelayMultiGroup
    record: dict  # docs/recorder.md
    untouched: bool  # the placeholders
    address: int  # of this rank's input

    @property
    def key(self) -> str:
        return f"{self.name} {self.counts} {self.dtype}"

    @property
    def bytes(self) -> int:
        """Of the largest group's tensor."""
        return max(self.counts) * self.dtype.itemsize


class Watch:
    """Installs the relay and keeps every call. `spoils`: one value of each float32 result is made
    wrong by its last bit."""

    def __init__(self, spoils: bool = False):
        self.calls: list[Call] = []
        self.comms: list[byway.torchrec.RelayComm] = []
        self._spoils = spoils
        byway.torchrec.install()
        torchcomms = importlib.import_module("torchcomms")
        new_comm = torchcomms.new_comm

        def kept(*arguments, **options):
            self.comms.append(new_comm(*arguments, **options))
            return self.comms[-1]

        torchcomms.new_comm = kept
        relay = byway.torchrec.FusedShardedRelayMultiGroup
        self._methods = {name: getattr(relay, name) for name in NAMES}
        for name, method in self._methods.items():
            setattr(relay, name, self._watched(name, method))

    def _watched(self, name, method):
        @functools.wraps(method)
        def call(relay, **given):
            slots = given.get("tensors") or given["input_tensors"]
            counts = next(value for key, value in given.items() if key.startswith("per_group_"))
            mine = slots[max(relay.group, 0)]
            before = [slot.clone() for slot in self._foreign(relay, slots)]
            result = method(relay, **given)
            if self._spoils and mine.dtype == torch.float32:
                mine[3] = torch.nextafter(mine[3], mine[3] + 1)
            self.calls.append(
                Call(
                    NAMES[name],
                    [int(count) for count in counts],
                    mine.dtype,
                    relay,
                    last_record(relay.comm),
                    all(map(torch.equal, self._foreign(relay, slots), before)),
                    mine.data_ptr(),
                )
            )
            return result

        return call

    @staticmethod
    def _foreign(relay, slots):
        """As bytes: what nobody has set may be no number."""
        others = [slot for number, slot in enumerate(slots) if number != relay.group]
        return [slot.view(torch.uint8) for slot in others]

    def direct_plans(self) -> dict[str, str]:
        """The hash of each allreduce's plan if helpers are not used."""
        plans: dict[str, str] = {}
        groups = self.calls[0].relay.groups
        byway.torchrec.install(options=byway.torch.Options(route="direct"))
        comm = in_node("direct", self.calls[0].relay.comm)
        relay = byway.torchrec.FusedShardedRelayMultiGroup(
            comm, comm.get_size(), comm.get_rank(), groups
        )
        for call in self.calls:
            if call.key in plans or call.name != "allreduce":
                continue
            slots = [torch.zeros(1, dtype=call.dtype)] * len(groups)
            if relay.group >= 0:
                slots[relay.group] = torch.zeros(call.counts[relay.group], dtype=call.dtype)
            self._methods["allreduce_multi_group"](
                relay, tensors=slots, per_group_sizes=call.counts, op=dist.ReduceOp.AVG
            )
            plans[call.key] = last_record(comm)["plan"]
        return plans


def last_record(comm: byway.torchrec.RelayComm) -> dict:
    return comm.recorded_calls()["calls"][-1]


def in_node(name: str, like: byway.torchrec.RelayComm) -> byway.torchrec.RelayComm:
    """One more communicator of the same ranks."""
    place = {"TORCHCOMM_RANK": str(like.get_rank()), "TORCHCOMM_SIZE": str(like.get_size())}
    os.environ.update(place)
    try:
        store = dist.distributed_c10d._get_default_store()
        return importlib.import_module("torchcomms").new_comm(
            backend="rcclx", name=name, store=store
        )
    finally:
        for each in place:
            del os.environ[each]
