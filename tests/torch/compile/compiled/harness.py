# SPDX-License-Identifier: BSD-3-Clause
"""What a case is, and how a rank runs one: compiled once, called several times, everything
compared.
"""

import dataclasses
import importlib
from collections.abc import Callable

import torch
import torch._dynamo
import torch.distributed as dist

CALLS = 3
CASES: dict = {}


@dataclasses.dataclass
class Program:
    """`fn` is what is compiled; the rest is made for call number k without running it."""

    fn: Callable
    args: Callable  # k -> list of arguments
    out: Callable  # k -> what fn returns
    after: Callable | None = None  # k -> the arguments afterwards, where the call changes them
    graphs: int = 1
    dynamic: bool | None = None
    config: dict = dataclasses.field(default_factory=dict)


def case(make):
    CASES[make.__name__] = make
    return make


class Context:
    """One rank's view of the group that a case uses."""

    def __init__(self, group, ranks):
        self.pg = group  # None: the default group
        self.ranks = ranks  # global ranks
        self.n = len(ranks)
        self.me = ranks.index(dist.get_rank())
        self.group = group if group is not None else dist.group.WORLD

    def x(self, k, rank=None, shape=(4,), dtype=torch.float32):
        """Data that depend on rank, call and index; whole numbers, so that sums are exact."""
        rank = self.me if rank is None else rank
        count = 1
        for size in shape:
            count *= size
        return (torch.arange(count) * 3 + rank * 17 + k * 5 + 1).reshape(shape).to(dtype)

    def all(self, k, **how):
        return [self.x(k, rank, **how) for rank in range(self.n)]

    def sum(self, k, **how):
        return sum(self.all(k, **how))

    def next(self):
        return self.ranks[(self.me + 1) % self.n]

    def previous(self):
        return self.ranks[(self.me - 1) % self.n]


def subgroup_ranks(size):
    """Members whose group rank differs from the global rank where the world is large enough."""
    return {2: [0, 1], 3: [0, 2], 4: [1, 2, 3]}[size]


def context(rank, grouping):
    """None on a rank that is not in the group."""
    if grouping == "world":
        return Context(None, list(range(rank.size)))
    members = subgroup_ranks(rank.size)
    group = rank.group(tuple(members))
    return Context(group, members) if rank.rank in members else None


class Counting:
    """A backend that counts the graphs it is given."""

    def __init__(self, name):
        self.graphs = 0
        self._compile = torch._dynamo.lookup_backend(name)

    def __call__(self, module, inputs):
        self.graphs += 1
        return self._compile(module, inputs)


def compare(got, expected, what):
    torch.testing.assert_close(
        got,
        expected,
        rtol=1e-5,
        atol=1e-5,
        msg=lambda text: f"{what}: {text}\ngot {got}\nexpected {expected}",
    )


def run_case(rank, name, backend, grouping):
    """Returns the number of graphs; None on a rank that is not in the group."""
    from . import cases  # noqa: F401

    c = context(rank, grouping)
    if c is None:
        return None
    return run_program(CASES[name](c), backend)


def run_program(program, backend):
    torch._dynamo.reset()
    counting = Counting(backend)
    with torch._dynamo.config.patch(**program.config):
        compiled = torch.compile(
            program.fn, backend=counting, fullgraph=True, dynamic=program.dynamic
        )
        for k in range(CALLS):
            args = program.args(k)
            out = compiled(*args)
            compare(out, program.out(k), f"result of call {k}")
            after = (program.after or program.args)(k)
            tensors = [a for a in args if isinstance(a, (torch.Tensor, list))]
            compare(
                tensors,
                [a for a in after if isinstance(a, (torch.Tensor, list))],
                f"arguments after call {k}",
            )
    assert counting.graphs == program.graphs, f"{counting.graphs} graphs, expected {program.graphs}"
    return counting.graphs


def run_probe(rank, module, name, backend):
    torch._dynamo.reset()
    getattr(importlib.import_module(module), name)(context(rank, "world"), backend)
