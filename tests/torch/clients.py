# SPDX-License-Identifier: BSD-3-Clause
"""What test_clients.py runs in the ranks. Each compares with the same calculation in one process.

Calculated in float64 where the client allows it, so that 1e-9 stands for equal: the order of a sum
differs, the rounding of a type does not hide a lost part.
"""

import copy
import functools

import pytest
import torch
import torch.distributed as dist
from torch import nn

CLOSE = {"rtol": 1e-9, "atol": 1e-12}
STEPS = 3


def model(dtype=torch.float64) -> nn.Module:
    """The same on every rank."""
    torch.manual_seed(11)
    return nn.Sequential(nn.Linear(6, 17), nn.Tanh(), nn.Linear(17, 5)).to(dtype)


def batch(rank: int, step: int, rows: int = 4, dtype=torch.float64) -> torch.Tensor:
    index = torch.arange(rows * 6, dtype=torch.float64).reshape(rows, 6)
    return torch.sin(index * 0.7 + rank * 1.3 + step * 2.1).to(dtype)


def loss_of(output: torch.Tensor) -> torch.Tensor:
    return (output * output).mean()


def gradient_of_mean(reference: nn.Module, size: int, step: int) -> None:
    """One process's gradients of the mean over all ranks' batches."""
    for rank in range(size):
        (loss_of(reference(batch(rank, step))) / size).backward()


def train_alone(reference: nn.Module, size: int, optimizer, steps: int = STEPS) -> None:
    for step in range(steps):
        optimizer.zero_grad()
        gradient_of_mean(reference, size, step)
        optimizer.step()


def same_parameters(mine: nn.Module, reference: nn.Module, **close) -> None:
    pairs = zip(mine.parameters(), reference.parameters(), strict=True)
    for ours, expected in pairs:
        torch.testing.assert_close(ours, expected, **(close or CLOSE))


def sgd(module: nn.Module):
    return torch.optim.SGD(module.parameters(), lr=0.1)


def train(wrapped: nn.Module, rank: int, optimizer, steps: int = STEPS) -> None:
    for step in range(steps):
        optimizer.zero_grad()
        loss_of(wrapped(batch(rank, step))).backward()
        optimizer.step()


# --- DistributedDataParallel

DDP_HOOKS = [
    "none",
    "allreduce",
    "fp16",
    "fp16_wrapper",
    "post_local_sgd",
    "power_sgd_warm_up",
    "noop",
    "own",
]


def _register(ddp, how: str) -> None:
    from torch.distributed.algorithms.ddp_comm_hooks import (
        debugging_hooks,
        default_hooks,
        post_localSGD_hook,
        powerSGD_hook,
    )

    def own(state, bucket):
        """As documented: an asynchronous all_reduce, then a division."""
        future = dist.all_reduce(bucket.buffer(), async_op=True).get_future()
        return future.then(lambda done: done.value()[0] / dist.get_world_size())

    power = functools.partial(
        powerSGD_hook.PowerSGDState, None, start_powerSGD_iter=100, matrix_approximation_rank=1
    )
    local = functools.partial(
        post_localSGD_hook.PostLocalSGDState, None, subgroup=None, start_localSGD_iter=100
    )
    hooks = {
        "allreduce": (None, default_hooks.allreduce_hook),
        "fp16": (None, default_hooks.fp16_compress_hook),
        "fp16_wrapper": (
            None,
            default_hooks.fp16_compress_wrapper(default_hooks.allreduce_hook),
        ),
        "noop": (None, debugging_hooks.noop_hook),
        "own": (None, own),
    }
    if how == "power_sgd_warm_up":
        hooks[how] = (power(), powerSGD_hook.powerSGD_hook)
    if how == "post_local_sgd":
        hooks[how] = (local(), post_localSGD_hook.post_localSGD_hook)
    ddp.register_comm_hook(*hooks[how])


