# SPDX-License-Identifier: BSD-3-Clause
"""find_package(byway) works from another project, also after the installation was moved."""

import os
import pathlib
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("BYWAY_BUILD_DIR", ROOT / "build/dev"))


def run(*command) -> str:
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def prefix(tmp_path_factory):
    folder = tmp_path_factory.mktemp("install")
    run("cmake", "--install", BUILD, "--prefix", folder / "first")
    return (folder / "first").rename(folder / "moved")


def test_consumer_builds_and_runs(prefix, tmp_path):
    consumer = pathlib.Path(__file__).parent / "consumer"
    run("cmake", "-S", consumer, "-B", tmp_path, "-G", "Ninja", f"-DCMAKE_PREFIX_PATH={prefix}")
    run("cmake", "--build", tmp_path)
    assert run(tmp_path / "consumer") == "0 of 1: 3\n"


def test_package_names_no_source_folder(prefix):
    """The installed files must work where neither the sources nor the build exist."""
    wrong = [
        path
        for path in (prefix / "lib/cmake/byway").iterdir()
        if any(f"{folder}/" in path.read_text() for folder in (ROOT / "src", BUILD))
    ]
    assert not wrong
