# SPDX-License-Identifier: BSD-3-Clause
"""Loads the library of lazy mode and speaks to it through its operators."""

from __future__ import annotations

import atexit
import dataclasses
import os
import threading

_lock = threading.Lock()
_operators = None
MODES = ("record", "cut")


@dataclasses.dataclass(frozen=True)
class Statistics:
    """Counts of this process: calls recorded, calls made, evaluations of a call already made,
    records that are kept, calls that are recorded but not made yet."""

    recorded: int
    executed: int
    replayed: int
    kept: int
    pending: int


def _library(extension) -> str:
    """The file beside the extension. Raises ImportError that says what to do."""
    import pathlib

    folder = pathlib.Path(extension.__file__).parent
    found = sorted(folder.glob("_lazy*.so"))
    if not found:
        raise ImportError(
            f"byway was built without lazy mode: no _lazy*.so in {folder}. Build byway against "
            "this torch (2.13); everything else works without it"
        )
    return str(found[0])


def _load():
    import torch
    import torch.distributed._functional_collectives  # has the shapes of functional collectives
    from byway.torch._extension import load

    extension = load()
    file = _library(extension)
    extension.guard_lazy_tensors(False)  # the library's kernels take the guard's place
    try:
        torch.ops.load_library(file)
    except OSError as error:
        extension.guard_lazy_tensors(True)
        raise ImportError(
            f"byway's lazy mode does not fit torch {torch.__version__}; everything else works "
            f"without it. {file}: {error}"
        ) from error
    operators = torch.ops.byway_lazy
    operators.connect(extension.lazy_link())
    return operators


def init(mode: str | None = None) -> None:
    """Turns torch's lazy device on, and lazy mode of torch.distributed for it.

    mode: "record" (the default, or what BYWAY_LAZY says) or "cut" (set_mode()). May be called
    again, to change it. Raises ImportError if lazy mode was not built for this torch.
    """
    global _operators
    import torch._lazy.ts_backend

    wanted = mode or os.environ.get("BYWAY_LAZY") or ("record" if _operators is None else None)
    if wanted is not None and wanted not in MODES:
        raise ValueError(f'lazy mode "{wanted}" is not one of "record" and "cut"')
    with _lock:
        if _operators is None:
            torch._lazy.ts_backend.init()
            _operators = _load()
            _flush_at_exit()
        if wanted is not None:
            _operators.set_cut(wanted == "cut")


def _flush_at_exit() -> None:
    import multiprocessing.util

    atexit.register(_finish)
    # Children of multiprocessing end without atexit.
    multiprocessing.util.Finalize(None, _finish, exitpriority=100)


def _finish() -> None:
    try:
        if statistics().pending:
            flush()
    except Exception as error:
        import logging

        logging.getLogger("byway").warning("lazy calls that were left at exit failed: %s", error)


def _need():
    if _operators is None:
        raise RuntimeError("lazy mode is off; call byway.lazy.init() first")
    return _operators


def set_mode(mode: str) -> None:
    """ "record": collectives run at the step mark, or when a value is read. "cut": at once, with
    what they need; results of asynchronous ones when they are read."""
    if mode not in MODES:
        raise ValueError(f'lazy mode "{mode}" is not one of "record" and "cut"')
    _need().set_cut(mode == "cut")


def flush() -> None:
    """Runs all that is recorded, as torch._lazy.mark_step(wait=True), but an error of a collective
    is raised as the collective raised it."""
    _need().flush()


def reset() -> None:
    """After a step that failed: forgets it. Tensors that it would have computed are lost."""
    _need().reset()


def statistics() -> Statistics:
    return Statistics(*_need().statistics())
