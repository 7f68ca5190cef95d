# SPDX-License-Identifier: BSD-3-Clause
"""The wheel works in a virtual environment that was moved, with no environment variables."""

import importlib.util
import pathlib
import subprocess
import sys
import textwrap
import zipfile

import pytest
import ranks

pytestmark = pytest.mark.full  # compiles everything

PROGRAM = """
    import torch, torch.distributed as dist
    assert "byway.torch._C" not in __import__("sys").modules
    dist.init_process_group("byway")
    x = torch.full((1000,), float(dist.get_rank()))
    dist.all_reduce(x)
    assert (x == 1).all()
    import byway.torch._extension as extension
    print("from", extension._file())
    dist.destroy_process_group()
"""


def run(*command, **options) -> str:
    environment = {"PATH": "/usr/bin:/bin", "HOME": str(pathlib.Path.home())}
    done = subprocess.run(
        [str(word) for word in command],
        env=environment | options,
        capture_output=True,
        text=True,
        timeout=3600,
    )
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout + done.stderr


@pytest.fixture(scope="module")
def moved(tmp_path_factory):
    """An environment with the wheel and UCX's, made in one place and moved to another; torch is
    that of the tests' interpreter."""
    for needed in ("scikit_build_core", "pip"):
        assert importlib.util.find_spec(needed), f"the tests' interpreter lacks {needed}"
    folder = tmp_path_factory.mktemp("wheel")
    search = ":".join(path for path in sys.path if path)
    run(
        sys.executable, "-m", "pip", "wheel", ranks.ROOT, "--no-deps", "--no-build-isolation",
        "-w", folder, PYTHONPATH=search,
    )  # fmt: skip
    (wheel,) = folder.glob("byway-*.whl")
    run(sys.executable, "-m", "venv", folder / "first")
    python = folder / "first/bin/python"
    run(python, "-m", "pip", "install", "--no-deps", wheel, "libucx-cu13==1.22.*")
    (site,) = (folder / "first/lib").glob("python3*/site-packages")
    torch = pathlib.Path(importlib.util.find_spec("torch").origin).parents[1]
    (site / "torch-of-the-tests.pth").write_text(f"{torch}\n")
    (folder / "first").rename(folder / "second")
    return folder / "second", wheel


def test_metadata(moved):
    with zipfile.ZipFile(moved[1]) as archive:
        names = archive.namelist()
        (metadata,) = [name for name in names if name.endswith(".dist-info/METADATA")]
        text = archive.read(metadata).decode()
    import torch

    minor = ".".join(torch.__version__.split(".")[:2])
    assert f"Requires-Dist: torch=={minor}.*" in text
    assert "Requires-Dist: libucx-cu13==1.22.*" in text
    for part in ("byway/lib/libbyway_comm.a", "byway/include/byway/comm/communicator.h"):
        assert part in names


def test_command(moved):
    said = run(moved[0] / "bin/byway", "doctor")
    assert str(moved[0]) in said  # the UCX of this environment


def test_backend(moved, tmp_path):
    program = tmp_path / "program.py"
    program.write_text(textwrap.dedent(PROGRAM))
    byway, python = moved[0] / "bin/byway", moved[0] / "bin/python"
    said = run(byway, "run", "-n", "2", "--", python, program)
    assert said.count(f"from {moved[0]}") == 2
