# SPDX-License-Identifier: BSD-3-Clause
"""TorchRec's relay functions by themselves: every collective, several tensors of several types."""

import jobs
import pytest

pytestmark = pytest.mark.full


# Of six ranks in a group of four, two only help.
@pytest.mark.parametrize(("world", "group"), [(4, 2), (6, 4), (8, 2), (8, 4)])
def test_every_function(interpreter, tmp_path, world, group):
    statuses, results = jobs.start(
        interpreter, "utilities.py", world, tmp_path, str(group), str(tmp_path)
    )
    assert statuses == [0] * world, [r.get("failed") for r in results] + [jobs.said(tmp_path)]
    for result in results:
        assert len(result["held"]) > 50, result
    groups = [list(range(at, at + group)) for at in range(0, world - group + 1, group)]
    moved = jobs.bytes_of_plans(tmp_path, groups, set(results[0]["facts"]["plans"]))
    assert moved["through helpers"] > 0, moved
