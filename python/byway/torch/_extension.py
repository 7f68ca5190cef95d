# SPDX-License-Identifier: BSD-3-Clause
"""Finds and loads the extension module, at the first group."""

from __future__ import annotations

import atexit
import importlib.machinery
import importlib.util
import json
import os
import pathlib
import sys

_NAME = "byway.torch._C"
_SECONDS_AT_EXIT = 10.0


def _file() -> pathlib.Path:
    """BYWAY_TORCH_EXTENSION, else the file beside this package or its installed part."""
    named = os.environ.get("BYWAY_TORCH_EXTENSION")
    if named:
        return pathlib.Path(named)
    import byway

    folders = [pathlib.Path(folder) / "torch" for folder in byway.__path__]
    names = [f"_C{suffix}" for suffix in importlib.machinery.EXTENSION_SUFFIXES]
    for folder in folders:
        for name in names:
            if (folder / name).exists():
                return folder / name
    raise ImportError(
        "byway was installed without its torch extension: no _C*.so in "
        + ", ".join(map(str, folders))
        + ". Build it against this torch: install byway with --no-build-isolation"
    )


def _check_version(file: pathlib.Path) -> None:
    """Raises if the extension was built for another minor of torch than this one."""
    import torch

    try:
        built = json.loads((file.parent / "_C.json").read_text())["torch"]
    except (OSError, ValueError, KeyError) as error:
        raise ImportError(f"no record of the torch that {file} was built for: {error}") from error
    if built.split(".")[:2] != torch.__version__.split(".")[:2]:
        raise ImportError(
            f"byway's extension was built for torch {built}, but this is torch "
            f"{torch.__version__}; install the byway of this torch or build it anew"
        )


def load():
    """The extension module. Raises ImportError that says what does not fit."""
    module = sys.modules.get(_NAME)
    if module is not None:
        return module
    file = _file()
    _check_version(file)
    spec = importlib.util.spec_from_file_location(_NAME, file)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    sys.modules[_NAME] = module
    # Before the interpreter goes, and so before memory that peers may still read does.
    atexit.register(module.shutdown_all, _SECONDS_AT_EXIT)
    return module
