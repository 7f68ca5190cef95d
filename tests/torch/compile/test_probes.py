# SPDX-License-Identifier: BSD-3-Clause
"""Works beyond their graph, executed order, gradients, export, other backends."""

import pytest
import ranks
from compiled import harness
from compiled.probes import exported, gradients, memory, order, other_backends, steps, uses, works

_ALL = {"eager", "aot_eager", "inductor"}
_ONCE = {"eager"}
# Probes that every run does under inductor too.
_ALWAYS = {
    "between_start_and_wait",
    "four_collectives",
    "waited_outside",
    "temporaries_are_not_copied",
    "written_while_under_way",
}

DEADLINE_S = 300  # a cold compiler with every core in use


def _cells():
    cells = []
    for module, backends in (
        (works, _ALL),
        (uses, _ALL),
        (memory, _ALL),
        (order, _ALL),
        (gradients, _ALL),
        (steps, {"aot_eager", "inductor"}),
        (exported, _ONCE),
        (other_backends, _ONCE),
    ):
        for probe in module.PROBES:
            for world in (2, 3, 4):
                for backend in sorted(backends):
                    name = probe.__name__
                    full = world != 2 or (backend == "inductor" and name not in _ALWAYS)
                    marks = [pytest.mark.full] if full else []
                    cells.append(
                        pytest.param(
                            world,
                            backend,
                            module.__name__,
                            name,
                            marks=marks,
                            id=f"{name}-{backend}-{world}",
                        )
                    )
    return cells


@pytest.mark.parametrize(("world", "backend", "module", "name"), _cells())
def test_probe(world, backend, module, name):
    ranks.team(world).run(harness.run_probe, module, name, backend, seconds=DEADLINE_S)
