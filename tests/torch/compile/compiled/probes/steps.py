# SPDX-License-Identifier: BSD-3-Clause
"""Training steps of torch's parallel wrappers: compiled ones end with eager's parameters."""

import copy

import torch
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import DTensor
from torch.distributed.tensor.parallel import (
    ColwiseParallel,
    RowwiseParallel,
    parallelize_module,
)

from ..harness import compare

_STEPS = 2


class _Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.up = nn.Linear(8, 24)
        self.down = nn.Linear(24, 8)

    def forward(self, x):
        return x + self.down(torch.relu(self.up(x)))


def _network():
    torch.manual_seed(3)
    return nn.Sequential(_Block(), _Block())


def _whole(parameter):
    parameter = parameter.full_tensor() if isinstance(parameter, DTensor) else parameter
    return parameter.detach().clone()


def _train(model, run, c, mine):
    """The parameters after a few steps; `mine` says whether ranks have data of their own."""
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for k in range(_STEPS):
        optimizer.zero_grad()
        x = c.x(k, None if mine else 0, shape=(4, 8)) / 100
        run(x).square().mean().backward()
        optimizer.step()
    return [_whole(p) for p in model.parameters()]


def _same(wrap, c, backend, mine, **how):
    network = _network()
    eager = wrap(copy.deepcopy(network))
    compiled = wrap(copy.deepcopy(network))
    expected = _train(eager, eager, c, mine)
    run = torch.compile(compiled, backend=backend, **how)
    compare(_train(compiled, run, c, mine), expected, "parameters")
    before = [p.detach() for p in network.parameters()]
    assert any(not torch.equal(a, b) for a, b in zip(before, expected, strict=True))


def data_parallel(c, backend):
    _same(nn.parallel.DistributedDataParallel, c, backend, mine=True)


def fully_sharded(c, backend):
    mesh = init_device_mesh("cpu", (c.n,))

    def wrap(model):
        for block in model:
            fully_shard(block, mesh=mesh)
        return fully_shard(model, mesh=mesh)

    _same(wrap, c, backend, mine=True)


def tensor_parallel(c, backend):
    mesh = init_device_mesh("cpu", (c.n,))
    plan = {"up": ColwiseParallel(), "down": RowwiseParallel()}

    def wrap(model):
        for block in model:
            parallelize_module(block, mesh, plan)
        return model

    _same(wrap, c, backend, mine=False, fullgraph=True)


PROBES = (data_parallel, fully_sharded, tensor_parallel)
