# SPDX-License-Identifier: BSD-3-Clause
"""Sends and receives."""

import torch
import torch.distributed as dist

from ..harness import Program, case


@case
def send_recv(c):
    """Rank 0 sends to rank 1, which sends back what it got, doubled."""
    first, second = c.ranks[0], c.ranks[1]

    def fn(x):
        y = x * 1
        if c.me == 0:
            dist.send(x, second, group=c.pg)
            dist.recv(y, second, group=c.pg, tag=3)
        elif c.me == 1:
            dist.recv(y, first, group=c.pg)
            dist.send(y * 2, group_dst=0, group=c.pg, tag=3)
        return y + 1

    def out(k):
        return {0: 2 * c.x(k, 0), 1: c.x(k, 0)}.get(c.me, c.x(k)) + 1

    return Program(fn, lambda k: [c.x(k)], out)


@case
def recv_value(c):
    """recv returns the sender's global rank."""

    def fn(x, out):
        source = -5
        if c.me == 0:
            dist.send(x, group_dst=1, group=c.pg)
        elif c.me == 1:
            source = dist.recv(out, group_src=0, group=c.pg)
        return x + source

    return Program(
        fn,
        lambda k: [c.x(k), torch.zeros(4)],
        lambda k: c.x(k) + (c.ranks[0] if c.me == 1 else -5),
        lambda k: [c.x(k), c.x(k, 0) if c.me == 1 else torch.zeros(4)],
    )


@case
def ring(c):
    """The send is started before the receive, and waited after it."""
    before = (c.me - 1) % c.n

    def fn(x):
        out = torch.empty_like(x)
        sent = dist.isend(x * 2, c.next(), group=c.pg)
        received = dist.irecv(out, c.previous(), group=c.pg)
        received.wait()
        sent.wait()
        return out + x

    return Program(fn, lambda k: [c.x(k)], lambda k: 2 * c.x(k, before) + c.x(k))


@case
def ring_receive_first(c):
    before = (c.me - 1) % c.n

    def fn(x, out):
        received = dist.irecv(out, group_src=before, group=c.pg)
        sent = dist.isend(x + 1, group_dst=(c.me + 1) % c.n, group=c.pg)
        sent.wait()
        received.wait()
        return out * 2

    return Program(
        fn,
        lambda k: [c.x(k), torch.zeros(4)],
        lambda k: 2 * (c.x(k, before) + 1),
        lambda k: [c.x(k), c.x(k, before) + 1],
    )


@case
def irecv_any_source(c):
    before = (c.me - 1) % c.n

    def fn(x):
        out = torch.empty_like(x)
        received = dist.irecv(out, group=c.pg)
        sent = dist.isend(x, c.next(), group=c.pg)
        received.wait()
        sent.wait()
        return out + 1

    return Program(fn, lambda k: [c.x(k)], lambda k: c.x(k, before) + 1)


@case
def batch(c):
    before = (c.me - 1) % c.n

    def fn(x):
        out = torch.empty_like(x)
        ops = [
            dist.P2POp(dist.isend, x + 1, c.next(), group=c.pg),
            dist.P2POp(dist.irecv, out, c.previous(), group=c.pg),
        ]
        for work in dist.batch_isend_irecv(ops):
            work.wait()
        return out + x

    return Program(fn, lambda k: [c.x(k)], lambda k: c.x(k, before) + 1 + c.x(k))


@case
def batch_all_pairs(c):
    """Several transfers each way, of two types, by group rank."""

    def fn(x):
        whole = x.to(torch.int64)
        outs = [torch.empty_like(x) for _ in range(c.n)]
        wholes = [torch.empty_like(whole) for _ in range(c.n)]
        ops = []
        for peer in range(c.n):
            if peer != c.me:
                ops.append(dist.P2POp(dist.irecv, outs[peer], group=c.pg, group_peer=peer))
                ops.append(dist.P2POp(dist.isend, x * (peer + 1), group=c.pg, group_peer=peer))
                ops.append(dist.P2POp(dist.isend, whole + peer, group=c.pg, group_peer=peer, tag=1))
                ops.append(dist.P2POp(dist.irecv, wholes[peer], group=c.pg, group_peer=peer, tag=1))
        for work in dist.batch_isend_irecv(ops):
            work.wait()
        return [outs[p] + wholes[p] for p in range(c.n) if p != c.me]

    def out(k):
        return [c.x(k, p) * (c.me + 1) + c.x(k, p) + c.me for p in range(c.n) if p != c.me]

    return Program(fn, lambda k: [c.x(k)], out)


@case
def isend_dropped(c):
    """Nobody waits for the send."""
    before = (c.me - 1) % c.n

    def fn(x):
        out = torch.empty_like(x)
        dist.isend(x * 3, c.next(), group=c.pg)
        dist.recv(out, c.previous(), group=c.pg)
        return out + 1

    return Program(fn, lambda k: [c.x(k)], lambda k: 3 * c.x(k, before) + 1)


@case
def pipeline(c):
    """Stages that hand on what they computed, by hand-written sends and receives."""

    def fn(x, weight):
        if c.me > 0:
            dist.recv(x, group_src=c.me - 1, group=c.pg)
        y = torch.relu(x @ weight)
        if c.me < c.n - 1:
            dist.send(y, group_dst=c.me + 1, group=c.pg)
        return y

    def weight(k, r):
        return torch.eye(4) * (r + 2) + k

    def out(k):
        x = c.x(k, 0, shape=(2, 4))
        for r in range(c.me + 1):
            x = torch.relu(x @ weight(k, r))
        return x

    def after(k):
        x = c.x(k, 0, shape=(2, 4))
        for r in range(c.me):
            x = torch.relu(x @ weight(k, r))
        return [x, weight(k, c.me)]

    return Program(fn, lambda k: [c.x(k, 0, shape=(2, 4)), weight(k, c.me)], out, after)
