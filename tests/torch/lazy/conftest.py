# SPDX-License-Identifier: BSD-3-Clause
"""Tests of lazy mode; the folder's modules import each other by plain names, in the ranks too."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent))
