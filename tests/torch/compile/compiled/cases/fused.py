# SPDX-License-Identifier: BSD-3-Clause
"""byway.torch.fused_*: groups within a group, with ranks that only help."""

import torch
import torch.distributed as dist

import byway.torch as bt

from ..harness import Program, case


class _Place:
    """The groups of a call, of group ranks: out of order, and from three ranks on with a helper
    or two groups.
    """

    def __init__(self, c):
        of_size = {1: [[0]], 2: [[1, 0]], 3: [[2, 0]], 4: [[3, 1], [0, 2]]}
        self.members = next((g for g in of_size[c.n] if c.me in g), [])
        self.groups = [[c.ranks[place] for place in each] for each in of_size[c.n]]
        self.helps = not self.members
        self.index = -1 if self.helps else self.members.index(c.me)
        self.size = len(self.members)
        self.count = len(self.groups)


@case
def fused_all_reduce_temp(c):
    p = _Place(c)

    def fn(x):
        y = x * 2
        bt.fused_all_reduce([] if p.helps else y, p.groups, group=c.pg, key="temp")
        return y + 1

    def out(k):
        return (2 * c.x(k) if p.helps else 2 * sum(c.x(k, r) for r in p.members)) + 1

    return Program(fn, lambda k: [c.x(k)], out)


@case
def fused_all_reduce_input(c):
    """An argument, in place; counts are stated, the operation is an argument's."""
    p = _Place(c)

    def fn(x):
        bt.fused_all_reduce(
            [] if p.helps else [x], p.groups, [4] * p.count, dist.ReduceOp.MAX, group=c.pg
        )
        return x * 2

    def after(k):
        return c.x(k) if p.helps else c.x(k, max(p.members))

    return Program(fn, lambda k: [c.x(k)], lambda k: 2 * after(k), lambda k: [after(k)])


@case
def fused_all_reduce_types(c):
    """A list of two types, out of place, with counts by type."""
    p = _Place(c)
    counts = {torch.float32: [7] * p.count, torch.int64: [4] * p.count}

    def fn(x, i):
        given = [] if p.helps else [x + 1, i, x.reshape(-1)[:3]]
        out = [torch.empty_like(t) for t in given]
        bt.fused_all_reduce(given, p.groups, counts, out=out, group=c.pg)
        return out

    def out(k):
        if p.helps:
            return []
        x = sum(c.x(k, r, shape=(2, 2)) for r in p.members)
        i = sum(c.x(k, r, dtype=torch.int64) for r in p.members)
        return [x + p.size, i, x.reshape(-1)[:3]]

    return Program(fn, lambda k: [c.x(k, shape=(2, 2)), c.x(k, dtype=torch.int64)], out)


@case
def fused_all_reduce_premul(c):
    p = _Place(c)
    scaled = dist._make_nccl_premul_sum(0.5)

    def fn(x, factor):
        y, z = x * 2, x + 1
        both = [[], []] if p.helps else [y, [z]]
        bt.fused_all_reduce(both[0], p.groups, op=scaled, group=c.pg, key=("premul", 1))
        made = dist._make_nccl_premul_sum(factor)
        bt.fused_all_reduce(both[1], p.groups, op=made, group=c.pg, key=("premul", 2))
        return y, z

    def out(k):
        if p.helps:
            return 2 * c.x(k), c.x(k) + 1
        total = sum(c.x(k, r) for r in p.members)
        return total, (total + p.size) * (k + 2.0)

    return Program(fn, lambda k: [c.x(k), torch.tensor([k + 2.0])], out)


@case
def fused_all_gather(c):
    """Blocks of unlike size."""
    p = _Place(c)
    counts = [[i + 2 for i in range(len(each))] for each in p.groups]

    def fn(x):
        if p.helps:
            bt.fused_all_gather([], p.groups, counts, group=c.pg)
            return x
        out = torch.empty(sum(i + 2 for i in range(p.size)))
        bt.fused_all_gather(x[: p.index + 2] * 2, p.groups, counts, out=out, group=c.pg)
        return out + 1

    def out(k):
        if p.helps:
            return c.x(k)
        return torch.cat([2 * c.x(k, r)[: i + 2] for i, r in enumerate(p.members)]) + 1

    return Program(fn, lambda k: [c.x(k)], out)


