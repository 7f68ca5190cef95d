# SPDX-License-Identifier: BSD-3-Clause
"""One rank of a job that calls TorchRec's relay functions by themselves, on tensors of a model's
sizes, beside the collectives of a Byway group and of a Gloo group of the same members.

    python -O utilities.py GROUP_SIZE FOLDER      (RANK, WORLD_SIZE, LOCAL_WORLD_SIZE are set)

Ranks that are left over help: they give tensors of their own, which must stay as they are.
"""

from __future__ import annotations

import os
import pathlib
import sys
import warnings

import checks
import torch
import torch.distributed as dist
import watch
from torchrec.distributed import sharded_relay_utils as relay

import byway.torch  # noqa: F401 (registers the backend)

LARGE = 600_000  # bytes from which relay must be taken
SHAPES = [(6000, 64), (7,), (1001, 3), (1,), (40, 5, 2)]
TYPES = [torch.float32, torch.float16, torch.bfloat16]
Lists = dict[torch.dtype, list[torch.Tensor]]


class Node:
    def __init__(self, check: checks.Checks, group_size: int, folder: pathlib.Path):
        self.check = check
        self.rank, self.world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
        self.size = group_size
        store = dist.FileStore(str(folder / "store"), self.world)
        dist.init_process_group("byway", rank=self.rank, world_size=self.world, store=store)
        self.seen = watch.Watch()
        self.state = relay.setup_sharded_relay(self.rank, self.world, False, group_size)
        self.members = [
            list(range(first, first + group_size))
            for first in range(0, self.world - group_size + 1, group_size)
        ]
        self.place = self.rank // group_size
        self.helps = self.place >= len(self.members)
        self.byway = self._mine("byway")
        self.gloo = self._mine("gloo")

    def _mine(self, backend: str):
        groups = [dist.new_group(ranks, backend=backend) for ranks in self.members]
        return None if self.helps else groups[self.place]

    def lists(self, call: int, factor: int = 1) -> Lists:
        """Sizes depend on the group; `factor`: so many times as large."""
        make = torch.Generator().manual_seed(100 * call + self.rank)
        return {
            dtype: [
                torch.randn(factor * shape[0] + factor * self.place, *shape[1:], generator=make).to(
                    dtype
                )
                for shape in SHAPES
            ]
            for dtype in TYPES
        }

    def flat(self, tensors: list[torch.Tensor]) -> torch.Tensor:
        return torch.cat([tensor.flatten() for tensor in tensors])

    def compare(self, ours: Lists, wanted: Lists, what: str) -> None:
        """Bit for bit. A helper's tensors are its own."""
        for dtype, tensors in wanted.items():
            wrong = int((self.flat(ours[dtype]) != self.flat(tensors)).sum())
            self.check.equal(wrong, 0, f"{what} {dtype}, wrong values")


def copy(lists: Lists) -> Lists:
    return {dtype: [tensor.clone() for tensor in tensors] for dtype, tensors in lists.items()}


def one_call_for_each_type(node: Node, before: int, what: str) -> None:
    kinds = [call.dtype for call in node.seen.calls[before:]]
    node.check.equal(kinds, TYPES, f"{what}: calls")


def allreduce(node: Node) -> None:
    for call, op in enumerate((dist.ReduceOp.AVG, dist.ReduceOp.SUM), 1):
        for in_place in (True, False):
            what = f"allreduce {op} in place {in_place}"
            given = node.lists(call)
            wanted, tensors = copy(given), copy(given)
            outputs = (
                None if in_place else {d: [*map(torch.zeros_like, t)] for d, t in given.items()}
            )
            before = len(node.seen.calls)
            relay.allreduce_tensors_with_sharded_relay(node.state, tensors, what, op, outputs)
            one_call_for_each_type(node, before, what)
            if not in_place:
                node.compare(tensors, given, f"{what}, input")
            if node.helps:
                node.compare(tensors, given, f"{what}, a helper's")
                continue
            near(node, tensors if in_place else outputs, given, op, what)
            for values in wanted.values():
                dist.all_reduce_coalesced(values, op, group=node.byway)
            node.compare(tensors if in_place else outputs, wanted, what)


def near(node: Node, ours: Lists, given: Lists, op, what: str) -> None:
    """Within the rounding of one sum of so many terms of what Gloo gives."""
    for dtype, tensors in copy(given).items():
        theirs, sizes = node.flat(tensors), node.flat(tensors).double().abs()
        dist.all_reduce(sizes, group=node.gloo)
        dist.all_reduce(theirs, group=node.gloo)
        scale = node.size if op == dist.ReduceOp.AVG else 1
        found = node.flat(ours[dtype]).double() - theirs.double() / scale
        bound = node.size * torch.finfo(dtype).eps * sizes / scale
        worst = float((found.abs() - bound).max())
        node.check.that(worst <= 0, f"{what}: {dtype}, Gloo", f"{worst} too far")


