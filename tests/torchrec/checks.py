# SPDX-License-Identifier: BSD-3-Clause
"""Checks of a program that runs under -O, where an `assert` is nothing: it says how they ended by
its exit status and a file."""

from __future__ import annotations

import json
import pathlib
import sys
import traceback

FAILED = 3  # exit status: a check did not hold
RAISED = 4


class Checks:
    def __init__(self) -> None:
        self.held: list[str] = []
        self.failed: list[str] = []
        self.facts: dict[str, object] = {}

    def that(self, holds: bool, what: str, found: object = "") -> None:
        if holds:
            self.held.append(what)
        else:
            self.failed.append(f"{what}: {found}")

    def equal(self, found: object, wanted: object, what: str) -> None:
        self.that(found == wanted, what, f"{found!r}, not {wanted!r}")

    def raises(self, kind: type[Exception], text: str, call, what: str) -> None:
        try:
            call()
        except kind as error:
            self.that(text in str(error), what, str(error))
        else:
            self.failed.append(f"{what}: no {kind.__name__}")


def run(program, folder: pathlib.Path, rank: int) -> None:
    """Runs program(checks), writes rank-<rank>.json into the folder and ends the process."""
    checks, raised = Checks(), ""
    try:
        program(checks)
    except Exception:
        raised = traceback.format_exc()
        sys.stderr.write(raised)
    result = {
        "held": checks.held,
        "failed": checks.failed,
        "raised": raised,
        "facts": checks.facts,
    }
    (folder / f"rank-{rank}.json").write_text(json.dumps(result))
    sys.exit(RAISED if raised else FAILED if checks.failed or not checks.held else 0)
