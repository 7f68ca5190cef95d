# SPDX-License-Identifier: BSD-3-Clause
"""Ways of use that are more than one graph: groups and operations as arguments, results of
functional collectives outside, hand-written pipelines, refusals.
"""

import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as functional

import byway.torch as bt

from ..harness import CALLS, Counting, compare


def _compile(fn, backend, **how):
    counting = Counting(backend)
    return torch.compile(fn, backend=counting, fullgraph=True, **how), counting


def groups_in_turn(c, backend):
    """One graph for each group; none is compiled twice."""
    first = dist.new_group(list(range(c.n)))
    second = dist.new_group([0, 1])

    def fn(x, group):
        y = x * 2
        dist.all_reduce(y, group=group)
        return y + 1

    compiled, counting = _compile(fn, backend)
    inside = [(first, c.sum), (None, c.sum), (first, c.sum)]
    if c.me < 2:
        inside.insert(1, (second, lambda k: c.x(k, 0) + c.x(k, 1)))
        inside.append((second, lambda k: c.x(k, 0) + c.x(k, 1)))
    for k in range(2):
        for group, total in inside:
            compare(compiled(c.x(k), group), 2 * total(k) + 1, f"call {k}")
    assert counting.graphs == (3 if c.me < 2 else 2)
    dist.barrier()
    if c.me < 2:
        dist.destroy_process_group(second)
    dist.destroy_process_group(first)


def operations_in_turn(c, backend):
    """One graph for each ReduceOp object."""
    scaled = dist._make_nccl_premul_sum(2.0)
    by_tensor = dist._make_nccl_premul_sum(torch.tensor([3.0]))

    def fn(x, op):
        y = x * 1
        dist.all_reduce(y, op)
        return y

    compiled, counting = _compile(fn, backend)
    for k in range(2):
        for op, expected in (
            (dist.ReduceOp.SUM, c.sum(k)),
            (dist.ReduceOp.MAX, c.x(k, c.n - 1)),
            (scaled, 2 * c.sum(k)),
            (by_tensor, 3 * c.sum(k)),
        ):
            compare(compiled(c.x(k), op), expected, f"call {k}")
    assert counting.graphs == 4


def functional_results_outside(c, backend):
    """The first use of a functional result, outside of its graph: each use in turn."""

    def fn(x):
        return functional.all_reduce(x, "sum", dist.group.WORLD)

    compiled, counting = _compile(fn, backend)
    uses = {
        "print": lambda t, total: str(t) == str(total),
        "cast": lambda t, total: torch.equal(t.to(torch.float64), total.double()),
        "view": lambda t, total: torch.equal(t.view(2, 2), total.view(2, 2)),
        "slice": lambda t, total: torch.equal(t[1:3], total[1:3]),
        "in place": lambda t, total: torch.equal(t.add_(1), total + 1),
        "tolist": lambda t, total: t.tolist() == total.tolist(),
        "numpy": lambda t, total: (t.numpy() == total.numpy()).all(),
        "item": lambda t, total: t[2].item() == total[2].item(),
        "copy": lambda t, total: torch.equal(torch.empty(4).copy_(t), total),
    }
    for k, (name, holds) in enumerate(uses.items()):
        assert holds(compiled(c.x(k)), c.sum(k)), name
    assert counting.graphs == 1


def functional_results_inside(c, backend):
    """The same within the graph, where what was reduced is an argument and stays as it is."""
    group = dist.group.WORLD

    def fn(x):
        a = functional.all_reduce(x, "sum", group).to(torch.float64)
        b = functional.all_reduce(x, "sum", group).view(2, 2)
        d = functional.all_reduce(x, "sum", group)[1:3]
        e = functional.all_reduce(x, "sum", group).add_(1)
        f = functional.all_gather_tensor(x, 0, group)
        f[0] = 7
        g = torch.empty(4)
        g.copy_(functional.reduce_scatter_tensor(f * 1, "sum", 0, group))
        return a, b * 1, d + 0, e, f, g

    compiled, counting = _compile(fn, backend)
    for k in range(CALLS):
        x, total = c.x(k), c.sum(k)
        gathered = torch.cat(c.all(k))
        gathered[0] = 7
        expected = (total.double(), total.view(2, 2), total[1:3], total + 1, gathered,
                    c.n * gathered.view(c.n, 4)[c.me])  # fmt: skip
        compare(compiled(x), expected, f"call {k}")
        compare(x, c.x(k), f"argument of call {k}")
    assert counting.graphs == 1


