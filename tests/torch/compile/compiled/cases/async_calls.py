# SPDX-License-Identifier: BSD-3-Clause
"""async_op=True: what is done with the Work, inside the graph."""

import torch
import torch.distributed as dist

from ..harness import Program, case


@case
def async_temp(c):
    def fn(x):
        y = x * 2
        w = dist.all_reduce(y, group=c.pg, async_op=True)
        z = x + 3
        w.wait()
        return y + z

    return Program(fn, lambda k: [c.x(k)], lambda k: c.sum(k) * 2 + c.x(k) + 3)


@case
def async_input_wait_twice(c):
    def fn(x):
        w = dist.all_reduce(x, group=c.pg, async_op=True)
        w.wait()
        w.wait()
        return x + 1

    return Program(fn, lambda k: [c.x(k)], lambda k: c.sum(k) + 1, lambda k: [c.sum(k)])


@case
def async_all_gather(c):
    def fn(x):
        outs = [torch.empty_like(x) for _ in range(c.n)]
        w = dist.all_gather(outs, x + 1, group=c.pg, async_op=True)
        w.wait()
        return torch.cat(outs) * 2

    return Program(fn, lambda k: [c.x(k)], lambda k: 2 * (torch.cat(c.all(k)) + 1))


@case
def async_every_kind(c):
    """The calls that no other case starts asynchronously."""

    def fn(x):
        n, pg = c.n, c.pg
        rows = list(x.unbind())
        b = x * 1
        r = x * 1
        gathered = torch.empty(n * n, 4)
        scattered, scattered_list, row = torch.empty(4), torch.empty(4), torch.empty(4)
        exchanged, exchanged_list = torch.empty_like(x), [torch.empty(4) for _ in range(n)]
        outs = [torch.empty_like(x) for _ in range(n)] if c.me == 0 else None
        works = [
            dist.broadcast(b, group=pg, group_src=1, async_op=True),
            dist.reduce(r, group=pg, group_dst=0, async_op=True),
            dist.all_gather_into_tensor(gathered, x, group=pg, async_op=True),
            dist.reduce_scatter_tensor(scattered, x.reshape(-1), group=pg, async_op=True),
            dist.reduce_scatter(scattered_list, rows, group=pg, async_op=True),
            dist.all_to_all_single(exchanged, x, group=pg, async_op=True),
            dist.all_to_all(exchanged_list, rows, group=pg, async_op=True),
            dist.scatter(row, rows if c.me == 0 else None, group=pg, group_src=0, async_op=True),
            dist.gather(x, outs, group=pg, group_dst=0, async_op=True),
        ]
        for w in works:
            w.wait()
        result = [
            b,
            gathered,
            scattered,
            scattered_list,
            exchanged,
            torch.stack(exchanged_list),
            row,
        ]
        return result + ([r, torch.stack(outs)] if c.me == 0 else [])

    def out(k):
        every = c.all(k, shape=(c.n, 4))
        total = sum(every)
        column = torch.stack([x[c.me] for x in every])
        result = [
            every[1],
            torch.cat(every),
            total[c.me],
            total[c.me],
            column,
            column,
            every[0][c.me],
        ]
        return result + ([total, torch.stack(every)] if c.me == 0 else [])

    return Program(fn, lambda k: [c.x(k, shape=(c.n, 4))], out)


@case
def async_is_completed(c):
    def fn(x):
        y = x * 2
        w = dist.all_reduce(y, group=c.pg, async_op=True)
        while not w.is_completed():
            pass
        return y + 1

    return Program(fn, lambda k: [c.x(k)], lambda k: c.sum(k) * 2 + 1)


@case
def async_two_opposite(c):
    """Two in flight, waited in the opposite order."""

    def fn(x):
        a, b = x * 2, x + 1
        first = dist.all_reduce(a, group=c.pg, async_op=True)
        second = dist.all_reduce(b, op=dist.ReduceOp.MAX, group=c.pg, async_op=True)
        second.wait()
        z = b * 3
        first.wait()
        return a + z

    return Program(fn, lambda k: [c.x(k)], lambda k: c.sum(k) * 2 + 3 * (c.x(k, c.n - 1) + 1))


@case
def async_buffer_reuse(c):
    """A compiler that frees `y` after the start may write `z` into its memory while the call is
    under way.
    """

    def fn(x):
        y = x * 2
        out = torch.empty(c.n * 64)
        w = dist.all_gather_into_tensor(out, y, group=c.pg, async_op=True)
        z = torch.sin(x)
        for _ in range(4):
            z = z @ x.reshape(8, 8) if z.dim() == 2 else torch.cos(z).reshape(8, 8)
        w.wait()
        return out, z

    def out(k):
        x = c.x(k, shape=(64,)) / 64
        z = torch.cos(torch.sin(x)).reshape(8, 8)
        for _ in range(3):
            z = z @ x.reshape(8, 8)
        return torch.cat([2 * t / 64 for t in c.all(k, shape=(64,))]), z

    return Program(fn, lambda k: [c.x(k, shape=(64,)) / 64], out)


@case
def async_future(c):
    def fn(x):
        y = x * 2
        future = dist.all_reduce(y, group=c.pg, async_op=True).get_future()
        halved = future.then(lambda f: f.value()[0] / 2)
        return future.wait()[0] + 1, halved.wait()

    return Program(fn, lambda k: [c.x(k)], lambda k: (c.sum(k) * 2 + 1, c.sum(k)))


@case
def async_result(c):
    def fn(x):
        y = x * 2
        w = dist.all_reduce(y, group=c.pg, async_op=True)
        if w is not None and w:
            return w.result()[0] + 1
        return x

    return Program(fn, lambda k: [c.x(k)], lambda k: c.sum(k) * 2 + 1)


@case
def async_list(c):
    def fn(x):
        ys = [x * (i + 1) for i in range(3)]
        works = [dist.all_reduce(y, group=c.pg, async_op=True) for y in ys]
        for w in works:
            w.wait()
        return ys

    return Program(fn, lambda k: [c.x(k)], lambda k: [c.sum(k) * (i + 1) for i in range(3)])
