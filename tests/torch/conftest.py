# SPDX-License-Identifier: BSD-3-Clause
"""Tests of the PyTorch backend. Their modules import each other by plain names, in the ranks too."""

import os
import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
collect_ignore_glob = []
if os.environ.get("BYWAY_NO_TORCH") == "1":
    collect_ignore_glob.append("test_*.py")


@pytest.fixture(scope="session", autouse=True)
def extension():
    """The tests need a built extension: without one they fail, and say how to get it."""
    import ranks

    path = ranks.extension_path()
    assert path is not None and path.exists(), (
        f"no extension in {ranks.BUILD}; build the target byway_torch_extension, or leave torch out "
        "with BYWAY_NO_TORCH=1"
    )
    yield path
    ranks.end_all()
