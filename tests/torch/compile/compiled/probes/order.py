# SPDX-License-Identifier: BSD-3-Clause
"""The order in which calls are executed, logged by each rank."""

import contextlib

import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as functional
from torch._inductor.utils import run_and_get_code

import byway.torch as bt

from ..harness import compare


@contextlib.contextmanager
def logged():
    """Names of the collective operators that compiled code calls."""
    log = []
    calls = [
        getattr(torch.ops.byway, name).default for name in ("run", "start", "fused", "fused_start")
    ]
    plain = torch._ops.OpOverload.__call__

    def call(self, /, *args, **kwargs):
        if self in calls:
            named = {**dict(zip(("token", "kind"), args, strict=False)), **kwargs}
            log.append(named.get("kind", named.get("collective")))
        elif self is torch.ops.byway.wait.default:
            log.append("wait")
        return plain(self, *args, **kwargs)

    torch._ops.OpOverload.__call__ = call
    try:
        yield log
    finally:
        torch._ops.OpOverload.__call__ = plain


def _logs(fn, args, backend):
    """What a call executes, once it is compiled, on every rank."""
    compiled = torch.compile(fn, backend=backend, fullgraph=True)
    compiled(*args())
    with logged() as log:
        out = compiled(*args())
    logs = [None] * dist.get_world_size()
    dist.all_gather_object(logs, log)
    return out, logs


def four_collectives(c, backend):
    """Functional and plain calls in turn, with compute that differs by rank around them."""
    group = dist.group.WORLD

    def even(x):
        a = functional.all_reduce(x, "sum", group)
        b = (x + 1).sin()
        dist.broadcast(b, 0)
        g = functional.all_gather_tensor(x * 3, 0, group)
        y = x * 2
        dist.all_reduce(y)
        return a + 1, b, g.cos(), y

    def odd(x):
        a = functional.all_reduce(x, "sum", group)
        b = torch.nn.functional.softmax(x.exp().tanh(), 0)
        dist.broadcast(b, 0)
        g = functional.all_gather_tensor(x * 3, 0, group)
        y = x.reshape(2, 2).t().contiguous().reshape(-1) * 2
        y = y.reshape(2, 2).t().contiguous().reshape(-1)
        dist.all_reduce(y)
        return y, g.sum(), b @ b, (a * a).relu()

    _, logs = _logs(even if c.me % 2 == 0 else odd, lambda: [c.x(1)], backend)
    if backend == "eager":
        # Dynamo's graph runs as it was written, functional collectives by upstream's operators.
        assert logs == [["broadcast", "all_reduce"]] * c.n, logs
    else:
        expected = ["all_reduce", "broadcast", "all_gather_single", "all_reduce"]
        assert logs == [expected] * c.n, logs


def functional_only(c, backend):
    """Functional collectives alone keep their order as well."""
    group = dist.group.WORLD

    def fn(x):
        a = functional.all_reduce(x, "sum", group)
        g = functional.all_gather_tensor(x, 0, group)
        r = functional.reduce_scatter_tensor(x.repeat(c.n), "sum", 0, group)
        if c.me % 2:
            return r.sin(), (g * 2).sum() + a.sum()
        return a + g[:4], g.reshape(-1, 4).t() @ torch.ones(c.n), r

    _, logs = _logs(fn, lambda: [c.x(1)], backend)
    if backend != "eager":
        assert logs == [["all_reduce", "all_gather_single", "reduce_scatter_single"]] * c.n, logs


def dropped_functional(c, backend):
    """A functional result that one rank uses and another does not."""

    def fn(x):
        a = functional.all_reduce(x, "sum", dist.group.WORLD)
        return a + 1 if c.me else x + 1

    out, logs = _logs(fn, lambda: [c.x(1)], backend)
    compare(out, c.sum(1) + 1 if c.me else c.x(1) + 1, "result")
    if backend != "eager":
        assert logs == [["all_reduce"]] * c.n, logs


def started_and_waited(c, backend):
    def fn(x):
        y, z = x * 2, x + 1
        first = dist.all_reduce(y, async_op=True)
        second = dist.broadcast(z, 0, async_op=True)
        w = (x.sin() * x).sum() if c.me else x.cumsum(0)
        first.wait()
        dist.barrier()
        second.wait()
        return y, z, w

    _, logs = _logs(fn, lambda: [c.x(1)], backend)
    assert logs == [["all_reduce", "broadcast", "wait", "barrier", "wait"]] * c.n, logs


def fused_among_others(c, backend):
    """Fused calls stand in the same order."""
    groups = [list(range(c.n))]

    def fn(x):
        y, z, out = x * 2, x + 1, torch.empty(4 * c.n)
        work = bt.fused_all_gather(x, groups, [4], out=out, async_op=True)
        a = functional.all_reduce(x.sin() if c.me else x, "sum", dist.group.WORLD)
        bt.fused_all_reduce(y, groups, [4])
        dist.broadcast(z, 0)
        work.wait()
        return y, z, out, a * 2 if c.me else a.cumsum(0)

    _, logs = _logs(fn, lambda: [c.x(1)], backend)
    expected = ["all_gather", "all_reduce", "all_reduce", "broadcast", "wait"]
    if backend == "eager":
        del expected[1]  # upstream's operator
    assert logs == [expected] * c.n, logs


def between_start_and_wait(c, backend):
    """What is computed while calls are under way stays there, though it is used after them."""
    _between_start_and_wait(c, backend, False)


def between_start_and_wait_in_training(c, backend):
    """The same in a forward graph that keeps values for its backward."""
    _between_start_and_wait(c, backend, True)


def _between_start_and_wait(c, backend, training):
    if backend != "inductor":
        return

    def fn(x, m):
        out = torch.empty(4 * c.n)
        work = dist.all_gather_into_tensor(out, x, async_op=True)
        z = torch.tanh(m @ m) @ m
        second = dist.all_reduce(x * 2, async_op=True)
        w = m @ z
        work.wait()
        v = w @ m
        second.wait()
        return out.sum() + z.sum() + v.sum()

    m = torch.eye(4, requires_grad=training)
    _, codes = run_and_get_code(torch.compile(fn, fullgraph=True), c.x(1), m)
    code = next(code for code in codes if "byway.start" in code)
    code = code[code.index("def call(") :]
    marks = {"byway.start.default(": "start", "byway.wait.default(": "wait", "kernels.mm(": "mm"}
    found = [name for line in code.splitlines() for mark, name in marks.items() if mark in line]
    assert found == ["start", "mm", "mm", "start", "mm", "wait", "mm", "wait"], code


PROBES = (
    between_start_and_wait,
    between_start_and_wait_in_training,
    four_collectives,
    functional_only,
    dropped_functional,
    started_and_waited,
    fused_among_others,
)
