"""The network drawn: nodes on a circle, or around the places of their regions, with the links between them."""

from __future__ import annotations

from math import cos, pi, sin
from typing import Final

from bnw.sim.play import Played
from bnw.sim.report.markup import Markup, joined, tag

SIZE: Final = 620
MAX_DRAWN: Final = 400
"""Nodes; of more the first are drawn."""
MAX_LINKS: Final = 3000
COLOURS: Final = ("#2b6cb0", "#2f855a", "#b7791f", "#6b46c1", "#0987a0", "#97266d", "#4a5568")
EVIL_COLOUR: Final = "#c53030"


def network_drawing(played: Played, worst: str) -> Markup:
    """`worst` is the name of the node to be marked."""
    places = list(played.plan.places.values())[:MAX_DRAWN]
    regions = sorted({place.region for place in places})
    order = sorted(places, key=lambda place: (regions.index(place.region), place.name))
    spots: dict[str, tuple[float, float]] = {}
    for number, place in enumerate(order):
        angle = 2 * pi * number / len(order) - pi / 2
        # Neighbours on the circle stand at three distances, so that many nodes do not hide each other.
        radius = SIZE / 2 - 40 - 22 * (number % 3)
        spots[place.name] = SIZE / 2 + radius * cos(angle), SIZE / 2 + radius * sin(angle)
    lines = [
        tag("line", x1=spots[a][0], y1=spots[a][1], x2=spots[b][0], y2=spots[b][1], class_="edge")
        for a, b in played.plan.edges[:MAX_LINKS]
        if a in spots and b in spots
    ]
    roles = list(dict.fromkeys(place.role for place in places if place.is_honest))
    colours = {role: COLOURS[number % len(COLOURS)] for number, role in enumerate(roles)}
    dots = []
    for place in order:
        x, y = spots[place.name]
        where = f" in {place.region}" if place.region else ""
        dots.append(
            tag(
                "circle",
                tag("title", f"{place.name}{where}, {len(place.neighbours)} neighbours"),
                cx=x,
                cy=y,
                r=9 if place.name == worst else 5,
                fill=colours.get(place.role, EVIL_COLOUR),
                class_="worst" if place.name == worst else "dot",
            )
        )
    legend = [tag("span", tag("i", style=f"background:{colours[role]}"), role, class_="key") for role in roles]
    if played.scenario.adversaries:
        legend.append(tag("span", tag("i", style=f"background:{EVIL_COLOUR}"), "adversaries", class_="key"))
    if worst:
        legend.append(tag("span", f"large: {worst}, which fared worst", class_="key"))
    left = len(played.plan.places) - len(places)
    note = tag("p", f"{left:,} more nodes are not drawn.") if left else joined()
    drawing = tag(
        "svg", tag("title", "The network"), *lines, *dots, viewBox=f"0 0 {SIZE} {SIZE}", role="img", class_="net"
    )
    return joined(drawing, tag("p", *legend), note)
