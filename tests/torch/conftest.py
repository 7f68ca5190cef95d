# SPDX-License-Identifier: BSD-3-Clause
"""Tests of the PyTorch backend. Their modules import each other by plain names, also in ranks."""

import os
import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
WITHOUT_TORCH = os.environ.get("BYWAY_NO_TORCH") == "1"
# test_torch.py says, and counts, that the others are left out.
HERE = pathlib.Path(__file__).parent
collect_ignore = (
    [str(path) for path in HERE.rglob("test_*.py") if path.name != "test_torch.py"]
    if WITHOUT_TORCH
    else []
)


@pytest.fixture(scope="session", autouse=True)
def extension():
    """The tests need a built extension: without one they fail, and say how to get it."""
    if WITHOUT_TORCH:
        yield None
        return
    import ranks

    path = ranks.extension_path()
    if path is None or not path.exists():
        pytest.fail(
            f"no extension in {ranks.BUILD}: build the target byway_torch_extension, or leave "
            "torch out with BYWAY_NO_TORCH=1"
        )
    yield path
    ranks.end_all()
