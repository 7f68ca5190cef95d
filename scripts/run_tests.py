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
import subprocess
import sys
import xml.etree.ElementTree as ElementTree

ROOT = pathlib.Path(__file__).resolve().parent.parent


@dataclasses.dataclass
class Counts:
    passed: int = 0
    failed: int = 0
    skipped: collections.Counter = dataclasses.field(default_factory=collections.Counter)


def read_report(report: pathlib.Path, status: int) -> Counts:
    """Counts of a JUnit file; a runner that failed without saying which test counts as one failure."""
    counts = Counts()
    if report.exists():
        for case in ElementTree.parse(report).iter("testcase"):
            skip = case.find("skipped")
            if case.find("failure") is not None or case.find("error") is not None:
                counts.failed += 1
            elif skip is not None:
                counts.skipped[skip.get("message") or "no reason given"] += 1
            else:
                counts.passed += 1
    if status != 0 and counts.failed == 0:
        counts.failed = 1
    return counts


def run(name: str, command: list[str], report: pathlib.Path) -> Counts:
    report.unlink(missing_ok=True)
    print(f"== {name}", flush=True)
    status = subprocess.run(command, cwd=ROOT, env=os.environ | {"BYWAY_BUILD_DIR": str(ROOT / "build/dev")}).returncode
    counts = read_report(report, status)
    if counts.passed + counts.failed == 0:
        print(f"{name}: no test ran", file=sys.stderr)
        counts.failed = 1
    return counts


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--full", action="store_true", help="also the long tests")
    full = parser.parse_args().full

    build = ROOT / "build"
    jobs = os.environ.get("JOBS") or str(os.cpu_count())
    ctest = ["ctest", "--preset", "full" if full else "dev", "-j", jobs, "--output-junit"]
    pytest = [sys.executable, "-m", "pytest", "-q", "tests", *([] if full else ["-m", "not full"])]
    results = {
        "CTest": run("CTest", [*ctest, str(build / "ctest.xml")], build / "ctest.xml"),
        "pytest": run("pytest", [*pytest, f"--junitxml={build / 'pytest.xml'}"], build / "pytest.xml"),
    }

    print("== summary")
    for name, counts in results.items():
        print(f"{name}: {counts.passed} passed, {counts.failed} failed, {counts.skipped.total()} skipped")
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
