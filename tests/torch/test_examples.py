# SPDX-License-Identifier: BSD-3-Clause
"""The examples of the PyTorch backend run with torchrun and print what they should."""

import os
import re
import subprocess
import sys

import pytest
import ranks

EXAMPLES = ranks.ROOT / "examples/torch"
OUTPUT = {
    "ddp": ["largest loss below 0.001: True"],
    "fsdp2": [f"rank {rank}: 128 of 512 weights; loss fell: True" for rank in range(4)],
    "device_mesh": [
        "rank 0: row sum 1, columns [[0, 1], [4, 5], [8, 9]]",
        "rank 1: row sum 1, columns [[2, 3], [6, 7], [10, 11]]",
        "rank 2: row sum 5, columns [[0, 1], [4, 5], [8, 9]]",
        "rank 3: row sum 5, columns [[2, 3], [6, 7], [10, 11]]",
    ],
}


@pytest.mark.parametrize("name", OUTPUT)
def test_output(name):
    environment = {k: v for k, v in os.environ.items() if not k.startswith("BYWAY_")} | {
        "PYTHONPATH": str(ranks.ROOT / "python"),
        "BYWAY_TORCH_EXTENSION": str(ranks.extension_path()),
        "OMP_NUM_THREADS": "1",
    }
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=4"]
    done = subprocess.run(
        [*command, str(EXAMPLES / f"{name}.py")],
        env=environment,
        capture_output=True,
        text=True,
        timeout=200,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    said = re.findall(r"^(?:rank \d: |largest).+$", done.stdout, re.M)
    assert sorted(said) == OUTPUT[name]
