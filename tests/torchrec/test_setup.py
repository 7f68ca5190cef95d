# SPDX-License-Identifier: BSD-3-Clause
"""An environment that cannot be made is a failure, and is not taken for one that was made."""

import os
import subprocess
import sys

import jobs
import pytest


@pytest.mark.full
def test_a_failed_setup_fails(tmp_path):
    environment = os.environ | {"PYTHON": sys.executable, "PIP_NO_INDEX": "1"}
    environment.pop("PIP_FIND_LINKS", None)
    for _ in range(2):
        done = subprocess.run(
            [jobs.ROOT / "scripts/setup_torchrec.sh", tmp_path / "venv"],
            capture_output=True,
            text=True,
            env=environment,
        )
        assert done.returncode != 0, done.stdout
        assert "torchrec==1.9.2" in done.stderr, done.stderr
        assert not (tmp_path / "venv/.byway-torchrec").exists()
