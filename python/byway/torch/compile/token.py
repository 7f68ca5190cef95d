# SPDX-License-Identifier: BSD-3-Clause
"""The tensor that every traced call mutates: program order becomes a data dependence."""

import torch

# One for the process, not one for each group: the order across groups matters as well.
_TOKEN = torch.zeros(1)


def token():
    """The token for a call that is being traced. An exported program must not hold a global."""
    if torch.compiler.is_exporting():
        return torch.zeros(1)
    return _TOKEN
