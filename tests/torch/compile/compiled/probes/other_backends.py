# SPDX-License-Identifier: BSD-3-Clause
"""A Gloo group's graphs are those of a torch without Byway."""

import contextlib

import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as functional
from torch._dynamo.backends.common import aot_autograd

from byway.torch import compile as tracing


def _programs(group, n):
    def all_reduce(x):
        y = x * 2
        dist.all_reduce(y, group=group)
        return y

    def all_reduce_max(x):
        y = x * 2
        dist.all_reduce(y, dist.ReduceOp.MAX, group)
        return y

    def all_gather(x):
        outs = [torch.empty_like(x) for _ in range(n)]
        dist.all_gather(outs, x, group=group)
        return outs

    def all_gather_single(x):
        out = torch.empty(n * 4)
        dist.all_gather_into_tensor(out, x, group=group)
        return out

    def reduce_scatter(x):
        out = torch.empty(4)
        dist.reduce_scatter_tensor(out, x.repeat(n), op=dist.ReduceOp.SUM, group=group)
        return out

    def all_to_all(x):
        out = torch.empty(4 * n)
        dist.all_to_all_single(out, x.repeat(n), group=group)
        return out

    def functions(x):
        return functional.all_gather_tensor(functional.all_reduce(x, "sum", group), 0, group)

    def broadcast(x):
        dist.broadcast(x, 0, group=group)
        return x

    def asynchronous(x):
        w = dist.all_reduce(x, group=group, async_op=True)
        w.wait()
        return x

    def isend(x):
        w = dist.isend(x, 0, group=group)
        return x if w is None else x + 1

    def barrier(x):
        dist.barrier(group=group)
        return x + 1

    return (all_reduce, all_reduce_max, all_gather, all_gather_single, reduce_scatter, all_to_all,
            functions, broadcast, asynchronous, isend, barrier)  # fmt: skip


def _nodes(module):
    """The graph, with nodes by number: names differ by what Dynamo inlined."""
    number = {node: f"%{i}" for i, node in enumerate(module.graph.nodes)}
    shown = []
    for node in module.graph.nodes:
        target = "" if node.op in ("placeholder", "output") else str(node.target)
        args = torch.fx.map_arg((node.args, node.kwargs), lambda n: number[n])
        shown.append((node.op, target, str(args)))
    return shown


def _graphs(fn):
    """The graphs before and after AOTAutograd, or the kind of the refusal."""
    torch._dynamo.reset()
    seen = []

    def compiler(module, inputs):
        seen.append(_nodes(module))
        return module.forward

    aot = aot_autograd(fw_compiler=compiler)

    def backend(module, inputs):
        seen.append(_nodes(module))
        return aot(module, inputs)

    compiled = torch.compile(fn, backend=backend, fullgraph=True)
    try:
        compiled(torch.arange(4.0))
    except Exception as error:
        return type(error).__name__
    return seen


@contextlib.contextmanager
def _without_byway():
    tracing.uninstall()
    try:
        yield
    finally:
        tracing.install()


def same_graphs(c, backend):
    group = dist.new_group(list(range(c.n)), backend="gloo")
    with _without_byway():
        plain = [_graphs(fn) for fn in _programs(group, c.n)]
    beside = [_graphs(fn) for fn in _programs(group, c.n)]
    for fn, a, b in zip(_programs(group, c.n), plain, beside, strict=True):
        assert a == b, f"{fn.__name__}: {a}\n{b}"
    assert not isinstance(plain[0], str)
    assert sum(isinstance(graphs, str) for graphs in plain) == 4
    dist.destroy_process_group(group)


def installed_once(c, backend):
    """Installing again changes nothing; uninstalling gives back what was there."""
    from torch.distributed import _functional_collectives as upstream

    config = torch._dynamo.config
    before = dict(upstream.traceable_collective_remaps)
    tracing.install()
    assert dict(upstream.traceable_collective_remaps) == before
    assert tracing.status() == ("installed", None)
    with _without_byway():
        assert tracing.status() == ("off", None)
        assert len(upstream.traceable_collective_remaps) < len(before)
        assert not any(
            "byway" in f.__module__ for f in upstream.traceable_collective_remaps.values()
        )
        assert not config.enable_p2p_compilation
    assert tracing.status() == ("installed", None)
    assert config.enable_p2p_compilation

    def fn(x):
        y = x * 2
        dist.broadcast(y, 0)
        return y

    torch.testing.assert_close(
        torch.compile(fn, fullgraph=True, backend="eager")(c.x(1)), 2 * c.x(1, 0)
    )


PROBES = (same_graphs, installed_once)
