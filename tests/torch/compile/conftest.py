# SPDX-License-Identifier: BSD-3-Clause
import os
import sys

import pytest

sys.path.insert(0, os.path.dirname(__file__))


@pytest.fixture(scope="session")
def pool():
    from compiled.pool import Pool

    pool = Pool(4)
    yield pool
    pool.close()