@case
def fused_all_gather_in_place(c):
    """The input is the rank's own block of the output, an argument."""
    p = _Place(c)

    def fn(whole):
        if p.helps:
            bt.fused_all_gather([], p.groups, group=c.pg, key="in place")
            return whole
        own = whole[p.index * 4 : (p.index + 1) * 4]
        bt.fused_all_gather(own, p.groups, out=whole, group=c.pg, key="in place")
        return whole * 2

    def args(k):
        whole = torch.zeros(8)
        if not p.helps:
            whole[p.index * 4 : (p.index + 1) * 4] = c.x(k)
        return [whole]

    def after(k):
        return torch.zeros(8) if p.helps else torch.cat([c.x(k, r) for r in p.members])

    return Program(fn, args, lambda k: after(k) if p.helps else 2 * after(k), lambda k: [after(k)])


def _block(c, p, k):
    return sum(c.x(k, r, shape=(2, 4)) for r in p.members)[p.index]


@case
def fused_reduce_scatter(c):
    p = _Place(c)

    def fn(x, out):
        given, outs = ([], []) if p.helps else ([x.reshape(-1) * 2, x.reshape(-1)],
                                                [torch.empty(4), out])  # fmt: skip
        bt.fused_reduce_scatter(given, p.groups, out=outs, group=c.pg, key="two")
        return out * 1 if p.helps else outs[0] + outs[1]

    def reduced(k):
        return torch.zeros(4) if p.helps else _block(c, p, k)

    return Program(
        fn,
        lambda k: [c.x(k, shape=(2, 4)), torch.zeros(4)],
        lambda k: 3 * reduced(k),
        lambda k: [c.x(k, shape=(2, 4)), reduced(k)],
    )


@case
def fused_all_to_all(c):
    p = _Place(c)

    def fn(x):
        out = torch.empty_like(x)
        bt.fused_all_to_all([] if p.helps else x + 1, p.groups, [4] * p.count,
                            None if p.helps else out, c.pg)  # fmt: skip
        return x if p.helps else out

    def out(k):
        if p.helps:
            return c.x(k, shape=(2, 4))
        return torch.stack([c.x(k, r, shape=(2, 4))[p.index] + 1 for r in p.members])

    return Program(fn, lambda k: [c.x(k, shape=(2, 4))], out)


def _roots(p):
    return [each[-1] for each in p.groups]


@case
def fused_broadcast(c):
    """From each group's first rank in place, and from its last to another tensor."""
    p = _Place(c)
    last = p.index == p.size - 1

    def fn(x):
        y, out = x * 2, torch.empty_like(x)
        bt.fused_broadcast([] if p.helps else y, p.groups, group=c.pg, key=3)
        given = [x + 1] if last and not p.helps else []
        bt.fused_broadcast(given, p.groups, roots=_roots(p), out=[] if p.helps else [out],
                           group=c.pg, key=4)  # fmt: skip
        return (y, x) if p.helps else (y, out)

    def out(k):
        if p.helps:
            return 2 * c.x(k), c.x(k)
        return 2 * c.x(k, p.members[0]), c.x(k, p.members[-1]) + 1

    return Program(fn, lambda k: [c.x(k)], out)


@case
def fused_reduce(c):
    """To each group's first rank in place, and to its last's other tensor."""
    p = _Place(c)
    last = p.index == p.size - 1

    def fn(x):
        y, out = x * 2, torch.zeros_like(x)
        bt.fused_reduce([] if p.helps else y, p.groups, group=c.pg, key="first")
        bt.fused_reduce([] if p.helps else [x], p.groups, roots=_roots(p), op=dist.ReduceOp.MIN,
                        out=[out] if last and not p.helps else [], group=c.pg,
                        key="last")  # fmt: skip
        return y, out

    def out(k):
        first = p.index == 0
        total = 2 * sum(c.x(k, r) for r in p.members) if first else 2 * c.x(k)
        smallest = c.x(k, min(p.members)) if last and not p.helps else torch.zeros(4)
        return total, smallest

    return Program(fn, lambda k: [c.x(k)], out)


