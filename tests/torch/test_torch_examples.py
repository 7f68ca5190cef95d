# SPDX-License-Identifier: BSD-3-Clause
"""The programs of examples/torch run on four ranks and print what they should."""

import os
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

OUTPUT = {
    "ddp.py": ["largest loss below 0.001: True"],
    "fsdp2.py": [f"rank {rank}: 128 of 512 weights; loss fell: True" for rank in range(4)],
    "device_mesh.py": [
        "rank 0: row sum 1, columns [[0, 1], [4, 5], [8, 9]]",
        "rank 1: row sum 1, columns [[2, 3], [6, 7], [10, 11]]",
        "rank 2: row sum 5, columns [[0, 1], [4, 5], [8, 9]]",
        "rank 3: row sum 5, columns [[2, 3], [6, 7], [10, 11]]",
    ],
    "fused.py": FUSED,
}


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
    assert {path.name for path in EXAMPLES.glob("*.py")} == {*OUTPUT, "recommender.py"}


@pytest.mark.full
@pytest.mark.parametrize("name", OUTPUT)
def test_output(name):
    # Lines of ranks that print at the same moment may come as one, their ends after it.
    said = re.sub(r"(?=rank \d: )", "\n", _run(name))
    assert sorted(filter(None, said.splitlines())) == sorted(OUTPUT[name])


@pytest.mark.full
def test_recommender():
    """Which sync is the shorter one is not asked: the machine may be busy."""
    lines = _run("recommender.py", "--rows", "4000").splitlines()
    assert len(lines) == 4, lines
    times = r"a step takes [\d.]+ ms, of which the sync [\d.]+ ms \(\d+ %\)"
    assert re.fullmatch(rf"direct \(direct.*\): {times}", lines[0]), lines
    assert re.fullmatch(rf"relay \((?!direct).*\): {times}", lines[1]), lines
    ratio = r"the sync of 1.0 MB a rank with relay takes [\d.]+ of the time without"
    assert re.fullmatch(ratio, lines[2]), lines
    assert lines[3] == "weights are the same with relay and without"
