# SPDX-License-Identifier: BSD-3-Clause
"""Draws results of byway demo and bench: python -m byway.plot byway-demo.json byway-demo.png."""

import argparse
import json
import os
import pathlib
import sys

from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Rectangle

COLOURS = ["#1f6f8b", "#c77d2e", "#4f8f4a", "#8a5a9e", "#b3261e", "#5f6b75"]
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
    save(figure, path)


def save(figure: Figure, path: pathlib.Path) -> None:
    figure.tight_layout()
    draft = path.with_name(f".{path.name}.{os.getpid()}.png")
    try:
        figure.savefig(draft, dpi=150)
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)


def size_text(size: float) -> str:
    for unit, step in (("G", 2**30), ("M", 2**20), ("k", 2**10)):
        if size >= step:
            return f"{size / step:.3g} {unit}iB" if unit != "k" else f"{size / step:.3g} KiB"
    return f"{size:.0f} B"


def series_of(document: dict) -> dict[str, dict[str, list[tuple[dict, dict]]]]:
    """Rows with their details, by collective and line, ordered by size."""
    found: dict = {}
    for row, detail in zip(document["rows"], document["details"], strict=True):
        line = f"A={row['active']} {row['scenario']}"
        if detail["live_groups"]:
            line += f", {detail['live_groups']} stated"
        elif row["scenario"] == "parallel":
            line += ", nothing stated"
        if row["dtype"] != "float32":
            line += f" {row['dtype']}"
        if len(set(detail["counts"])) > 1:
            most = max(detail["counts"])
            line += " " + ":".join(f"{count / most:.3g}" for count in detail["counts"])
        found.setdefault(row["collective"], {}).setdefault(line, []).append((row, detail))
    for lines in found.values():
        for points in lines.values():
            points.sort(key=lambda point: point[0]["bytes"])
    return found


def draw_line(axes, points: list[tuple[dict, dict]], line: str, colour: str, flat: bool) -> None:
    rows = [row for row, _ in points]
    sizes = [row["bytes"] for row in rows]
    if flat:
        axes.plot(sizes, [detail["bus_Bps"] / 1e9 for _, detail in points], "o-", color=colour)
        return
    axes.plot(sizes, [row["speedup"] for row in rows], "o-", color=colour, markersize=3, label=line)
    low, high = zip(*(row["interval"] for row in rows), strict=True)
    axes.fill_between(sizes, low, high, color=colour, alpha=0.2, linewidth=0)
    axes.plot(sizes, [row["limit"] for row in rows], ":", color=colour, linewidth=1)


def draw_sweep(document: dict, path: pathlib.Path) -> None:
    """Speed-up over size, a field for each collective; limits are dotted."""
    flat = document["settings"]["scenario"] == "flat"
    found = series_of(document)
    columns = min(4, len(found))
    height = -(-len(found) // columns)
    figure = Figure(figsize=(4.2 * columns + 0.5, 3.4 * height + 0.4))
    fields = figure.subplots(height, columns, squeeze=False).flatten()
    for axes, (collective, lines) in zip(fields, found.items(), strict=False):
        for number, (line, points) in enumerate(lines.items()):
            draw_line(axes, points, line, COLOURS[number % len(COLOURS)], flat)
        axes.set_title(collective, fontsize=10, loc="left")
        axes.set_xscale("log", base=2)
        axes.xaxis.set_major_formatter(lambda size, _: size_text(size))
        axes.tick_params(labelsize=7)
        axes.spines[["top", "right"]].set_visible(False)
        axes.set_ylim(bottom=0)
        if not flat:
            axes.axhline(1, color=DIRECT, linewidth=1, linestyle="--")
            axes.legend(frameon=False, fontsize=7)
    for axes in fields[len(found) :]:
        axes.set_visible(False)
    what = "bus bandwidth, GB/s" if flat else "times as fast as direct (dotted: the limit)"
    figure.suptitle(f"{what}; {document['links']} ({document['clock']} clock)", fontsize=10)
    save(figure, path)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("results", type=pathlib.Path)
    parser.add_argument("picture", type=pathlib.Path)
    arguments = parser.parse_args()
    try:
        document = json.loads(arguments.results.read_text())
        if document.get("byway") != "results" or not document.get("rows"):
            raise ValueError("it holds no results")
        (draw_sweep if "details" in document else draw)(document, arguments.picture)
    except (OSError, ValueError, KeyError) as error:
        print(f"byway.plot: {arguments.results}: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