def reduce_scatter(node: Node) -> None:
    for call, op in enumerate((dist.ReduceOp.AVG, dist.ReduceOp.SUM), 10):
        for in_place in (True, False):
            what = f"reduce-scatter {op} in place {in_place}"
            given = node.lists(call, node.size)
            tensors, outputs = copy(given), node.lists(99)
            own = copy(outputs)
            relay.reduce_scatter_tensors_with_sharded_relay(
                node.state, tensors, outputs, what, op, in_place
            )
            node.compare(tensors, given, f"{what}, input")
            if node.helps:
                node.compare(outputs, own, f"{what}, a helper's")
                continue
            wanted = {}
            for dtype, values in given.items():
                wanted[dtype] = [torch.zeros_like(node.flat(outputs[dtype]))]
                dist.reduce_scatter_tensor(
                    wanted[dtype][0], node.flat(values), op, group=node.byway
                )
            node.compare(outputs, wanted, what)


def moves(node: Node) -> None:
    for in_place in (True, False, None):
        what = "all-to-all" if in_place is None else f"all-gather in place {in_place}"
        given = node.lists(20, node.size if in_place is None else 1)
        tensors, outputs = copy(given), node.lists(98, node.size)
        own = copy(outputs)
        if in_place is None:
            relay.all_to_all_tensors_with_sharded_relay(node.state, tensors, outputs, what)
        else:
            relay.all_gather_tensors_with_sharded_relay(
                node.state, tensors, outputs, what, in_place
            )
        node.compare(tensors, given, f"{what}, input")
        if node.helps:
            node.compare(outputs, own, f"{what}, a helper's")
            continue
        wanted = {}
        for dtype, values in given.items():
            wanted[dtype] = [torch.zeros_like(node.flat(outputs[dtype]))]
            call = dist.all_gather_into_tensor if in_place is not None else dist.all_to_all_single
            call(wanted[dtype][0], node.flat(values), group=node.byway)
        node.compare(outputs, wanted, what)


def caches(node: Node) -> None:
    """Counts are exchanged once, buffers are kept until a larger one is needed, nothing is asked
    for lists without tensors."""
    exchanges = 0
    all_gather = dist.all_gather

    def counted(*arguments, **options):
        nonlocal exchanges
        exchanges += 1
        return all_gather(*arguments, **options)

    dist.all_gather = counted
    for turn in range(3):
        before = len(node.seen.calls)
        lists = node.lists(turn) | {torch.float64: []}
        relay.allreduce_tensors_with_sharded_relay(node.state, lists, "caches")
        one_call_for_each_type(node, before, "caches")
    dist.all_gather = all_gather
    node.check.equal(exchanges, len(TYPES), "exchanges of counts")
    if not node.helps:
        turns = [[c.address for c in node.seen.calls[at:][:3]] for at in (-9, -6, -3)]
        node.check.equal(turns[1:], [turns[0]] * 2, "buffers")


def refusals(node: Node) -> None:
    """The same mistake on all ranks; the node goes on."""
    good, large = node.lists(1), node.lists(2, node.size)
    short = {torch.float32: [torch.zeros(3)]}
    odd = {torch.float32: [torch.zeros(node.size + 1)]}
    calls = {
        "reduce-scatter, total": lambda: relay.reduce_scatter_tensors_with_sharded_relay(
            node.state, odd, short, "odd"
        ),
        "reduce-scatter, output": lambda: relay.reduce_scatter_tensors_with_sharded_relay(
            node.state, large, short, "short"
        ),
        "all-gather, output": lambda: relay.all_gather_tensors_with_sharded_relay(
            node.state, good, short, "short"
        ),
        "all-to-all, total": lambda: relay.all_to_all_tensors_with_sharded_relay(
            node.state, odd, odd, "odd"
        ),
        "all-to-all, output": lambda: relay.all_to_all_tensors_with_sharded_relay(
            node.state, large, short, "short"
        ),
    }
    for what, call in calls.items():
        node.check.raises(ValueError, "", call, what)


def plans(node: Node) -> None:
    direct = node.seen.direct_plans()
    relayed = set()
    for call in node.seen.calls:
        node.check.that(call.untouched, f"{call.key}: placeholders untouched")
        if call.name == "allreduce" and call.bytes >= LARGE:
            node.check.that(call.record["plan"] != direct[call.key], call.key, call.record)
            relayed.add(call.record["plan"])
    node.check.that(len(relayed) > 0, "large calls")
    node.check.facts["plans"] = sorted(relayed)


def without_relay(node: Node) -> None:
    """What TorchRec refuses it refuses on all ranks, without making anything."""
    made = len(node.seen.comms)
    for group_size, inter_host in ((3, False), (node.world, False), (node.size, True)):
        state = relay.setup_sharded_relay(node.rank, node.world, inter_host, group_size)
        node.check.that(state is None, f"no relay for {group_size}, {inter_host}")
    node.check.equal(len(node.seen.comms), made, "communicators")


def program(check: checks.Checks) -> None:
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    node = Node(check, int(sys.argv[1]), pathlib.Path(sys.argv[2]))
    check.that(node.state is not None, "relay is on")
    for part in (allreduce, reduce_scatter, moves, refusals, caches, plans, without_relay):
        part(node)
    relay.cleanup_sharded_relay(node.state)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    checks.run(program, pathlib.Path(sys.argv[2]), int(os.environ["RANK"]))
