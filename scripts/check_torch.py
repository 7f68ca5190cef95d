#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""check_torch.py [VERSION...]: compiles the PyTorch backend against other releases' headers.

By default 2.11.0 and the newest 2.14 that the package index has, the ends of the range that
src/byway/torch/torch_version.h names. Takes the compile commands of build/dev (`make build`); each
release's wheel is downloaded once (some 100 MB to 1 GB), and only its headers are kept, in
build/check-torch/VERSION. Lazy mode is written for 2.13 alone and left out. Nothing is linked.
"""

from __future__ import annotations

import concurrent.futures
import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import zipfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
KEPT = ROOT / "build/check-torch"
PIP = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--no-input"]


def newest(minor: str) -> str:
    """The newest release of a minor, as 2.14.1, that the index offers for this Python."""
    listed = subprocess.run(
        [*PIP, "index", "versions", "torch"], capture_output=True, text=True, check=True
    ).stdout
    found = re.findall(rf"\b{re.escape(minor)}\.\d+\b", listed)
    if not found:
        raise SystemExit(f"check-torch: the package index has no torch {minor}")
    return max(found, key=lambda version: int(version.rsplit(".", 1)[1]))


def headers(version: str) -> pathlib.Path:
    """The folder of that release's headers, downloaded at first use."""
    folder = KEPT / version
    if folder.is_dir():
        return folder / "torch/include"
    with tempfile.TemporaryDirectory() as download:
        print(f"check-torch: downloading torch {version} for its headers", flush=True)
        subprocess.run(
            [*PIP, "download", "--quiet", "--no-deps", "--dest", download, f"torch=={version}"],
            check=True,
        )
        (wheel,) = pathlib.Path(download).glob("*.whl")
        draft = KEPT / f"{version}.part"
        shutil.rmtree(draft, ignore_errors=True)
        with zipfile.ZipFile(wheel) as whole:
            wanted = [name for name in whole.namelist() if name.startswith("torch/include/")]
            whole.extractall(draft, wanted)
        draft.rename(folder)
    return folder / "torch/include"


def commands() -> list[tuple[pathlib.Path, list[str]]]:
    """The backend's sources with their compile commands, less those that say where output goes."""
    path = ROOT / "build/dev/compile_commands.json"
    if not path.exists():
        raise SystemExit("check-torch: build/dev is not there; run `make build` first")
    result = []
    for entry in json.loads(path.read_text()):
        source = pathlib.Path(entry["file"])
        if source.parent != ROOT / "src/byway/torch":
            continue
        words = shlex.split(entry["command"])
        if os.path.basename(words[0]) == "ccache":
            words = words[1:]
        words = [*words[: words.index("-o")], "-fsyntax-only", str(source)]
        result.append((source, words))
    if not result:
        raise SystemExit("check-torch: build/dev was made without torch")
    return result


def compile_one(job: tuple[pathlib.Path, list[str]], folder: pathlib.Path) -> str:
    """The compiler's words about one source with the headers of `folder`; empty: none."""
    source, words = job
    words = [
        re.sub(r"\S*/torch/include", str(folder), word) if "/torch/include" in word else word
        for word in words
    ]
    done = subprocess.run(words, capture_output=True, text=True)
    return "" if done.returncode == 0 else f"{source.name}:\n{done.stderr}"


def main() -> int:
    versions = sys.argv[1:] or ["2.11.0", newest("2.14")]
    jobs = commands()
    failed = False
    KEPT.mkdir(parents=True, exist_ok=True)
    for version in versions:
        folder = headers(version)
        with concurrent.futures.ThreadPoolExecutor(int(os.environ.get("JOBS", "1"))) as pool:
            words = pool.map(compile_one, jobs, [folder] * len(jobs))
            errors = [text for text in words if text]
        failed |= bool(errors)
        word = "compiles" if not errors else f"does not compile in {len(errors)} files"
        print(f"check-torch: {len(jobs)} files, torch {version}: {word}", flush=True)
        for text in errors:
            print(text)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
