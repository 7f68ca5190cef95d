# SPDX-License-Identifier: BSD-3-Clause
"""What the cases share: data that depend on rank, call and index; how a case is run in a rank."""

from __future__ import annotations

import numpy as np

CASES: dict = {}


def case(function):
    """A function(context, group) that checks values itself; `group` are its ranks, None = all."""
    CASES[function.__name__] = function
    return function


def run(context, name: str, ranks=None, *, mode: str = "record", pool: bool = False):
    """Runs a case in a rank that is one of `ranks`; the others only make the group."""
    import byway.lazy
    import torch
    import torch._lazy

    byway.lazy.init(mode)
    torch.ops.byway_lazy.use_thread_pool(pool)
    group = context.group(ranks)
    if ranks is not None and context.rank not in ranks:
        return None
    view = View(context, group, ranks)
    result = CASES[name](view)
    torch._lazy.mark_step()
    torch._lazy.wait_device_ops()
    return result


class View:
    """A rank's place in its group."""

    def __init__(self, context, group, ranks):
        self.context = context
        self.group = group
        self.ranks = list(ranks) if ranks is not None else list(range(context.size))
        self.rank = self.ranks.index(context.rank)
        self.size = len(self.ranks)

    def world(self, rank: int) -> int:
        """The rank in the world of the group's `rank`."""
        return self.ranks[rank]


def data(rank: int, call: int, count: int, dtype=np.float32) -> np.ndarray:
    """Whole numbers from -11 to 11, exact in every type that has a sign; else from 1 to 23."""
    values = (np.arange(count) * 7 + rank * 13 + call * 5) % 23
    if np.dtype(dtype).kind in "ui" and np.dtype(dtype).kind == "u":
        return (values + 1).astype(dtype)
    return (values - 11).astype(dtype)


def lazy(array: np.ndarray):
    import torch

    return torch.from_numpy(np.array(array, order="C")).to("lazy")


def step() -> None:
    import torch._lazy

    torch._lazy.mark_step()


def same(tensor, expected, what: str = "") -> None:
    """Bit for bit, but any NaN equals any NaN."""
    import torch

    found = tensor.detach().cpu()
    wanted = (
        expected
        if isinstance(expected, torch.Tensor)
        else torch.from_numpy(np.array(expected, order="C"))
    )
    assert found.dtype == wanted.dtype, f"{what}: {found.dtype}, not {wanted.dtype}"
    assert found.shape == wanted.shape, f"{what}: {tuple(found.shape)}, not {tuple(wanted.shape)}"
    equal = (
        torch.equal(torch.nan_to_num(found, nan=7e7), torch.nan_to_num(wanted, nan=7e7))
        if (found.is_floating_point())
        else torch.equal(found, wanted)
    )
    assert equal, f"{what}: {found.flatten()[:12]}, not {wanted.flatten()[:12]}"


def counters(*names: str) -> list[int]:
    import torch._lazy.metrics as metrics

    known = metrics.counter_names()
    return [metrics.counter_value(name) if name in known else 0 for name in names]