def ddp(context, how):
    net, reference = model(), model()
    wrapped = nn.parallel.DistributedDataParallel(net)
    if how != "none":
        _register(wrapped, how)
    train(wrapped, context.rank, sgd(wrapped))
    if how == "noop":  # every rank by itself
        for step in range(STEPS):
            alone = sgd(reference)
            alone.zero_grad()
            loss_of(reference(batch(context.rank, step))).backward()
            alone.step()
    else:
        train_alone(reference, context.size, sgd(reference))
    close = {"rtol": 2e-3, "atol": 2e-3} if how.startswith("fp16") else CLOSE
    same_parameters(net, reference, **close)


def ddp_option(context, option):
    net, reference = model(), model()
    options = {"bucket_cap_mb": 1e-4} if option == "buckets" else {option: True}
    train(
        wrapped := nn.parallel.DistributedDataParallel(net, **options), context.rank, sgd(wrapped)
    )
    train_alone(reference, context.size, sgd(reference))
    same_parameters(net, reference)


def ddp_bf16(context):
    from torch.distributed.algorithms.ddp_comm_hooks import default_hooks

    wrapped = nn.parallel.DistributedDataParallel(model())
    with pytest.raises(TypeError, match="BF16"):
        wrapped.register_comm_hook(None, default_hooks.bf16_compress_hook)


def ddp_power_sgd(context):
    """Compressed gradients: the ranks agree, and the loss falls."""
    from torch.distributed.algorithms.ddp_comm_hooks import powerSGD_hook

    net = model(torch.float32)
    wrapped = nn.parallel.DistributedDataParallel(net)
    state = powerSGD_hook.PowerSGDState(
        None, matrix_approximation_rank=2, start_powerSGD_iter=2, min_compression_rate=0.5
    )
    wrapped.register_comm_hook(state, powerSGD_hook.powerSGD_hook)
    optimizer = sgd(wrapped)
    losses = []
    for _ in range(8):
        optimizer.zero_grad()
        loss = loss_of(wrapped(batch(context.rank, 0, dtype=torch.float32)))
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < losses[0]
    for parameter in net.parameters():
        everywhere = [torch.empty_like(parameter) for _ in range(context.size)]
        dist.all_gather(everywhere, parameter.data)
        assert all(torch.equal(each, everywhere[0]) for each in everywhere)


def ddp_no_sync(context):
    net, reference = model(), model()
    wrapped = nn.parallel.DistributedDataParallel(net)
    with wrapped.no_sync():
        loss_of(wrapped(batch(context.rank, 0))).backward()
    own = copy.deepcopy([parameter.grad for parameter in net.parameters()])
    loss_of(reference(batch(context.rank, 0))).backward()
    for ours, expected in zip(own, reference.parameters(), strict=True):
        assert torch.equal(ours, expected.grad)  # nothing was sent
    loss_of(wrapped(batch(context.rank, 1))).backward()
    reference.zero_grad()
    for step in range(2):
        gradient_of_mean(reference, context.size, step)
    for ours, expected in zip(net.parameters(), reference.parameters(), strict=True):
        torch.testing.assert_close(ours.grad, expected.grad, **CLOSE)


