"""The network drawn: nodes on a circle, region by region, with the links between them."""

from __future__ import annotations

from math import cos, pi, sin
from typing import Final

from bnw.sim.plan import Place
from bnw.sim.play import Played
from bnw.sim.report.markup import Markup, joined, tag
from bnw.sim.report.style import ROLE_COLOURS

SIZE: Final = 640
MARGIN: Final = 74
"""Around the circle, for names."""
MAX_DRAWN: Final = 400
"""Nodes; of more the first are drawn."""
MAX_LINKS: Final = 3000
GAP: Final = 0.03
"""Between two regions, of the circle."""
CROWD: Final = 80
"""More nodes than these stand at three distances from the middle, so that they do not hide each other."""
EVIL: Final = "evil"


def network_drawing(played: Played, worst: str) -> Markup:
    """`worst` is the name of the node to be marked."""
    places = list(played.plan.places.values())[:MAX_DRAWN]
    angles = _angles(places)
    crowded = len(places) > CROWD
    spots: dict[str, tuple[float, float]] = {}
    for number, (name, angle) in enumerate(angles.items()):
        radius = SIZE / 2 - MARGIN - (26 * (number % 3) if crowded else 0)
        spots[name] = SIZE / 2 + radius * cos(angle), SIZE / 2 + radius * sin(angle)
    apart = {name for cut in played.scenario.partition for name in _side(places, cut.regions)}
    links = [(a, b) for a, b in played.plan.edges[:MAX_LINKS] if a in spots and b in spots]
    cut = [(a, b) for a, b in links if (a in apart) != (b in apart)]
    lines = [_line(spots, a, b, "edge") for a, b in links if (a in apart) == (b in apart)]
    lines += [_line(spots, a, b, "edge cut") for a, b in cut]
    roles = list(dict.fromkeys(place.role for place in places if place.is_honest))
    colours = {role: f"role-{number % ROLE_COLOURS}" for number, role in enumerate(roles)}
    radius = 4.5 if crowded else 7.5
    dots = [_node(place, spots[place.name], radius, colours.get(place.role, EVIL)) for place in places]
    if worst in spots:
        x, y = spots[worst]
        dots.append(tag("circle", cx=x, cy=y, r=radius + 4, class_="around"))
        outward = 22 if crowded else 20
        angle = angles[worst]
        if not any(place.region for place in places):
            dots.append(_name(worst, angle, SIZE / 2 - MARGIN + outward))
    keys = [_key(tag("circle", cx=8, cy=8, r=7, class_="node"), f"{role}", colours[role]) for role in roles]
    if any(not place.is_honest for place in places):
        keys.append(_key(_diamond(8, 8, 7), "adversary", EVIL))
    if worst in spots:
        ring = tag("circle", cx=8, cy=8, r=6, class_="around")
        keys.append(_key(ring, f"{worst}, which fared worst", ""))
    if cut:
        line = tag("line", x1=0, x2=26, y1=8, y2=8, class_="edge cut")
        keys.append(
            tag("span", tag("svg", line, viewBox="0 0 26 16", aria_hidden="true"), "link that a partition cuts")
        )
    left = len(played.plan.places) - len(places)
    note = tag("p", f"{left:,} more nodes are not drawn.", class_="soft") if left else joined()
    if len(places) == 1:
        return tag("p", f"There is one node, {places[0].name}.")
    title = f"{len(places):,} nodes and the {len(links):,} {'link' if len(links) == 1 else 'links'} between them"
    drawing = tag(
        "svg",
        tag("title", title),
        *lines,
        *dots,
        *_regions(places, angles),
        viewBox=f"0 0 {SIZE} {SIZE}",
        role="img",
        class_="net",
    )
    return joined(tag("figure", tag("figcaption", title), drawing), tag("div", *keys, class_="keys"), note)


def _angles(places: list[Place]) -> dict[str, float]:
    """Where on the circle each node stands. Regions stand together, with a gap between two."""
    regions = sorted({place.region for place in places})
    order = sorted(places, key=lambda place: regions.index(place.region)) if len(regions) > 1 else places
    gap = max(1.0, GAP * len(places)) if len(regions) > 1 else 0.0
    room = len(places) + gap * len(regions)
    return {
        place.name: 2 * pi * (number + gap * regions.index(place.region)) / max(1.0, room) - pi / 2
        for number, place in enumerate(order)
    }


def _side(places: list[Place], regions: tuple[str, ...]) -> set[str]:
    """Who is in one part of a partition by regions. Parts by chance are not known here."""
    return {place.name for place in places if place.region and place.region in regions}


def _line(spots: dict[str, tuple[float, float]], one: str, other: str, kind: str) -> Markup:
    return tag("line", x1=spots[one][0], y1=spots[one][1], x2=spots[other][0], y2=spots[other][1], class_=kind)


def _node(place: Place, spot: tuple[float, float], radius: float, kind: str) -> Markup:
    where = f" in {place.region}" if place.region else ""
    title = tag("title", f"{place.name}{where}, {len(place.neighbours)} neighbours")
    shape = (
        tag("circle", cx=spot[0], cy=spot[1], r=radius, class_="node") if place.is_honest else _diamond(*spot, radius)
    )
    return tag("g", title, shape, class_=kind)


def _diamond(x: float, y: float, radius: float) -> Markup:
    corners = ((x, y - radius), (x + radius, y), (x, y + radius), (x - radius, y))
    return tag("polygon", points=" ".join(f"{cx:.1f},{cy:.1f}" for cx, cy in corners), class_="node")


def _regions(places: list[Place], angles: dict[str, float]) -> list[Markup]:
    """The names of the regions around the circle."""
    members: dict[str, list[float]] = {}
    for place in places:
        if place.region:
            members.setdefault(place.region, []).append(angles[place.name])
    return [_name(region, (min(at) + max(at)) / 2, SIZE / 2 - MARGIN + 18) for region, at in members.items()]


def _name(words: str, angle: float, radius: float) -> Markup:
    x, y = SIZE / 2 + radius * cos(angle), SIZE / 2 + radius * sin(angle)
    anchor = "middle" if abs(cos(angle)) < 0.3 else ("start" if cos(angle) > 0 else "end")
    return tag("text", words, x=x, y=y + 4 + 6 * sin(angle), text_anchor=anchor)


def _key(shape: Markup, words: str, kind: str) -> Markup:
    return tag("span", tag("svg", shape, viewBox="0 0 16 16", class_=f"spot {kind}".strip(), aria_hidden="true"), words)
