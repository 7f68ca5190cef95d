# SPDX-License-Identifier: BSD-3-Clause
"""byway.torchrec with a client of our own; TorchRec itself is in tests/torchrec."""

import importlib
import sys
from datetime import timedelta

import byway.torchrec
import numpy as np
import oracle
import pytest
import ranks
import relay_client
import torch
import torch.distributed as dist

TYPES = ("float32", "bfloat16", "float16", "int64")
COUNTS = (4096, 1003, 30000)  # of a group's rank; groups differ, and 1003 divides by nothing


def _team(size=4):
    return ranks.team(size, BYWAY_TOPOLOGY=f"mesh:{size}@1G,5")


def _client(context, group_size, name):
    byway.torchrec.install()
    return relay_client.Client(context.rank, context.size, group_size, name)


def _values(kind, rank, call, count):
    return oracle.values(kind, rank, call, count)


def all_four(context, group_size):
    client = _client(context, group_size, f"all{group_size}")
    assert (client.comm.get_rank(), client.comm.get_size()) == (context.rank, context.size)
    call = 0
    for turn in range(2):
        for kind in TYPES:
            for op in ("sum", "avg"):
                call += 1
                # The second turn's buffers are larger: other memory at another address.
                counts = [COUNTS[g % 3] + 50 * turn for g in range(len(client.groups))]
                one_turn(client, context.rank, kind, op, counts, call)
    client.placeholders_untouched()
    client.comm.finalize()


def one_turn(client, rank, kind, op, counts, call):
    dtype = getattr(torch, kind)
    reduce_op = getattr(dist.ReduceOp, op.upper())
    n, i, helps = client.group_size, client.index, client.group < 0
    members = [] if helps else client.groups[client.group]
    count = 0 if helps else counts[client.group]

    def filled(what, arrays):
        data = client.buffer(what, dtype, sum(len(a) for a in arrays))
        data.copy_(oracle.tensor(kind, np.concatenate(arrays)))
        return data

    def check(actual, expected, what):
        if not helps:
            oracle.check(actual, kind, expected, f"{what} {kind} {op} rank {rank} call {call}")

    # A list of tensors is packed into one flat buffer and reduced in place.
    arrays = [_values(kind, rank, call, count)]
    flat = filled("flat", arrays)
    client.call(
        "allreduce_multi_group",
        tensors=client.slots(flat, dtype),
        per_group_sizes=counts,
        op=reduce_op,
        output_tensors=None,
    )
    total = (
        None
        if helps
        else oracle.reduced(kind, op, [_values(kind, r, call, count) for r in members])
    )
    check(flat, total, "allreduce in place")
    flat, out = filled("flat", arrays), client.buffer("out", dtype, count)
    client.call(
        "allreduce_multi_group",
        tensors=client.slots(flat, dtype),
        per_group_sizes=counts,
        op=dist.AllreduceCoalescedOptions().reduceOp if op == "sum" else reduce_op,
        output_tensors=client.slots(out, dtype),
    )
    check(out, total, "allreduce")
    check(flat, arrays[0], "allreduce's input")

    whole = {r: [_values(kind, r, call + 40 * j, count) for j in range(n)] for r in members}
    flat = filled("blocks", whole[rank] if not helps else [arrays[0]])
    if not helps:
        out = client.buffer("out", dtype, count)
    for place in (out, flat[i * count : (i + 1) * count]):
        client.call(
            "reduce_scatter_multi_group",
            input_tensors=client.slots(flat, dtype),
            output_tensors=client.slots(place, dtype),
            per_group_recv_counts=counts,
            op=reduce_op,
        )
        mine = None if helps else oracle.reduced(kind, op, [whole[r][i] for r in members])
        check(place, mine, "reduce-scatter")

    flat = client.buffer("gathered", dtype, n * count)
    own = flat[i * count : (i + 1) * count]
    for place in (filled("flat", arrays), own):
        flat.zero_()
        if not helps:
            place.copy_(oracle.tensor(kind, arrays[0]))
        client.call(
            "all_gather_multi_group",
            input_tensors=client.slots(place, dtype),
            output_tensors=client.slots(flat, dtype),
            per_group_send_counts=counts,
        )
        every = [_values(kind, r, call, count) for r in members]
        check(flat, None if helps else np.concatenate(every), "all-gather")

    flat = filled("blocks", whole[rank] if not helps else [arrays[0]])
    out = client.buffer("exchanged", dtype, n * count)
    client.call(
        "all_to_all_multi_group",
        input_tensors=client.slots(flat, dtype),
        output_tensors=client.slots(out, dtype),
        per_group_segment_counts=counts,
    )
    check(out, None if helps else np.concatenate([whole[r][i] for r in members]), "all-to-all")


@pytest.mark.parametrize("group_size", [2, 3])  # with 3 of 4 ranks the last one only helps
def test_all_methods(group_size):
    _team().run(all_four, group_size)


