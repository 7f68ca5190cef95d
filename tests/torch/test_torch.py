# SPDX-License-Identifier: BSD-3-Clause
"""That torch is there. Where it is not wanted, one counted skip stands for the whole folder."""

import importlib.metadata
import os

import pytest


@pytest.mark.skipif(
    os.environ.get("BYWAY_NO_TORCH") == "1",
    reason="BYWAY_NO_TORCH=1: the PyTorch backend and all of tests/torch are left out",
)
def test_a_torch_that_fits_is_there():
    assert (2, 11) <= tuple(map(int, importlib.metadata.version("torch").split(".")[:2])) <= (2, 14)