@case
def fused_async(c):
    """Each call started before the first wait; waits in the opposite order."""
    p = _Place(c)
    last = p.index == p.size - 1

    def fn(x):
        flat = x.reshape(-1)
        outs = [torch.zeros(16), torch.zeros(4), torch.zeros(8)]
        y, b, r = flat * 2, flat + 1, flat * 3
        given = [[], [], [], [], [], []] if p.helps else [[y], flat, flat, flat, [b], [r]]
        into = [[], [], []] if p.helps else outs
        works = [
            bt.fused_all_reduce(given[0], p.groups, group=c.pg, async_op=True, key="a"),
            bt.fused_all_gather(given[1], p.groups, out=into[0], group=c.pg, async_op=True,
                                key="a"),
            bt.fused_reduce_scatter(given[2], p.groups, out=into[1], group=c.pg, async_op=True,
                                    key="a"),
            bt.fused_all_to_all(given[3], p.groups, out=into[2], group=c.pg, async_op=True,
                                key="a"),
            bt.fused_broadcast(given[4], p.groups, group=c.pg, async_op=True, key="a"),
            bt.fused_reduce(given[5], p.groups, roots=_roots(p), group=c.pg, async_op=True,
                            key="a"),
        ]  # fmt: skip
        z = flat.sin()
        for work in reversed(works):
            work.wait()
        return [y, b, r, *outs, z]

    def out(k):
        own = c.x(k, shape=(8,))
        if p.helps:
            return [2 * own, own + 1, 3 * own, torch.zeros(16), torch.zeros(4), torch.zeros(8),
                    own.sin()]  # fmt: skip
        every = [c.x(k, r, shape=(8,)) for r in p.members]
        return [
            2 * sum(every),
            every[0] + 1,
            3 * sum(every) if last else 3 * own,
            torch.cat(every),
            _block(c, p, k),
            torch.cat([x.reshape(2, 4)[p.index] for x in every]),
            own.sin(),
        ]

    return Program(fn, lambda k: [c.x(k, shape=(2, 4))], out)


@case
def fused_complex(c):
    """Complex numbers beside real ones, waited and started."""
    p = _Place(c)

    def fn(x):
        z = torch.complex(x, x + 2)
        y, w = z * 2, z + 1
        bt.fused_all_reduce([] if p.helps else [y, x], p.groups, group=c.pg, key="complex")
        work = bt.fused_all_reduce([] if p.helps else w, p.groups, group=c.pg, async_op=True,
                                   key="one complex")  # fmt: skip
        work.wait()
        return y, w

    def total(k):
        members = [c.me] if p.helps else p.members
        return sum(torch.complex(c.x(k, r), c.x(k, r) + 2) for r in members)

    def after(k):
        return [c.x(k) if p.helps else sum(c.x(k, r) for r in p.members)]

    return Program(
        fn, lambda k: [c.x(k)], lambda k: (2 * total(k), total(k) + max(p.size, 1)), after
    )


@case
def fused_groups_argument(c):
    """Groups and counts are arguments; the sizes change with every call."""
    p = _Place(c)

    def fn(x, groups, counts):
        y = x * 2
        bt.fused_all_reduce([] if p.helps else [y], groups, counts, group=c.pg)
        return y + 1

    def args(k):
        x = c.x(k, shape=_shape(k))
        torch._dynamo.mark_dynamic(x, 0)
        return [x, p.groups, [x.numel()] * p.count]

    def _shape(k):
        return (k + 3, 4)

    def out(k):
        members = [c.me] if p.helps else p.members
        return 2 * sum(c.x(k, r, shape=_shape(k)) for r in members) + 1

    return Program(fn, args, out, dynamic=True)


@case
def fused_among_others(c):
    """A fused call between plain and functional ones."""
    p = _Place(c)

    def fn(x):
        y = x * 2
        dist.all_reduce(y, group=c.pg)
        z = y + 1
        bt.fused_all_reduce([] if p.helps else z, p.groups, [4] * p.count, group=c.pg)
        dist.broadcast(z, group=c.pg, group_src=0)
        return y, z

    def out(k):
        y = 2 * c.sum(k)
        return y, 2 * (y + 1)  # the root's group has two members

    return Program(fn, lambda k: [c.x(k)], out)
