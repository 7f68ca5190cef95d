# SPDX-License-Identifier: BSD-3-Clause
"""What the wheel requires, for scikit-build-core: UCX, and the torch it was built against."""

from __future__ import annotations

import importlib.metadata

UCX = "libucx-cu13==1.22.*"


def dynamic_metadata(field: str, settings: dict | None = None, project: dict | None = None):
    if field != "dependencies":
        raise ValueError(f"no rule for {field}")
    try:
        torch = importlib.metadata.version("torch")
    except importlib.metadata.PackageNotFoundError:
        return [UCX]  # the extension is left out
    return [UCX, "torch=={}.{}.*".format(*torch.split(".")[:2])]