class Branches(nn.Module):
    """Of its two branches a call uses one."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(5)
        self.branches = nn.ModuleList([nn.Linear(6, 5).double() for _ in range(2)])

    def forward(self, x, which):
        return self.branches[which](x)


def ddp_unused(context):
    net, reference = Branches(), Branches()
    wrapped = nn.parallel.DistributedDataParallel(net, find_unused_parameters=True)
    loss_of(wrapped(batch(context.rank, 0), context.rank % 2)).backward()
    for rank in range(context.size):
        (loss_of(reference(batch(rank, 0), rank % 2)) / context.size).backward()
    for ours, expected in zip(net.parameters(), reference.parameters(), strict=True):
        torch.testing.assert_close(ours.grad, expected.grad, **CLOSE)


def ddp_join(context):
    """Rank r has r + 1 batches; the gradients of those who are through count as none."""
    net, reference = model(), model()
    wrapped = nn.parallel.DistributedDataParallel(net)
    optimizer = sgd(wrapped)
    with wrapped.join():
        for step in range(context.rank + 1):
            optimizer.zero_grad()
            loss_of(wrapped(batch(context.rank, step))).backward()
            optimizer.step()
    alone = sgd(reference)
    for step in range(context.size):
        alone.zero_grad()
        for rank in range(step, context.size):
            (loss_of(reference(batch(rank, step))) / context.size).backward()
        alone.step()
    same_parameters(net, reference)


# --- FSDP2


def _layers(precision: str) -> nn.Module:
    return model(torch.float64 if precision == "float64" else torch.float32)


def fsdp2(context, precision, divide):
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard

    mixed = precision == "bfloat16"
    net, reference = _layers(precision), _layers(precision)
    mesh = init_device_mesh("cpu", (context.size,))
    policy = (
        MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
        if mixed
        else MixedPrecisionPolicy()
    )
    for layer in (net[0], net[2], net):
        fully_shard(layer, mesh=mesh, mp_policy=policy)
    if divide is not None:
        for layer in (net[0], net[2], net):
            layer.set_gradient_divide_factor(divide)
    given = torch.bfloat16 if mixed else torch.float64
    loss_of(net(batch(context.rank, 0, dtype=given))).backward()

    for rank in range(context.size):
        alone = copy.deepcopy(reference).to(given)
        loss_of(alone(batch(rank, 0, dtype=given))).backward()
        for total, part in zip(reference.parameters(), alone.parameters(), strict=True):
            share = part.grad.to(total.dtype) / (divide or context.size)
            total.grad = share if total.grad is None else total.grad + share
    close = {"rtol": 1e-6, "atol": 1e-7} if mixed else CLOSE
    for ours, expected in zip(net.parameters(), reference.parameters(), strict=True):
        torch.testing.assert_close(ours.grad.full_tensor(), expected.grad, **close)


def fsdp2_hybrid(context):
    """Replicated over one axis of the mesh, sharded over the other."""
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    net, reference = model(), model()
    mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("replicate", "shard"))
    for layer in (net[0], net[2], net):
        fully_shard(layer, mesh=mesh)
    train(net, context.rank, sgd(net))
    train_alone(reference, context.size, sgd(reference))
    for ours, expected in zip(net.parameters(), reference.parameters(), strict=True):
        torch.testing.assert_close(ours.full_tensor(), expected, **CLOSE)


# --- DTensor


def _placements():
    from torch.distributed.tensor import Partial, Replicate, Shard

    single = [Replicate(), Shard(0), Shard(1)]
    targets = [(a, b) for a in single for b in single]
    return targets, [*targets, (Partial(), Shard(0)), (Shard(1), Partial()), (Partial(), Partial())]


def redistribute(context, shape):
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor import DTensor, distribute_tensor

    mesh = init_device_mesh("cpu", (2, 2))
    whole = torch.arange(shape[0] * shape[1], dtype=torch.int64).reshape(shape) * 3 - 7
    targets, sources = _placements()
    for source in sources:
        partial = [placement.is_partial() for placement in source]
        shares = [2 if is_partial else 1 for is_partial in partial]
        start = list(source)
        for axis, is_partial in enumerate(partial):
            if is_partial:
                start[axis] = targets[0][0]
        local = distribute_tensor(whole, mesh, start).to_local()
        begun = DTensor.from_local(
            local, mesh, source, run_check=False, shape=whole.shape, stride=whole.stride()
        )
        expected = whole * shares[0] * shares[1]  # each rank of a partial axis holds all of it
        for target in targets:
            ended = begun.redistribute(placements=target)
            assert tuple(ended.placements) == target
            assert torch.equal(
                ended.to_local(), distribute_tensor(expected, mesh, target)._local_tensor
            )
            assert torch.equal(ended.full_tensor(), expected)


def tensor_parallel(context):
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor.parallel import (
        ColwiseParallel,
        RowwiseParallel,
        parallelize_module,
    )

    torch.manual_seed(3)
    net = nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 5)).double()
    reference = copy.deepcopy(net)
    mesh = init_device_mesh("cpu", (context.size,))
    parallelize_module(net, mesh, {"0": ColwiseParallel(), "2": RowwiseParallel()})
    for step in range(STEPS):
        for each in (net, reference):
            optimizer = sgd(each)
            optimizer.zero_grad()
            loss_of(each(batch(0, step))).backward()
            optimizer.step()
    for ours, expected in zip(net.parameters(), reference.parameters(), strict=True):
        torch.testing.assert_close(ours.full_tensor(), expected, **CLOSE)


# --- pipelining


def pipeline(context):
    from torch.distributed.pipelining import PipelineStage, Schedule1F1B

    torch.manual_seed(9)
    layers = [nn.Sequential(nn.Linear(6, 6), nn.Tanh()).double() for _ in range(context.size)]
    reference = copy.deepcopy(nn.Sequential(*layers))
    stage = PipelineStage(layers[context.rank], context.rank, context.size, torch.device("cpu"))
    chunks = 2 * context.size
    schedule = Schedule1F1B(stage, chunks, loss_fn=lambda output, target: loss_of(output - target))
    x, target = batch(0, 0, rows=2 * chunks), batch(1, 1, rows=2 * chunks)
    losses: list[torch.Tensor] = []
    if context.rank == 0:
        schedule.step(x)
    elif context.rank == context.size - 1:
        out = schedule.step(target=target, losses=losses)
        torch.testing.assert_close(out, reference(x), **CLOSE)
        assert len(losses) == chunks
    else:
        schedule.step()
    loss_of(reference(x) - target).backward()
    mine = reference[context.rank]
    for ours, expected in zip(layers[context.rank].parameters(), mine.parameters(), strict=True):
        torch.testing.assert_close(ours.grad, expected.grad, **CLOSE)
    if losses:
        whole = loss_of(reference(x) - target)
        torch.testing.assert_close(torch.stack(losses).mean(), whole, **CLOSE)


# --- checkpoints, optimizers


def checkpoint(context, folder):
    """Written as shards of one mesh, read as those of another; asynchronously too."""
    import torch.distributed.checkpoint as dcp
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor import Shard, distribute_tensor

    whole = torch.arange(35.0).reshape(7, 5)
    line = init_device_mesh("cpu", (context.size,))
    square = init_device_mesh("cpu", (2, 2))
    state = {"w": distribute_tensor(whole, line, [Shard(0)]), "step": 17}
    dcp.save(state, checkpoint_id=f"{folder}/sync")
    for where in ("sync", "async"):
        if where == "async":
            dcp.async_save(
                state,
                checkpoint_id=f"{folder}/async",
                process_group=dist.new_group(backend="byway"),
            ).result()
            dist.barrier()
        empty = distribute_tensor(torch.zeros(7, 5), square, [Shard(1), Shard(0)])
        loaded = {"w": empty, "step": 0}
        dcp.load(loaded, checkpoint_id=f"{folder}/{where}")
        assert torch.equal(loaded["w"].full_tensor(), whole)
        assert loaded["step"] == 17


def zero(context):
    from torch.distributed.optim import ZeroRedundancyOptimizer

    net, reference = model(), model()
    wrapped = nn.parallel.DistributedDataParallel(net)
    optimizer = ZeroRedundancyOptimizer(
        wrapped.parameters(), optimizer_class=torch.optim.Adam, lr=0.01
    )
    train(wrapped, context.rank, optimizer)
    train_alone(reference, context.size, torch.optim.Adam(reference.parameters(), lr=0.01))
    same_parameters(net, reference)
    optimizer.consolidate_state_dict(0)
    if context.rank == 0:
        assert len(optimizer.state_dict()["state"]) == len(list(net.parameters()))


# --- objects, functions, limits


def objects(context):
    mine = {"rank": context.rank, "values": torch.arange(context.rank + 1)}
    everywhere = [None] * context.size
    dist.all_gather_object(everywhere, mine)
    for rank, each in enumerate(everywhere):
        assert each["rank"] == rank
        assert torch.equal(each["values"], torch.arange(rank + 1))
    after, before = (context.rank + 1) % context.size, (context.rank - 1) % context.size
    got = [None, None]
    if context.rank == 0:
        dist.send_object_list([f"{context.rank} greets", (1, 2)], after)
    dist.recv_object_list(got, before)
    if context.rank != 0:
        dist.send_object_list([f"{context.rank} greets", (1, 2)], after)
    assert got == [f"{before} greets", (1, 2)]


def functions_with_gradients(context):
    import torch.distributed.nn.functional as functional

    size, rank = context.size, context.rank
    x = batch(rank, 0, rows=size).requires_grad_()
    weights = [batch(r, 1, rows=size) for r in range(size)]
    total = functional.all_reduce(x * 2)
    (total * weights[rank]).sum().backward()
    torch.testing.assert_close(total, 2 * sum(batch(r, 0, rows=size) for r in range(size)), **CLOSE)
    torch.testing.assert_close(x.grad, 2 * sum(weights), **CLOSE)
    x = batch(rank, 0, rows=size).requires_grad_()
    parts = functional.all_gather(x)
    sum((part * weights[r]).sum() * (rank + 1) for r, part in enumerate(parts)).backward()
    torch.testing.assert_close(x.grad, weights[rank] * sum(range(1, size + 1)), **CLOSE)
    x = batch(rank, 0, rows=size).requires_grad_()
    out = functional.all_to_all_single(torch.empty_like(x), x)
    assert torch.equal(out, torch.stack([batch(r, 0, rows=size)[rank] for r in range(size)]))
    (out * weights[rank]).sum().backward()
    torch.testing.assert_close(x.grad, torch.stack([w[rank] for w in weights]), **CLOSE)


def sync_batch_norm(context):
    """Upstream's limit: its kernels are for accelerators only."""
    layer = nn.SyncBatchNorm.convert_sync_batchnorm(nn.BatchNorm1d(6)).double()
    with pytest.raises(ValueError, match=r"GPU|cuda"):
        layer(batch(context.rank, 0))
    layer.eval()
    assert layer(batch(context.rank, 0)).shape == (4, 6)


