# SPDX-License-Identifier: BSD-3-Clause
"""Rules that every file keeps."""

import json
import os
import pathlib
import re
import subprocess

from .sources import ROOT, SOURCE, repository_files

LICENSED = {".h", ".cc", ".cmake", ".in", ".py", ".sh", ".toml", ".cu", ".cuh"}
LICENSED_NAMES = {"CMakeLists.txt", "Makefile", "run", ".clang-format", ".clang-tidy"}
SPDX = "SPDX-License-Identifier: BSD-3-Clause"


def test_every_source_has_its_licence_line():
    sources = [p for p in repository_files() if p.suffix in LICENSED or p.name in LICENSED_NAMES]
    assert sources
    missing = []
    for path in sources:
        if SPDX not in "\n".join(path.read_text().splitlines()[:2]):
            missing.append(str(path.relative_to(ROOT)))
    assert not missing, "\n".join(missing)


def test_every_cpp_test_is_in_a_test_program():
    build = pathlib.Path(os.environ.get("BYWAY_BUILD_DIR", ROOT / "build/dev"))
    commands = json.loads((build / "compile_commands.json").read_text())
    compiled = {pathlib.Path(entry["file"]).resolve() for entry in commands}
    tests = {path for path in repository_files() if path.name.endswith("_test.cc")}
    assert sorted(tests - compiled) == []
    listed = json.loads(
        subprocess.run(
            ["ctest", "--test-dir", build, "--show-only=json-v1"],
            capture_output=True,
            check=True,
            text=True,
        ).stdout
    )["tests"]
    # Each test program of a folder that has tests contributes at least one test.
    programs = {pathlib.Path(test["command"][0]).name for test in listed if "command" in test}
    assert {f"{path.relative_to(SOURCE).parts[0]}_test" for path in tests} <= programs


def test_test_names_are_declared_by_a_suffix():
    """A file with gtest cases that is not named *_test.cc would be compiled into the library."""
    wrong = [
        str(path.relative_to(ROOT))
        for path in repository_files()
        if path.suffix == ".cc"
        and not path.name.endswith("_test.cc")
        and re.search(r"^TEST(_F|_P)?\(", path.read_text(), re.MULTILINE)
    ]
    assert not wrong


def test_every_pytest_file_is_collected():
    wrong = [
        str(path.relative_to(ROOT))
        for path in repository_files()
        if path.suffix == ".py"
        and re.search(r"^def test_", path.read_text(), re.MULTILINE)
        and not (path.is_relative_to(ROOT / "tests") and path.name.startswith("test_"))
    ]
    assert not wrong


def test_requirements_stay_small():
    """No list pulls torch or CUDA packages in: demo and engine tests must not need gigabytes."""
    names = [
        re.split(r"[<>=!~\[; ]", line)[0]
        for path in (ROOT / "requirements").glob("*.txt")
        for line in path.read_text().splitlines()
        if line and not line.startswith(("#", "-"))
    ]
    assert "libucx-cu13" in names
    assert not [name for name in names if name.startswith(("torch", "nvidia", "cuda", "jax"))]
