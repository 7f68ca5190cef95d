# SPDX-License-Identifier: BSD-3-Clause
"""Runs CTest and pytest on the dev build and prints what ran.

Both always run. The last line is `N passed, N failed`, summed from their reports, and is also
written to build/test-summary.txt. Exit status 1 if anything failed or nothing ran.
"""

import argparse
import collections
import dataclasses
import os
import pathlib
import re
import subprocess
import sys
import xml.etree.ElementTree as ElementTree

ROOT = pathlib.Path(__file__).resolve().parent.parent


@dataclasses.dataclass
class Counts:
    passed: int = 0
    failed: int = 0
    skipped: collections.Counter = dataclasses.field(default_factory=collections.Counter)


def skip_reason(case: ElementTree.Element, skip: ElementTree.Element) -> str:
    """CTest knows only that a googletest case was skipped; the reason stands in its output."""
    said = re.search(r": Skipped\n(.+)", case.findtext("system-out") or "")
    return said[1] if said else skip.get("message") or "no reason given"


def read_report(report: pathlib.Path, status: int) -> Counts:
    """Counts of a JUnit file; a runner that fails without naming a test counts as one failure."""
    counts = Counts()
    if report.exists():
        for case in ElementTree.parse(report).iter("testcase"):
            skip = case.find("skipped")
            if case.find("failure") is not None or case.find("error") is not None:
                counts.failed += 1
            elif skip is not None:
                counts.skipped[skip_reason(case, skip)] += 1
            else:
                counts.passed += 1
    if status != 0 and counts.failed == 0:
        counts.failed = 1
    return counts


def run(name: str, command: list[str], report: pathlib.Path) -> Counts:
    report.unlink(missing_ok=True)
    print(f"== {name}", flush=True)
    environment = os.environ | {"BYWAY_BUILD_DIR": str(ROOT / "build/dev")}
    status = subprocess.run(command, cwd=ROOT, env=environment).returncode
    counts = read_report(report, status)
    if counts.passed + counts.failed == 0:
        print(f"{name}: no test ran", file=sys.stderr)
        counts.failed = 1
    return counts


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--full", action="store_true", help="also the long tests")
    full = parser.parse_args().full

    build = ROOT / "build"
    jobs = os.environ.get("JOBS") or str(os.cpu_count())
    ctest = ["ctest", "--preset", "full" if full else "dev", "-j", jobs]
    pytest = [sys.executable, "-m", "pytest", "-q", "tests", *([] if full else ["-m", "not full"])]
    results = {}
    for name, command, option in (
        ("CTest", ctest, "--output-junit"),
        ("pytest", pytest, "--junitxml"),
    ):
        report = build / f"{name.lower()}.xml"
        results[name] = run(name, [*command, option, str(report)], report)

    print("== summary")
    for name, counts in results.items():
        skipped = counts.skipped.total()
        print(f"{name}: {counts.passed} passed, {counts.failed} failed, {skipped} skipped")
        for reason, number in sorted(counts.skipped.items()):
            print(f"  skipped {number}: {reason}")
    passed = sum(counts.passed for counts in results.values())
    failed = sum(counts.failed for counts in results.values())
    line = f"{passed} passed, {failed} failed"
    (build / "test-summary.txt").write_text(line + "\n")
    print(line)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
