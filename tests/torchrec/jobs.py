# SPDX-License-Identifier: BSD-3-Clause
"""Jobs of processes in the environment that has TorchRec."""

from __future__ import annotations

import collections
import json
import os
import pathlib
import subprocess
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("BYWAY_BUILD_DIR", ROOT / "build/dev"))
HERE = pathlib.Path(__file__).parent
SECONDS = 600


def _extension() -> str:
    named = os.environ.get("BYWAY_TORCH_EXTENSION")
    found = [named] if named else sorted(map(str, (BUILD / "src/byway/torch").glob("_C*.so")))
    assert found, f"no extension in {BUILD}: build the target byway_torch_extension"
    return found[0]


def start(interpreter: str, program: str, world: int, folder: pathlib.Path, *arguments: str):
    """Exit statuses and results (checks.py) by rank; output is in the folder's logs."""
    processes = []
    for rank in range(world):
        environment = {k: v for k, v in os.environ.items() if not k.startswith("BYWAY_")} | {
            "PYTHONPATH": str(ROOT / "python"),
            "BYWAY_TORCH_EXTENSION": _extension(),
            "BYWAY_TOPOLOGY": f"mesh:{world}",
            "BYWAY_TRACE": str(folder),
            "RANK": str(rank),
            "LOCAL_RANK": str(rank),
            "WORLD_SIZE": str(world),
            "LOCAL_WORLD_SIZE": str(world),
            "OMP_NUM_THREADS": "1",
        }
        with (folder / f"rank-{rank}.log").open("wb") as log:
            processes.append(
                subprocess.Popen(
                    [interpreter, "-O", HERE / program, *arguments],
                    env=environment,
                    stdout=log,
                    stderr=log,
                )
            )
    until = time.monotonic() + SECONDS
    try:
        statuses = [process.wait(max(0.1, until - time.monotonic())) for process in processes]
    finally:
        for process in processes:
            process.kill()
            process.wait()
    results = []
    for rank in range(world):
        file = folder / f"rank-{rank}.json"
        results.append(json.loads(file.read_text()) if file.exists() else {})
    return statuses, results


def said(folder: pathlib.Path) -> str:
    logs = sorted(folder.glob("rank-*.log"))
    return "\n".join(f"{log.name}: {log.read_text()[-3000:]}" for log in logs)


def bytes_of_plans(folder: pathlib.Path, groups: list[list[int]], plans: set[str]):
    """From the traces, for all calls of these plans: bytes sent within a group and, as nothing but
    relay sends them, to a rank outside the sender's."""
    place = {rank: number for number, ranks in enumerate(groups) for rank in ranks}
    found: collections.Counter = collections.Counter()
    for file in folder.glob("trace-*.jsonl"):
        head, *events = map(json.loads, file.read_text().splitlines())
        ours = {e["seq"] for e in events if e["k"] == "call" and e["plan"] in plans}
        for event in events:
            if event["k"] == "send" and event["seq"] in ours:
                mine, peer = place.get(head["rank"]), place.get(event["peer"])
                inside = mine is not None and mine == peer
                found["direct" if inside else "through helpers"] += event["bytes"]
    return found
