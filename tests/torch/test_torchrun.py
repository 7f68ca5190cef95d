# SPDX-License-Identifier: BSD-3-Clause
"""torchrun: a killed rank is noticed, and the job starts again in every rendezvous mode."""

import os
import pathlib
import socket
import subprocess
import sys

import pytest
import ranks

PROGRAM = pathlib.Path(__file__).with_name("restarted.py")
NOTICED_SECONDS = 2.5


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def _rendezvous(mode: str) -> list[str]:
    if mode == "standalone":
        return ["--standalone"]
    if mode == "c10d":
        return ["--rdzv-backend=c10d", f"--rdzv-endpoint=127.0.0.1:{_free_port()}", "--rdzv-id=job"]
    return ["--rdzv-backend=static", "--master-addr=127.0.0.1", f"--master-port={_free_port()}"]


@pytest.mark.parametrize(
    ("mode", "store", "workers"),
    [
        ("standalone", "agent's", "plain"),
        ("standalone", "agent's", "with-workers"),
        ("c10d", "agent's", "plain"),
        ("c10d", "worker's", "plain"),
        ("static", "agent's", "plain"),
        ("static", "worker's", "plain"),
    ],
)
def test_killed_and_started_again(tmp_path, mode, store, workers):
    size = 3
    environment = {k: v for k, v in os.environ.items() if not k.startswith("BYWAY_")} | {
        "PYTHONPATH": str(ranks.ROOT / "python"),
        "BYWAY_TORCH_EXTENSION": str(ranks.extension_path()),
        "OMP_NUM_THREADS": "1",
        "TORCH_SHARE_RDZV_TCP_STORE": "1" if store == "agent's" else "0",
    }
    done = subprocess.run(
        # The monitor's interval leaves the others time to notice by themselves.
        [
            *(sys.executable, "-m", "torch.distributed.run", *_rendezvous(mode)),
            "--max-restarts=2",
            f"--nproc-per-node={size}",
            "--monitor-interval=4",
            str(PROGRAM),
            str(tmp_path),
            workers,
        ],
        env=environment,
        capture_output=True,
        text=True,
        timeout=150,
    )
    said = done.stdout + done.stderr
    assert done.returncode == 0, said
    for rank in range(size - 1):
        seconds, _, error = (tmp_path / f"0-{rank}").read_text().partition(" ")
        assert float(seconds) < NOTICED_SECONDS, (seconds, error)
        assert f"{size - 1}" in error, error
    assert (tmp_path / "1-0").read_text() == "done 6"
    assert (tmp_path / "1-2").read_text() == "done 3"
