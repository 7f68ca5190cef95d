# SPDX-License-Identifier: BSD-3-Clause
"""PyTorch's own distributed tests, as scripts/torch_suite.py runs and judges them."""

import os
import subprocess
import sys

import pytest
import ranks

SCRIPT = ranks.ROOT / "scripts/torch_suite.py"
FEW = (
    "test_(all_reduce_sum|all_to_all_full_group|monitored_barrier_gloo_subgroup"
    "|sparse_all_reduce_sum|barrier_timeout_full_group|send_recv_any_source|broadcast_object_list)$"
)


def run(*options: str, seconds: float) -> str:
    extension = {"BYWAY_TORCH_EXTENSION": str(ranks.extension_path())}
    done = subprocess.run(
        [sys.executable, str(SCRIPT), *options],
        env=os.environ | extension,
        capture_output=True,
        text=True,
        timeout=seconds,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_a_few_of_the_suite():
    assert "no loss" in run("--worlds=2", f"--tests={FEW}", seconds=240)


@pytest.mark.full
@pytest.mark.parametrize("world", [2, 3, 4])
def test_the_suite(world):
    print(run(f"--worlds={world}", seconds=3600))
