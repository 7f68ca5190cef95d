# SPDX-License-Identifier: BSD-3-Clause
"""What the structure tests read: the files of the repository and the layering table."""

import pathlib
import re
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src/byway"

# A folder may include its own headers and those of these folders (docs/architecture.md).
MAY_INCLUDE = {
    "base": set(),
    "schedule": {"base"},
    "kernels": {"base"},
    "transport": {"base"},
    "planner": {"base", "schedule"},
    "executor": {"base", "schedule", "kernels", "transport"},
    "comm": {"base", "schedule", "kernels", "transport", "planner", "executor"},
    "graph": {"base", "comm"},
    "torch": {"base", "comm", "graph"},
    "tools": {
        "base",
        "schedule",
        "kernels",
        "transport",
        "planner",
        "executor",
        "comm",
        "graph",
    },
}


def repository_files() -> list[pathlib.Path]:
    """Tracked files and new ones that git does not ignore."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listing = subprocess.run(command, cwd=ROOT, capture_output=True, check=True).stdout
    paths = {ROOT / name for name in listing.decode().split("\0") if name}
    return sorted(path for path in paths if path.is_file())


def cpp_sources() -> list[pathlib.Path]:
    return sorted(path for path in SOURCE.rglob("*") if path.suffix in {".h", ".cc"})


def folder_of(path: pathlib.Path) -> str:
    return path.relative_to(SOURCE).parts[0]


def includes(path: pathlib.Path) -> list[str]:
    """The names in the file's #include lines, without quotes or brackets."""
    return re.findall(r'^\s*#\s*include\s*[<"]([^>"]+)[>"]', path.read_text(), re.MULTILINE)


def quoted_includes(path: pathlib.Path) -> list[str]:
    return re.findall(r'^\s*#\s*include\s*"([^"]+)"', path.read_text(), re.MULTILINE)


def module_call(folder: str) -> dict[str, list[str]]:
    """The keyword lists of the folder's byway_module(...) call in its CMakeLists.txt."""
    text = (SOURCE / folder / "CMakeLists.txt").read_text()
    words = re.search(r"byway_module\(([^)]*)\)", text)[1].split()
    keywords = {"DEPENDS", "LIBS", "TEST_LIBS", "PUBLIC"}
    call: dict[str, list[str]] = {"name": [words[0]]} | {keyword: [] for keyword in keywords}
    current = None
    for word in words[1:]:
        if word in keywords or word == "INTERNAL":
            current = call.setdefault(word, [])
        else:
            current.append(word)
    return call
