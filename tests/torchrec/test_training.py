# SPDX-License-Identifier: BSD-3-Clause
"""TorchRec's own DMPCollection on CPU: with relay the same weights as without."""

import checks
import jobs
import pytest

pytestmark = pytest.mark.full


@pytest.mark.parametrize(("world", "replicas"), [(4, 2), (6, 2), (8, 2), (8, 4)])
def test_training(interpreter, tmp_path, world, replicas):
    statuses, results = jobs.start(
        interpreter, "train.py", world, tmp_path, str(replicas), str(tmp_path)
    )
    assert statuses == [0] * world, [r.get("failed") for r in results] + [jobs.said(tmp_path)]
    for result in results:
        assert len(result["held"]) > 50, result
    plans = set(results[0]["facts"]["plans"])
    groups = [list(range(first, first + replicas)) for first in range(0, world, replicas)]
    moved = jobs.bytes_of_plans(tmp_path, groups, plans)
    assert moved["through helpers"] > 0, (moved, plans)
    print(f"{world} ranks, {replicas} replicas: {results[0]['facts']['calls'][:3]}, {dict(moved)}")


def test_a_wrong_weight_is_found(interpreter, tmp_path):
    """One float32 weight of rank 0 is wrong by its last bit after each sync."""
    statuses, results = jobs.start(
        interpreter, "train.py", 4, tmp_path, "2", str(tmp_path), "spoil"
    )
    assert statuses[0] == checks.FAILED, jobs.said(tmp_path)
    assert any(
        "after 1 syncs, Byway: weight" in text and "wrong values: 1, not 0" in text
        for text in results[0]["failed"]
    ), results[0]["failed"]