@pytest.mark.full
@pytest.mark.parametrize("group_size", [2, 4])
def test_all_methods_of_eight_ranks(group_size):
    _team(8).run(all_four, group_size, seconds=300)


def carried_by_others(context):
    """Two groups of two of four ranks: both pairs' links and those between the pairs are used."""
    client = _client(context, 2, "carried")
    flat = torch.full((1 << 20,), float(context.rank))
    work = client.call(
        "allreduce_multi_group",
        tensors=client.slots(flat, torch.float32),
        per_group_sizes=[1 << 20] * 2,
        op=dist.ReduceOp.AVG,
        async_op=True,
    )
    work.wait()
    assert torch.equal(flat, torch.full_like(flat, sum(client.groups[client.group]) / 2))
    return client.comm.recorded_calls()["calls"][-1]["route"]


def test_relay_is_taken():
    for route in _team().run(carried_by_others):
        assert not route.startswith("direct"), route


def refusals(context):
    client = _client(context, 2, "refusals")
    data = torch.arange(8.0)
    counts = {"per_group_segment_counts": [4, 4]}
    slots = client.slots(data, torch.float32)
    with pytest.raises(ValueError, match="in place"):
        client.call("all_to_all_multi_group", input_tensors=slots, output_tensors=slots, **counts)
    reduce = {"tensors": slots, "per_group_sizes": [8, 8]}
    with pytest.raises(ValueError, match="sums or averages"):
        client.call("allreduce_multi_group", op=dist.ReduceOp.MAX, **reduce)
    with pytest.raises(ValueError, match="1 counts for 2 groups"):
        client.call("allreduce_multi_group", tensors=slots, per_group_sizes=[8])
    with pytest.raises(ValueError, match="counts ask for 36"):
        client.call("allreduce_multi_group", tensors=slots, per_group_sizes=[9, 9])
    with pytest.raises(ValueError, match="has 8 elements; its count asks for 9"):
        client.relay.allreduce_multi_group(tensors=slots, per_group_sizes=[9, 9])
    assert torch.equal(data, torch.arange(8.0))
    client.call("allreduce_multi_group", tensors=slots, per_group_sizes=[0, 0])
    client.call("allreduce_multi_group", **reduce)
    assert torch.equal(data, torch.arange(8.0) * 2)


def test_refusals():
    _team().run(refusals)


def nobody_alone(context):
    """What fails on one rank fails on all, so that relay is on for all ranks or for none."""
    byway.torchrec.install(timeout=timedelta(seconds=20))
    relay = byway.torchrec.FusedShardedRelayMultiGroup
    client = relay_client.Client(context.rank, context.size, 2, "alone")
    groups = [[0, 1]] if context.rank == 2 else [[0, 1], [2, 3]]
    with pytest.raises(ValueError, match="different all_active_ranks"):
        relay(client.comm, context.size, context.rank, groups)
    rank = 7 if context.rank == 3 else context.rank
    with pytest.raises(ValueError, match=r"rank 7 of 4|rank 3 of the node gave wrong"):
        relay(client.comm, context.size, rank, groups)
    if context.rank == 1:
        byway.torchrec.install(options=object(), timeout=timedelta(seconds=20))
    with pytest.raises(RuntimeError, match=r"on ranks \[1\] of the node: TypeError: pg_options"):
        relay_client.Client(context.rank, context.size, 2, "half")


def test_one_ranks_failure_is_everybodys():
    team = ranks.team(4, BYWAY_TOPOLOGY="mesh:4")
    team.run(nobody_alone)
    team.end()


def test_install_and_uninstall(monkeypatch):
    for name in (relay_client.RELAY, "torchcomms"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    byway.torchrec.install()
    byway.torchrec.install()
    assert importlib.import_module("torchcomms").new_comm
    assert importlib.import_module(relay_client.RELAY).FusedShardedRelayMultiGroup
    with pytest.raises(ValueError, match='backend "nccl"'):
        importlib.import_module("torchcomms").new_comm("nccl")
    byway.torchrec.uninstall()
    assert "torchcomms" not in sys.modules
    assert relay_client.RELAY not in sys.modules


def test_an_installed_torchcomms_keeps_its_backends(monkeypatch, tmp_path):
    (tmp_path / "torchcomms.py").write_text("def new_comm(backend, x):\n    return backend, x\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "torchcomms", raising=False)
    byway.torchrec.install()
    torchcomms = importlib.import_module("torchcomms")
    assert torchcomms.new_comm("nccl", x=3) == ("nccl", 3)
    with pytest.raises(ValueError, match="TORCHCOMM_RANK"):
        torchcomms.new_comm("rcclx", name="x")
    byway.torchrec.uninstall()
    assert torchcomms.new_comm("rcclx", x=1) == ("rcclx", 1)
    monkeypatch.delitem(sys.modules, "torchcomms")
