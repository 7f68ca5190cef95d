# SPDX-License-Identifier: BSD-3-Clause
"""Every call and variant x compiler x world x group: values, one graph, no recompiles."""

import pytest
import ranks
from compiled import cases, harness  # noqa: F401

# The normal run: eager and aot_eager at world 2, and this sample under inductor; the rest is
# `full`.
INDUCTOR_SAMPLE = {
    "all_reduce_temp",
    "all_gather_list",
    "all_gather_stack",
    "all_to_all_list_uneven",
    "reduce_scatter_list",
    "scatter",
    "ring",
    "batch",
    "async_two_opposite",
    "functional_and_plain",
    "complex_all_reduce",
    "premul_in_graph",
}

DEADLINE_S = 300  # a cold compiler with every core in use


def _cells():
    for world in (2, 3, 4):
        for grouping in ("world", "sub"):
            for backend in ("eager", "aot_eager", "inductor"):
                for name in harness.CASES:
                    sampled = world == 2 and grouping == "world" and name in INDUCTOR_SAMPLE
                    normal = world == 2 and grouping == "world" and backend != "inductor"
                    full = not (normal or sampled)
                    marks = [pytest.mark.full] if full else []
                    yield pytest.param(
                        world,
                        grouping,
                        backend,
                        name,
                        marks=marks,
                        id=f"{name}-{backend}-{world}-{grouping}",
                    )


@pytest.mark.parametrize(("world", "grouping", "backend", "name"), list(_cells()))
def test_case(world, grouping, backend, name):
    graphs = ranks.team(world).run(harness.run_case, name, backend, grouping, seconds=DEADLINE_S)
    assert any(count is not None for count in graphs)