def pipeline_step(c, backend):
    """A training step of hand-written stages: activations go on, their gradients come back, for
    two parts of the batch.
    """
    parts = 2

    def stage(x, weight):
        return torch.tanh(x @ weight)

    def step(batch, weight):
        total, done = torch.zeros_like(weight), []
        for x in batch.unbind():
            if c.me > 0:
                x = torch.empty_like(x)
                dist.recv(x, c.me - 1)
            y = stage(x, weight)
            if c.me < c.n - 1:
                dist.send(y, c.me + 1)
            done.append((x, y))
        for x, y in done:
            grad = y * 2  # of the sum of squares
            if c.me < c.n - 1:
                grad = torch.empty_like(y)
                dist.recv(grad, c.me + 1, tag=1)
            grad = grad * (1 - y * y)
            if c.me > 0:
                dist.send(grad @ weight.t(), c.me - 1, tag=1)
            total = total + x.t() @ grad
        return total

    def weight(r):
        return torch.eye(4) / (r + 2) + 0.1

    compiled, counting = _compile(step, backend)
    for k in range(CALLS):
        batch = c.x(k, 0, shape=(parts, 2, 4)) / 50
        weights = [weight(r).requires_grad_() for r in range(c.n)]
        y = batch
        for each in weights:
            y = stage(y, each)
        y.square().sum().backward()
        compare(compiled(batch, weight(c.me)), weights[c.me].grad, f"call {k}")
    assert counting.graphs == 1


def relayed_fused(c, backend):
    """Fused calls in a graph of which helpers carry a part: pairs among the ranks of a mesh."""
    if c.n < 3:
        return
    group = dist.new_group(pg_options=bt.Options(topology=f"mesh:{c.n}@1G,5"))
    count, member = 1 << 18, c.me < 2

    def fn(x):
        y, out = x * 2, torch.empty(2 * count)
        bt.fused_all_reduce(y if member else [], [[1, 0]], [count], group=group)
        given, into = (x, out) if member else ([], [])
        work = bt.fused_all_gather(given, [[1, 0]], [count], into, group, async_op=True)
        work.wait()
        return y, out if member else x

    compiled, counting = _compile(fn, backend)
    for k in range(2):
        x = c.x(k, shape=(count,)) / 1024
        both = [c.x(k, r, shape=(count,)) / 1024 for r in (1, 0)]
        expected = (2 * (both[0] + both[1]), torch.cat(both)) if member else (2 * x, x)
        compare(compiled(x), expected, f"call {k}")
    assert counting.graphs == 1
    routes = [call["route"] for call in bt.recorded_calls(group)["calls"][-4:]]
    assert not any(route.startswith("direct") for route in routes), routes
    dist.destroy_process_group(group)


def _refusal(fn, *args):
    try:
        fn(*args)
    except Exception as error:
        return str(error)
    return None


def refusals(c, backend):
    """What no graph can hold is refused while tracing, with nothing sent; the group goes on."""

    def made_here(x):
        y = x * 2
        dist.all_reduce(y, dist.ReduceOp(dist.ReduceOp.MAX))
        return y

    def eager_work(x, work):
        work.wait()
        return x + 1

    def unknown_sender(x):
        return x + dist.recv(x)

    def both_roots(x):
        dist.broadcast(x, 0, group_src=0)
        return x

    def on_complex(x):
        y = torch.complex(x, x)
        dist.all_reduce(y, dist.ReduceOp.MAX)
        return y

    y = c.x(0)
    work = dist.all_reduce(y, async_op=True)
    for fn, args, words in (
        (made_here, (), "ReduceOp"),
        (eager_work, (work,), "wait"),
        (unknown_sender, (), "give src or group_src"),
        (both_roots, (), "Can't specify both group_rank and global_rank"),
        (on_complex, (), "all_reduce does not support max on complex tensors"),
    ):
        torch._dynamo.reset()
        compiled, counting = _compile(fn, backend)
        said = _refusal(compiled, c.x(1), *args)
        assert words in (said or ""), f"{fn.__name__}: {said}"
        assert counting.graphs == 0, fn.__name__
    work.wait()
    compare(y, c.sum(0), "the eager call")

    def after(x):
        y = x * 2
        dist.all_reduce(y)
        return y

    compiled, _ = _compile(after, backend)
    compare(compiled(c.x(1)), 2 * c.sum(1), "a call after the refusals")


PROBES = (
    groups_in_turn,
    operations_in_turn,
    functional_results_outside,
    functional_results_inside,
    pipeline_step,
    relayed_fused,
    refusals,
)
