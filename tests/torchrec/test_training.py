# SPDX-License-Identifier: BSD-3-Clause
"""TorchRec's own DMPCollection on CPU, with relay and without: the same weights on all replicas."""

import json
import os
import pathlib
import subprocess
import sys
import time

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("BYWAY_BUILD_DIR", ROOT / "build/dev"))
PROGRAM = pathlib.Path(__file__).parent / "train.py"
SECONDS = 600
pytestmark = pytest.mark.full


@pytest.fixture(scope="session")
def interpreter() -> str:
    """Of an environment with TorchRec beside this one's torch; made at the first use."""
    environment = os.environ | {"PYTHON": sys.executable}
    made = ROOT / "build/torchrec/venv"
    done = subprocess.run(
        [ROOT / "scripts/setup_torchrec.sh", made],
        capture_output=True,
        text=True,
        env=environment,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return str(made / "bin/python")


def _extension() -> str:
    named = os.environ.get("BYWAY_TORCH_EXTENSION")
    found = [named] if named else sorted(map(str, (BUILD / "src/byway/torch").glob("_C*.so")))
    assert found, f"no extension in {BUILD}: build the target byway_torch_extension"
    return found[0]


def _run(interpreter: str, world: int, replicas: int, folder: pathlib.Path) -> list[dict]:
    processes = []
    for rank in range(world):
        environment = {k: v for k, v in os.environ.items() if not k.startswith("BYWAY_")} | {
            "PYTHONPATH": str(ROOT / "python"),
            "BYWAY_TORCH_EXTENSION": _extension(),
            "BYWAY_TOPOLOGY": f"mesh:{world}@1G,5",
            "RANK": str(rank),
            "LOCAL_RANK": str(rank),
            "WORLD_SIZE": str(world),
            "LOCAL_WORLD_SIZE": str(world),
            "OMP_NUM_THREADS": "1",
        }
        with (folder / f"rank-{rank}.log").open("wb") as log:
            processes.append(
                subprocess.Popen(
                    [interpreter, "-O", PROGRAM, str(replicas), str(folder)],
                    env=environment,
                    stdout=log,
                    stderr=log,
                )
            )
    until = time.monotonic() + SECONDS
    try:
        codes = [p.wait(max(0.1, until - time.monotonic())) for p in processes]
    finally:
        for process in processes:
            process.kill()
            process.wait()
    for rank, code in enumerate(codes):
        assert code == 0, (
            f"rank {rank}: {code}\n{(folder / f'rank-{rank}.log').read_text()[-6000:]}"
        )
    return [json.loads((folder / f"rank-{rank}.json").read_text()) for rank in range(world)]


@pytest.mark.parametrize(("world", "replicas"), [(4, 2), (6, 2), (8, 2), (8, 4)])
def test_training(interpreter, tmp_path, world, replicas):
    for rank, result in enumerate(_run(interpreter, world, replicas, tmp_path)):
        what = f"rank {rank}: {result}"
        assert result["communicators"] == 1, what  # relay was on
        assert result["replicas_agree"], what
        assert result["types"] == ["torch.float16", "torch.float32"], what
        assert result["largest"] > 0, what
        # Two values have one sum; of four, Gloo's has another order and rounds 16 bit on the way.
        assert result["difference"] <= (0 if replicas == 2 else 2e-3 * result["largest"]), what
        sums = [call for call in result["calls"] if "allreduce" in call[0] and call[1] > 1 << 20]
        assert sums, what
        for call, _, route, state in sums:
            assert state == "completed", call
            assert not route.startswith("direct"), (call, route)
