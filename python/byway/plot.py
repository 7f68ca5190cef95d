# SPDX-License-Identifier: BSD-3-Clause
"""Draws the demo's results: python -m byway.plot byway-demo.json byway-demo.png."""

import argparse
import json
import os
import pathlib
import sys

from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Rectangle

LIMIT, RELAY, DIRECT, WRONG = "#c8d3dc", "#1f6f8b", "#8d99a3", "#b3261e"


def label(row: dict) -> str:
    text = f"{row['collective']}\nA={row['active']} {row['scenario']}"
    if row["dtype"] != "float32":
        text += f"\n{row['dtype']}"
    if row["ranks"] != 8:
        text += f"\nof {row['ranks']}"
    return text


def draw(document: dict, path: pathlib.Path) -> None:
    rows = document["rows"]
    figure = Figure(figsize=(max(7, 0.78 * len(rows) + 1.5), 5.2))
    axes = figure.subplots()
    for x, row in enumerate(rows):
        axes.bar(x, row["limit"], width=0.8, color=LIMIT)
        colour = RELAY if row["verified"] else WRONG
        axes.bar(x, row["speedup"], width=0.56, color=colour)
        low, high = row["interval"]
        axes.plot([x, x], [low, high], color="black", linewidth=1)
        share = f"{100 * row['of_limit']:.0f} %"
        axes.text(x, row["limit"] + 0.08, f"{row['speedup']:.2f}\n{share}", ha="center", fontsize=7)
    axes.axhline(1, color=DIRECT, linewidth=1, linestyle="--")
    axes.set_xticks(range(len(rows)), [label(row) for row in rows], rotation=60, ha="right")
    axes.tick_params(axis="x", labelsize=7)
    axes.set_xlim(-0.6, len(rows) - 0.4)
    axes.set_ylim(0, 1.14 * max([1.2, *(row["limit"] for row in rows)]))
    axes.set_ylabel("times as fast as direct")
    axes.spines[["top", "right"]].set_visible(False)
    clock = "virtual clock" if document["clock"] == "virtual" else "processes of one host"
    axes.set_title(
        f"Relay against direct: links of {document['rate_Bps'] / 1e6:g} MB/s, "
        f"{document['latency_s'] * 1e6:g} us ({clock})",
        fontsize=10,
        loc="left",
    )
    handles = [
        Rectangle((0, 0), 1, 1, color=RELAY),
        Rectangle((0, 0), 1, 1, color=LIMIT),
        Line2D([], [], color=DIRECT, linestyle="--"),
    ]
    axes.legend(
        handles,
        ["measured, every value verified", "limit that no schedule can pass", "direct"],
        frameon=False,
        fontsize=8,
        loc="upper right",
    )
    figure.tight_layout()
    draft = path.with_name(f".{path.name}.{os.getpid()}.png")
    try:
        figure.savefig(draft, dpi=150)
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("results", type=pathlib.Path)
    parser.add_argument("picture", type=pathlib.Path)
    arguments = parser.parse_args()
    try:
        document = json.loads(arguments.results.read_text())
        if document.get("byway") != "results" or not document.get("rows"):
            raise ValueError("it holds no results")
        draw(document, arguments.picture)
    except (OSError, ValueError, KeyError) as error:
        print(f"byway.plot: {arguments.results}: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
