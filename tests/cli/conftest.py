# SPDX-License-Identifier: BSD-3-Clause
"""Runs the `byway` command in a folder of its own."""

import os
import pathlib
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("BYWAY_BUILD_DIR", ROOT / "build/dev"))
BYWAY = os.environ.get("BYWAY_BIN", str(BUILD / "src/byway/tools/byway"))


@pytest.fixture
def byway(tmp_path):
    def run(*arguments, status=0, timeout=120, **environment):
        kept = {k: v for k, v in os.environ.items() if not k.startswith("BYWAY_")}
        done = subprocess.run(
            [BYWAY, *map(str, arguments)],
            cwd=tmp_path,
            env=kept | environment,
            capture_output=True,
            text=True,
            timeout=timeout,
        )
        assert done.returncode == status, done.stdout + done.stderr
        return done

    run.command = BYWAY
    return run