# --- groups


def _sum_in(group, rank: int) -> int:
    tensor = torch.tensor([1 << rank])
    dist.all_reduce(tensor, group=group)
    return int(tensor)


def groups(context):
    rank = context.rank
    mine, everyone = dist.new_subgroups_by_enumeration([[3, 0], [1, 2]])
    assert len(everyone) == 2
    assert _sum_in(mine, rank) == (0b1001 if rank in (0, 3) else 0b0110)
    pairs, _ = dist.new_subgroups(2)
    assert _sum_in(pairs, rank) == (0b0011 if rank < 2 else 0b1100)
    three = dist.new_group([3, 1, 0])
    assert (
        _sum_in(three, rank) == 0b1011 if rank != 2 else three == dist.GroupMember.NON_GROUP_MEMBER
    )
    if rank != 2:
        with pytest.raises(ValueError, match="group"):
            dist.broadcast(torch.ones(1), 2, group=three)


def member_groups(context):
    """Made by their members alone: one by two of the ranks, all, then two at the same time."""
    rank = context.rank
    if rank in (0, 3):
        corner = dist.new_group([0, 3], use_local_synchronization=True)
        assert _sum_in(corner, rank) == 0b1001
    everyone = dist.new_group([0, 1, 2, 3], use_local_synchronization=True)
    assert _sum_in(everyone, rank) == 0b1111
    members = [0, 1] if rank < 2 else [2, 3]
    pair = dist.new_group(members, use_local_synchronization=True)
    assert _sum_in(pair, rank) == sum(1 << member for member in members)
    again = dist.new_group(members, use_local_synchronization=True)
    assert _sum_in(again, rank) == sum(1 << member for member in members)


def meshes(context):
    from torch.distributed.device_mesh import DeviceMesh, init_device_mesh

    rank = context.rank
    mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("row", "column"))
    assert _sum_in(mesh.get_group("row"), rank) == 0b0101 << rank % 2
    assert _sum_in(mesh.get_group("column"), rank) == 0b0011 << rank // 2 * 2
    assert _sum_in(mesh["row", "column"]._flatten("all").get_group(), rank) == 0b1111
    scrambled = DeviceMesh("cpu", torch.tensor([[3, 1], [0, 2]]))
    expected = {3: 0b1001, 0: 0b1001, 1: 0b0110, 2: 0b0110}
    assert _sum_in(scrambled.get_group(0), rank) == expected[rank]
