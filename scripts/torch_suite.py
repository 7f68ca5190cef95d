#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Runs PyTorch's own distributed suite, which ships in its wheel, on this backend and on Gloo.

    scripts/torch_suite.py [--worlds 2,3,4] [--tests WORDS] [--modes gloo,as-gloo,byway]
                           [--json FILE] [-v]

Modes: `gloo` is real Gloo; `as-gloo` the same name made by Byway (BYWAY_AS=gloo); `byway` its own
name, entered in the suite's tables of what a backend can do. In each, two kinds of tests are run
that the suite leaves out: those of all_to_all, which it keeps for MPI because Gloo lacked it, and,
in worlds of 3 and more, those of the group of ranks 1 and 2, for which it wants 8 processes.

Exit status 1 is a loss: a test that Gloo passes and `as-gloo` does not, a list all_to_all test that
`as-gloo` does not pass, or one that fails under the own name.

One process for each world and mode imports the suite; the ranks of each test are forked from it,
new ones for every test, so that a test costs a fraction of a second more than what it does.
"""

from __future__ import annotations

import argparse
import collections
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
MODES = ("gloo", "as-gloo", "byway")
# Compares the logged backend name with a list of torch's own.
NAME_ITSELF = "test_ddp_logging_data_cpu"
# all_to_all with lists of tensors: Gloo in torch 2.13 refuses unequal ones.
LIST_EXCHANGES = re.compile(r"test_all_to_all(_complex|_full_group|_group)?$")
TEST_SECONDS = 120


def environment(mode: str, world: int, folder: str, extension: pathlib.Path | None) -> dict:
    kept = {k: v for k, v in os.environ.items() if not k.startswith("BYWAY_")}
    kept |= {
        "BACKEND": "byway" if mode == "byway" else "gloo",
        "WORLD_SIZE": str(world),
        "TEMP_DIR": folder,
        "INIT_METHOD": f"file://{folder}/init_dir/again",
        "MASTER_PORT": "29500",  # named by one test, used by none
        "OMP_NUM_THREADS": "1",
        "TORCH_DEVICE_BACKEND_AUTOLOAD": "0",
        "PYTHONPATH": os.pathsep.join([str(ROOT / "python"), os.environ.get("PYTHONPATH", "")]),
    }
    if mode == "as-gloo":
        kept["BYWAY_AS"] = "gloo"
    if extension:
        kept["BYWAY_TORCH_EXTENSION"] = str(extension)
    return kept


# --- in the process that forks the ranks


def _suite():
    """The suite's class of tests, with forked ranks and without the gates named above."""
    import torch.testing._internal.common_distributed as common

    if os.environ["BACKEND"] == "byway" or os.environ.get("BYWAY_AS"):
        import byway.torch  # noqa: F401 (registers the backend)
    if int(os.environ["WORLD_SIZE"]) >= 3:
        common.skip_if_small_worldsize = lambda test: test
    for feature in ("gpu", "cuda", "ddp", "subgroup"):
        common.DistTestCases.backend_feature[feature].add("byway")
    import torch.testing._internal.distributed.distributed_test as tests

    if os.environ["BACKEND"] == "byway":
        for table in (
            tests.PROFILING_SUPPORTED_BACKENDS,
            tests.SEND_RECV_PROFILING_SUPPORTED_BACKENDS,
        ):
            table.append("byway")
    common.TIMEOUT_DEFAULT = TEST_SECONDS
    tests.Barrier.sync.__func__.__defaults__ = (None, TEST_SECONDS)  # 10 s on an idle machine

    class Suite(tests.TestDistBackend, tests.DistributedTest._DistTestBase):
        def setUp(self):
            super().setUp()
            # Not spawned: the import of the suite takes seconds.
            import torch

            self._start_processes(torch.multiprocessing.get_context("fork").Process)

    for name in dir(Suite):
        test = getattr(Suite, name)
        if re.match("Only MPI supports", getattr(test, "__unittest_skip_why__", "")):
            del test.__unittest_skip__
    return Suite


def serve(pattern: str, file: str) -> None:
    """Runs the tests of this process's mode and world, a line of JSON for each."""
    import unittest

    suite = _suite()
    names = unittest.TestLoader().getTestCaseNames(suite)
    with open(file, "w", buffering=1) as out:
        for name in names:
            if not re.search(pattern, name):
                continue
            began = time.monotonic()
            result = unittest.TestResult()
            suite(name).run(result)
            bad = result.errors + result.failures
            if bad:
                outcome, why = "failed", bad[0][1]
            elif result.skipped:
                outcome, why = "skipped", result.skipped[0][1]
            else:
                outcome, why = "passed", ""
            line = {"test": name, "outcome": outcome, "why": why}
            out.write(json.dumps(line | {"seconds": round(time.monotonic() - began, 2)}) + "\n")


