# SPDX-License-Identifier: BSD-3-Clause
"""The layering rule: includes and CMake's link lists agree with one table."""

import pytest

from .sources import (
    MAY_INCLUDE,
    ROOT,
    SOURCE,
    cpp_sources,
    folder_of,
    includes,
    module_call,
    quoted_includes,
)

FOLDERS = [folder for folder in MAY_INCLUDE if (SOURCE / folder / "CMakeLists.txt").exists()]


def test_every_folder_is_in_the_table():
    present = {path.name for path in SOURCE.iterdir() if path.is_dir()}
    assert present <= MAY_INCLUDE.keys()
    assert present == set(FOLDERS), "each folder is one CMake module"


def test_includes_follow_the_table():
    wrong = []
    for path in cpp_sources():
        folder = folder_of(path)
        for name in includes(path):
            if not name.startswith("byway/"):
                continue
            target = name.split("/")[1]
            if target != folder and target not in MAY_INCLUDE[folder]:
                wrong.append(f"{path.relative_to(ROOT)}: {name}")
    assert not wrong, "\n".join(wrong)


def test_own_headers_are_included_by_full_path():
    """A relative include would hide from the test above."""
    headers = {path.name for path in cpp_sources() if path.suffix == ".h"}
    wrong = [
        f"{path.relative_to(ROOT)}: {name}"
        for path in cpp_sources()
        for name in quoted_includes(path)
        if name.split("/")[-1] in headers and not (SOURCE.parent / name).is_file()
    ]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("folder", FOLDERS)
def test_cmake_links_follow_the_table(folder):
    call = module_call(folder)
    assert call["name"] == [folder]
    assert set(call["DEPENDS"]) <= MAY_INCLUDE[folder]


@pytest.mark.parametrize("folder", FOLDERS)
def test_cmake_links_what_is_included(folder):
    reached, todo = set(), list(module_call(folder)["DEPENDS"])
    while todo:
        name = todo.pop()
        if name not in reached:
            reached.add(name)
            todo += module_call(name)["DEPENDS"]
    included = {
        name.split("/")[1]
        for path in cpp_sources()
        if folder_of(path) == folder
        for name in includes(path)
        if name.startswith("byway/")
    }
    assert included - {folder} <= reached


def test_no_third_party_format_or_log_library_in_headers():
    """torch ships another fmt: fmt and spdlog stay in .cc files."""
    wrong = [
        f"{path.relative_to(ROOT)}: {name}"
        for path in cpp_sources()
        for name in includes(path)
        if path.suffix == ".h" and name.startswith(("fmt/", "spdlog/"))
    ]
    assert not wrong, "\n".join(wrong)


def test_public_headers_need_public_headers_only():
    """PUBLIC lists are what is installed: what they include must be in them too."""
    public = {path.relative_to(SOURCE.parent).as_posix() for path in (SOURCE / "base").glob("*.h")}
    for folder in ("comm", "graph"):
        if folder in FOLDERS:
            public |= {f"byway/{folder}/{name}" for name in module_call(folder)["PUBLIC"]}
    wrong = [
        f"{header}: {name}"
        for header in sorted(public)
        for name in includes(SOURCE.parent / header)
        if name.startswith("byway/") and name not in public
    ]
    assert not wrong, "\n".join(wrong)


def test_communicator_is_public():
    if (SOURCE / "comm/communicator.h").exists():
        assert "communicator.h" in module_call("comm")["PUBLIC"]
