# SPDX-License-Identifier: BSD-3-Clause
"""The examples build in this tree and as a project of their own, run on four ranks, and print
what they should; the README shows the first of them as it is."""

import os
import pathlib
import re
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("BYWAY_BUILD_DIR", ROOT / "build/dev"))
BYWAY = pathlib.Path(os.environ.get("BYWAY_BIN", BUILD / "src/byway/tools/byway"))

FUSED_RELAY = [
    "[0] allreduce, 1 group: relayed, predicted N times as fast as direct",
    "[0] all-gather, 2 groups: relayed, predicted N times as fast as direct",
    "[0] rank 0: the pair's maximum is 2",
    "[1] rank 1: the pair's maximum is 2",
    "[2] rank 2: helped",
    "[3] rank 3: helped",
    "[0] rank 0: gathered 0 and 10",
    "[1] rank 1: gathered 0 and 10",
    "[2] rank 2: gathered 20 and 30",
    "[3] rank 3: gathered 20 and 30",
]
OUTPUT = {
    "allreduce": [f"[{rank}] rank {rank} of 4: 10" for rank in range(4)],
    "fused_relay": FUSED_RELAY,
    "own_store": [
        "[0] rank 0 is 0 of 2 in its group: 0 2",
        "[1] rank 1 is 0 of 2 in its group: 1 3",
        "[2] rank 2 is 1 of 2 in its group: 0 2",
        "[3] rank 3 is 1 of 2 in its group: 1 3",
    ],
}


def run(*command) -> str:
    # What the examples state themselves must not depend on the caller's settings.
    settings = {"BYWAY_TOPOLOGY", "BYWAY_PACE"}
    environment = {name: value for name, value in os.environ.items() if name not in settings}
    done = subprocess.run(
        [str(word) for word in command],
        capture_output=True,
        text=True,
        timeout=300,
        env=environment,
    )
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def lines_of(folder: pathlib.Path, name: str) -> list[str]:
    """Sorted, since ranks print in any order; the predicted ratios are not the test's business."""
    output = run(BYWAY, "run", "-n", "4", "--", folder / name)
    return sorted(re.sub(r"predicted [\d.]+ times", "predicted N times", output).splitlines())


def test_every_example_is_known():
    assert {path.stem for path in (ROOT / "examples").glob("*.cc")} == OUTPUT.keys()


@pytest.mark.parametrize("name", OUTPUT)
def test_output(name):
    assert lines_of(BUILD / "examples", name) == sorted(OUTPUT[name])


def test_output_as_a_project_of_its_own(tmp_path):
    prefix, build = tmp_path / "prefix", tmp_path / "build"
    run("cmake", "--install", BUILD, "--prefix", prefix)
    source = ROOT / "examples"
    run("cmake", "-S", source, "-B", build, "-G", "Ninja", f"-DCMAKE_PREFIX_PATH={prefix}")
    run("cmake", "--build", build)
    for name, output in OUTPUT.items():
        assert lines_of(build, name) == sorted(output)


def test_a_job_that_is_too_small_says_so():
    command = [str(BYWAY), "run", "-n", "2", "--", str(BUILD / "examples/fused_relay")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 2
    assert "start it on four ranks" in done.stderr


def test_the_readme_shows_the_first_example():
    """Without its licence line and the comment for those who opened the file."""
    source = (ROOT / "examples/allreduce.cc").read_text()
    code = source[source.index("#include") :]
    assert f"```cpp\n{code}```" in (ROOT / "README.md").read_text()
