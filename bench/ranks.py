# SPDX-License-Identifier: BSD-3-Clause
"""The ranks of a benchmark: processes of this host that report to the one that started them."""

import multiprocessing
import pathlib
import queue
import sys
import tempfile
from collections.abc import Iterator

_PYTHON = pathlib.Path(__file__).resolve().parents[1] / "python"
_LOOK_S = 0.5  # between two looks at whether a rank has died


def reports(count: int, rank, *args) -> Iterator:
    """What `count` processes report, in the order in which it comes.

    Each runs rank(number, count, store path, report, *args); `report` takes anything that can be
    pickled. Ends when all have; a rank that fails ends the others and the program, its own
    traceback says why.
    """
    spawn = multiprocessing.get_context("spawn")
    with tempfile.TemporaryDirectory(prefix="byway-bench-") as folder:
        reported = spawn.Queue()
        processes = [
            spawn.Process(
                target=_start, args=(rank, n, count, f"{folder}/store", reported, args), daemon=True
            )
            for n in range(count)
        ]
        for process in processes:
            process.start()
        try:
            running = set(range(count))
            while running:
                try:
                    number, last, value = reported.get(timeout=_LOOK_S)
                except queue.Empty:
                    _check(processes, running)
                    continue
                if last:
                    running.remove(number)
                else:
                    yield value
        finally:
            for process in processes:
                process.join(10)
                process.kill()


def _start(rank, number, count, store, reported, args):
    sys.path.insert(0, str(_PYTHON))
    rank(number, count, store, lambda value: reported.put((number, False, value)), *args)
    reported.put((number, True, None))


def _check(processes, running):
    for number in running:
        status = processes[number].exitcode
        if status:
            for process in processes:
                process.kill()
            sys.exit(f"rank {number} failed (exit status {status}): no result")
