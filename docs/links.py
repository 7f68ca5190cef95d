# SPDX-License-Identifier: BSD-3-Clause
"""Draws docs/links.svg: python docs/links.py. Two of eight ranks, direct and relayed."""

import itertools
import math
import pathlib

RANKS, RADIUS, NODE = 8, 96, 15
WIDTH, HEIGHT, TOP = 560, 300, 158
IDLE, DIRECT, RELAY, HELPER = "#d9dee3", "#b3541e", "#1f6f8b", "#eef2f5"


def place(rank: int, centre: int) -> tuple[float, float]:
    """Ranks 0 and 1 at the top, side by side."""
    angle = math.pi * (2 * rank - 1) / RANKS - math.pi / 2
    return centre + RADIUS * math.cos(angle), TOP + RADIUS * math.sin(angle)


def link(a: int, b: int, centre: int, colour: str, width: float) -> str:
    (x1, y1), (x2, y2) = place(a, centre), place(b, centre)
    return (
        f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" '
        f'stroke="{colour}" stroke-width="{width}"/>'
    )


def text(x: float, y: float, words: str, colour: str = "#24292f", size: int = 13) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" fill="{colour}">{words}</text>'


def panel(centre: int, title: str, note: str, relayed: bool) -> list[str]:
    parts = [text(centre, 24, title, size=15), text(centre, HEIGHT - 12, note)]
    used = {(0, 1)}
    if relayed:
        used |= {(member, helper) for member in (0, 1) for helper in range(2, RANKS)}
    pairs = sorted(itertools.combinations(range(RANKS), 2), key=lambda pair: pair in used)
    for a, b in pairs:
        colour = IDLE if (a, b) not in used else DIRECT if (a, b) == (0, 1) else RELAY
        parts.append(link(a, b, centre, colour, 1 if colour == IDLE else 2.6))
    for rank in range(RANKS):
        x, y = place(rank, centre)
        member = rank < 2
        parts.append(
            f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{NODE}" fill="{DIRECT if member else HELPER}" '
            f'stroke="{DIRECT if member else RELAY if relayed else "#aab4bd"}" stroke-width="1.5"/>'
        )
        parts.append(text(x, y + 5, str(rank), "#ffffff" if member else "#24292f"))
    return parts


def main() -> None:
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
        f'width="{WIDTH}" height="{HEIGHT}" font-family="sans-serif" text-anchor="middle">',
        "<title>Ranks 0 and 1 of 8: direct, and relayed through the other six</title>",
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>',
        *panel(WIDTH // 4, "direct", "1 of each member's 7 links", False),
        *panel(3 * WIDTH // 4, "relayed", "7 of each member's 7 links", True),
        "</svg>",
    ]
    pathlib.Path(__file__).with_suffix(".svg").write_text("\n".join(parts) + "\n")


if __name__ == "__main__":
    main()
