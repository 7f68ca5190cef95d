# SPDX-License-Identifier: BSD-3-Clause
"""Works that leave the graph that made them. Each function is one probe; it takes (context,
backend).
"""

import gc

import torch
import torch.distributed as dist

from ..harness import CALLS, Counting, compare


def _compile(fn, backend, **how):
    counting = Counting(backend)
    return torch.compile(fn, backend=counting, fullgraph=True, **how), counting


def waited_outside(c, backend):
    def fn(x):
        y = x * 2
        w = dist.all_reduce(y, async_op=True)
        return y, w

    def on_argument(x):
        return dist.all_reduce(x, async_op=True)

    made, counting = _compile(fn, backend)
    made_on_argument, _ = _compile(on_argument, backend)
    for k in range(CALLS):
        y, w = made(c.x(k))
        assert w.wait()
        w.wait()
        compare(y, 2 * c.sum(k), f"call {k}")
        x = c.x(k)
        made_on_argument(x).wait()
        compare(x, c.sum(k), f"argument of call {k}")
    assert counting.graphs == 1


def waited_inside_and_returned(c, backend):
    def fn(x):
        y = x * 2
        w = dist.all_reduce(y, async_op=True)
        w.wait()
        return y + 1, w

    made, counting = _compile(fn, backend)
    for k in range(CALLS):
        y, w = made(c.x(k))
        w.wait()
        assert w.is_completed()
        compare(y, 2 * c.sum(k) + 1, f"call {k}")
    assert counting.graphs == 1


def waited_in_another_graph(c, backend):
    def first(x):
        y = x * 2
        return y, dist.all_reduce(y, async_op=True)

    def second(y, w):
        w.wait()
        return y + 1

    start, starts = _compile(first, backend)
    finish, finishes = _compile(second, backend)
    for k in range(CALLS):
        y, w = start(c.x(k))
        compare(finish(y, w), 2 * c.sum(k) + 1, f"call {k}")
    assert (starts.graphs, finishes.graphs) == (1, 1)


def stored_on_an_object(c, backend):
    class Holder:
        work = None

    holder = Holder()

    def fn(x):
        y = x * 2
        holder.work = dist.all_reduce(y, async_op=True)
        return y

    made, _ = _compile(fn, backend)
    for k in range(CALLS):
        y = made(c.x(k))
        holder.work.wait()
        compare(y, 2 * c.sum(k), f"call {k}")


def future_outside(c, backend):
    def fn(x):
        y = x * 2
        return y, dist.all_reduce(y, async_op=True)

    made, _ = _compile(fn, backend)
    for k in range(CALLS):
        _, w = made(c.x(k))
        future = w.get_future().then(lambda f: f.value()[0] + 1)
        compare(future.wait(), 2 * c.sum(k) + 1, f"call {k}")


def dropped(c, backend):
    """Handles that nobody waited for hold no memory once their transfers are over."""

    def fn(x):
        y = x * 2
        dist.all_reduce(y, async_op=True)
        return x + 1

    made, counting = _compile(fn, backend)
    for k in range(CALLS):
        compare(made(c.x(k)), c.x(k) + 1, f"call {k}")
    dist.barrier()
    gc.collect()
    for _ in range(100):
        if torch.ops.byway.traced_in_flight() == 0:
            break
        dist.barrier()
    assert torch.ops.byway.traced_in_flight() == 0
    assert counting.graphs == 1


def batch_built_outside(c, backend):
    """P2POps that the caller made are arguments."""

    def fn(ops, out):
        for work in dist.batch_isend_irecv(ops):
            work.wait()
        return out + 1

    made, _ = _compile(fn, backend)
    for k in range(CALLS):
        out = torch.zeros(4)
        ops = [dist.P2POp(dist.isend, c.x(k), c.next()), dist.P2POp(dist.irecv, out, c.previous())]
        compare(made(ops, out), c.x(k, (c.me - 1) % c.n) + 1, f"call {k}")


def reduce_overhead(c, backend):
    if backend != "inductor":
        return

    def fn(x):
        y = x * 2
        dist.all_reduce(y)
        return y + 1

    made = torch.compile(fn, fullgraph=True, mode="reduce-overhead")
    for k in range(CALLS):
        compare(made(c.x(k)), 2 * c.sum(k) + 1, f"call {k}")


PROBES = (
    waited_outside,
    waited_inside_and_returned,
    waited_in_another_graph,
    stored_on_an_object,
    future_outside,
    dropped,
    batch_built_outside,
    reduce_overhead,
)