# --- in the process that compares


def run(mode: str, world: int, pattern: str, extension, verbose: bool) -> dict[str, dict]:
    with tempfile.TemporaryDirectory(prefix="byway-suite-") as folder:
        for sub in ("barrier", "test_dir", "init_dir"):
            (pathlib.Path(folder) / sub).mkdir()
        file = pathlib.Path(folder) / "results"
        log = pathlib.Path(folder) / "log"
        with log.open("w") as said:
            status = subprocess.run(
                [sys.executable, __file__, "--serve", str(file), "--tests", pattern],
                env=environment(mode, world, folder, extension),
                stdout=None if verbose else said,
                stderr=subprocess.STDOUT if not verbose else None,
                check=False,
            ).returncode
        lines = file.read_text().splitlines() if file.exists() else []
        if status:
            tail = "" if verbose else log.read_text()[-2000:]
            sys.exit(f"the suite ended with status {status} ({mode}, world {world})\n{tail}")
    return {line["test"]: line for line in map(json.loads, lines)}


def names(results: dict[str, dict], outcome: str) -> set[str]:
    return {test for test, line in results.items() if line["outcome"] == outcome}


def report(world: int, mode: str, results: dict[str, dict]) -> None:
    counted = collections.Counter(line["outcome"] for line in results.values())
    seconds = sum(line["seconds"] for line in results.values())
    said = ", ".join(f"{counted[each]} {each}" for each in ("passed", "failed", "skipped"))
    print(f"world {world}, {mode}: {said} ({seconds:.0f} s)")
    whys = collections.Counter(
        line["why"] for line in results.values() if line["outcome"] == "skipped"
    )
    for why, count in whys.most_common():
        print(f"    skipped {count}: {why}")
    for test in sorted(names(results, "failed")):
        said = re.findall(r"^\w*(?:Error|Exception)\w*: .+", results[test]["why"], re.M)
        print(f"    failed {test}: {said[-1][:200] if said else results[test]['why'][-200:]}")


def losses(by_mode: dict[str, dict[str, dict]]) -> list[str]:
    """What must pass and does not; prints the differences of the sets."""
    found = []
    if "gloo" in by_mode and "as-gloo" in by_mode:
        gloo, ours = names(by_mode["gloo"], "passed"), names(by_mode["as-gloo"], "passed")
        print(f"    passed by Gloo alone: {sorted(gloo - ours) or 'none'}")
        print(f"    passed by Byway alone: {sorted(ours - gloo) or 'none'}")
        exchanges = {
            test
            for test, line in by_mode["as-gloo"].items()
            if LIST_EXCHANGES.match(test) and line["outcome"] != "skipped"
        }
        found += [f"as-gloo {test}" for test in sorted((gloo | exchanges) - ours - {NAME_ITSELF})]
    if "byway" in by_mode:
        bad = names(by_mode["byway"], "failed") - {NAME_ITSELF}
        # What fails with Gloo too fails for want of something that no CPU backend has.
        bad -= names(by_mode.get("gloo", {}), "failed") - set(
            filter(LIST_EXCHANGES.match, by_mode["byway"])
        )
        found += [f"byway {test}" for test in sorted(bad)]
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--worlds", default="2,3,4")
    parser.add_argument("--tests", default="", help="a regular expression that names match")
    parser.add_argument("--modes", default=",".join(MODES))
    parser.add_argument("--json", help="write every outcome to this file")
    parser.add_argument("-v", action="store_true", help="show what the tests print")
    parser.add_argument("--serve", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.serve:
        serve(asked.tests, asked.serve)
        return 0
    sys.path.insert(0, str(ROOT / "tests/torch"))
    import ranks

    extension = ranks.extension_path()
    everything: dict[str, dict] = {}
    lost: list[str] = []
    for world in map(int, asked.worlds.split(",")):
        by_mode = {}
        for mode in asked.modes.split(","):
            if mode not in MODES:
                parser.error(f"--modes: {mode!r} is none of {', '.join(MODES)}")
            by_mode[mode] = run(mode, world, asked.tests, extension, asked.v)
            report(world, mode, by_mode[mode])
        lost += [f"world {world}: {each}" for each in losses(by_mode)]
        everything[str(world)] = by_mode
    if asked.json:
        pathlib.Path(asked.json).write_text(json.dumps(everything, indent=1) + "\n")
    for each in lost:
        print(f"LOSS {each}")
    print("no loss" if not lost else f"{len(lost)} losses")
    return 1 if lost else 0


if __name__ == "__main__":
    sys.exit(main())
