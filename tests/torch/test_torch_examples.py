# SPDX-License-Identifier: BSD-3-Clause
"""The programs of examples/torch run on four ranks and print what they should."""

import os
import pathlib
import re
import subprocess
import sys

import pytest
import ranks

EXAMPLES = ranks.ROOT / "examples/torch"
FUSED = [
    *(f"rank {rank}: mean {mean}, [{mean.split('.')[0]}, {tens}]" for rank, mean, tens in [
        (0, "0.5", 5), (1, "0.5", 5), (2, "2.5", 25), (3, "2.5", 25),
    ]),
    "rank 0: sum 3, relayed",
    "rank 1: sum 3, relayed",
    "rank 2: helped, relayed",
    "rank 3: helped, relayed",
]  # fmt: skip


def _run(name: str, *arguments: str) -> str:
    environment = {k: v for k, v in os.environ.items() if not k.startswith("BYWAY_")} | {
        "PYTHONPATH": str(ranks.ROOT / "python"),
        "BYWAY_TORCH_EXTENSION": str(ranks.extension_path()),
        "OMP_NUM_THREADS": "1",
    }
    launch = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=4"]
    done = subprocess.run(
        [*launch, str(EXAMPLES / name), *arguments],
        capture_output=True,
        text=True,
        timeout=300,
        env=environment,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_every_example_is_known():
    assert {path.name for path in EXAMPLES.glob("*.py")} == {"fused.py", "recommender.py"}
    assert pathlib.Path(EXAMPLES / "fused.py").exists()


@pytest.mark.full
def test_fused():
    assert sorted(_run("fused.py").splitlines()) == sorted(FUSED)


@pytest.mark.full
def test_recommender():
    """Which sync is the shorter one is not asked: the machine may be busy."""
    lines = _run("recommender.py", "--rows", "4000").splitlines()
    assert len(lines) == 3, lines
    times = r"a step takes [\d.]+ ms, of which the sync [\d.]+ ms \(\d+ %\)"
    assert re.fullmatch(rf"direct \(direct.*\): {times}", lines[0]), lines
    assert re.fullmatch(rf"relay \((?!direct).*\): {times}", lines[1]), lines
    assert lines[2] == "weights are the same with relay and without"
