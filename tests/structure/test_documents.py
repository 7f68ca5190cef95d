# SPDX-License-Identifier: BSD-3-Clause
"""Documents name what exists: links, source files, and every document is in the index."""

import re

from .sources import ROOT, SOURCE

DOCUMENTS = [ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").glob("*.md"))]
FOLDERS = "src|docs|tests|scripts|cmake|examples|bench|python"
LAYERS = "base|schedule|kernels|transport|planner|executor|comm|tools"


def test_links_lead_somewhere():
    wrong = []
    for document in DOCUMENTS:
        for target in re.findall(r"\]\(([^)#\s]+)", document.read_text()):
            if not target.startswith("http") and not (document.parent / target).exists():
                wrong.append(f"{document.name}: {target}")
    assert not wrong, "\n".join(wrong)


def test_named_files_exist():
    """`src/byway/x.h`, `docs/*.md`, and sources by their folder: `comm/call.cc`."""
    wrong = []
    for document in DOCUMENTS:
        text = document.read_text()
        named = [(ROOT, name) for name in re.findall(rf"`((?:{FOLDERS})/[\w./*-]+)`", text)]
        named += [(SOURCE, name) for name in re.findall(rf"`((?:{LAYERS})/[\w./*]+\.\w+)`", text)]
        for root, name in named:
            if not any(root.glob(name.rstrip("/"))):
                wrong.append(f"{document.name}: {name}")
    assert not wrong, "\n".join(wrong)


def test_every_document_is_in_the_index():
    index = (ROOT / "docs/README.md").read_text()
    missing = [d.name for d in (ROOT / "docs").glob("*.md") if f"({d.name})" not in index]
    assert missing == ["README.md"]
