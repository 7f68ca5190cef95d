# SPDX-License-Identifier: BSD-3-Clause
"""Compiled graphs are kept: in the process, and on disk for later processes with such groups."""

import os

import pytest
import ranks

DEADLINE_S = 300  # a cold compiler with every core in use


def compiled_twice(rank, folder):
    """What torch's caches counted at a first and a second compilation of one program."""
    import torch
    import torch._dynamo
    import torch.distributed as dist
    import torch.distributed._functional_collectives as functional
    from torch._dynamo.utils import counters

    import byway.torch as bt

    # One for each rank: ranks would find each other's graphs.
    os.environ["TORCHINDUCTOR_CACHE_DIR"] = f"{folder}/{rank.rank}"
    served = dist.get_backend() == "byway"

    def fn(x):
        a = functional.all_reduce(x * 2, "sum", dist.group.WORLD)
        if served:
            y = x + 1
            bt.fused_all_reduce(y, [[0, 1]], [4])
            work = dist.broadcast(y, 1, async_op=True)
            work.wait()
            a = a + y
        return a

    total = torch.arange(4.0) * 2 + 1
    expected = 2 * total + (total + 2 if served else 0)
    counted = []
    for _ in range(2):
        torch._dynamo.reset()
        counters.clear()
        out = torch.compile(fn, fullgraph=True)(torch.arange(4.0) + rank.rank)
        torch.testing.assert_close(out, expected)
        graph, aot = counters["inductor"], counters["aot_autograd"]
        counted.append(
            {
                "hits": graph["fxgraph_cache_hit"] + aot["autograd_cache_hit"],
                "misses": graph["fxgraph_cache_miss"],
                "bypasses": graph["fxgraph_cache_bypass"] + aot["autograd_cache_bypass"],
            }
        )
    return counted


@pytest.mark.full
def test_kept_on_disk(tmp_path):
    """A second process finds what the first compiled; a Gloo group of the same name does not."""

    def run(backend):
        team = ranks.Team(2, {}, backend)
        try:
            return team.run(compiled_twice, str(tmp_path), seconds=DEADLINE_S)
        finally:
            team.end()

    for first, again in run("byway"):
        assert first["misses"] == 1, first
        assert again["hits"] >= 1, again
        assert again["misses"] == again["bypasses"] == first["bypasses"] == 0, (first, again)
    for first, _ in run("byway"):
        assert first["hits"] >= 1, first
        assert first["misses"] == first["bypasses"] == 0, first
    for first, _ in run("gloo"):
        assert first["misses"] == 1, first
