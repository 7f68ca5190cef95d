# SPDX-License-Identifier: BSD-3-Clause
"""Tests with TorchRec itself, in an environment of its own. The folder's modules import each other
by plain names, in the ranks too."""

import os
import pathlib
import subprocess
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import jobs


@pytest.fixture(scope="session")
def interpreter() -> str:
    """Of an environment with TorchRec beside this one's torch; made at the first use."""
    environment = os.environ | {"PYTHON": sys.executable}
    made = jobs.ROOT / "build/torchrec/venv"
    done = subprocess.run(
        [jobs.ROOT / "scripts/setup_torchrec.sh", made],
        capture_output=True,
        text=True,
        env=environment,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return str(made / "bin/python")
