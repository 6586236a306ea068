"""Charts over time, distributions and ranges, as SVG with axes that have names and units."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from bnw.sim.measure import percentile
from bnw.sim.report.happenings import Happening
from bnw.sim.report.markup import Markup, tag, wide
from bnw.sim.report.scales import Scale, Text, powers, straight
from bnw.sim.report.words import seconds, share

WIDTH: Final = 720
HEIGHT: Final = 200
"""Of the plot itself."""
LEFT: Final = 78
RIGHT: Final = 24
TOP: Final = 12
BOTTOM: Final = 44
LANE: Final = 22
"""Height of a happening above the plot."""
LETTER: Final = 6.6
"""Width of one, about."""
POINTS: Final = 300
"""Of a distribution's curve."""
WIDE_SPREAD: Final = 30
"""If the slowest takes so many times as long as the median, a straight axis would hide most of the others."""
SHARES: Final = (0.5, 0.95, 0.99)

Point = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Axis:
    name: str
    scale: Scale
    text: Text


@dataclass(slots=True)
class Plot:
    """A plot's frame. `lanes` are rows above it for what happened meanwhile."""

    x: Axis
    y: Axis
    lanes: int = 0

    @property
    def top(self) -> float:
        return TOP + self.lanes * LANE

    @property
    def bottom(self) -> float:
        return self.top + HEIGHT

    def place(self, x: float, y: float) -> Point:
        return (
            LEFT + (WIDTH - LEFT - RIGHT) * self.x.scale.at(x),
            self.bottom - HEIGHT * self.y.scale.at(y),
        )

    def frame(self) -> list[Markup]:
        middle = (self.top + self.bottom) / 2
        parts = []
        for value in self.y.scale.ticks:
            _, y = self.place(self.x.scale.low, value)
            parts.append(tag("line", x1=LEFT, x2=WIDTH - RIGHT, y1=y, y2=y, class_="grid"))
            parts.append(tag("text", self.y.text(value), x=LEFT - 8, y=y + 4, class_="tick end"))
        for value in self.x.scale.ticks:
            x, _ = self.place(value, self.y.scale.low)
            parts.append(tag("line", x1=x, x2=x, y1=self.bottom, y2=self.bottom + 5, class_="axis"))
            parts.append(tag("text", self.x.text(value), x=x, y=self.bottom + 19, class_="tick middle"))
        parts.append(tag("line", x1=LEFT, x2=WIDTH - RIGHT, y1=self.bottom, y2=self.bottom, class_="axis"))
        parts.append(tag("text", self.x.name, x=(LEFT + WIDTH - RIGHT) / 2, y=self.bottom + 38, class_="middle"))
        turned = f"rotate(-90 16 {middle:.0f})"
        parts.append(tag("text", self.y.name, x=16, y=middle, class_="middle", transform=turned))
        return parts

    def happened(self, happenings: Sequence[Happening]) -> list[Markup]:
        """Words and a bar for each, one below the other, and hairlines down into the plot."""
        parts = []
        for lane, happening in enumerate(happenings):
            y = TOP + lane * LANE + 13
            begin, _ = self.place(happening.start, self.y.scale.low)
            end, _ = self.place(happening.end, self.y.scale.low)
            if happening.divides:
                width = max(1.0, end - begin)
                parts.append(tag("rect", x=begin, y=y, width=width, height=self.bottom - y, class_="shade"))
            for x in sorted({begin, end}):
                parts.append(tag("line", x1=x, x2=x, y1=y, y2=self.bottom, class_="hair"))
            parts.append(tag("rect", x=begin - 2, y=y, width=end - begin + 4, height=5, rx=2, class_="bar"))
            fits = begin + LETTER * len(happening.words) < WIDTH
            at = min(end + 2, WIDTH - RIGHT)
            where: dict[str, str | float] = {"x": begin - 2} if fits else {"x": at, "text_anchor": "end"}
            parts.append(tag("text", happening.words, y=y - 3, class_="halo", **where))
        return parts

    def drawing(self, title: str, parts: Sequence[Markup]) -> Markup:
        height = self.bottom + BOTTOM
        svg = tag("svg", tag("title", title), *parts, viewBox=f"0 0 {WIDTH} {height:g}", role="img")
        return tag("figure", tag("figcaption", title), wide(svg))


def line_chart(
    title: str, points: Sequence[Point], *, x: Axis, y: Axis, happenings: Sequence[Happening] = (), filled: bool = False
) -> Markup:
    """One line over time."""
    if not points:
        return tag("p", f"{title}: nothing to draw.", class_="soft")
    plot = Plot(x, y, len(happenings))
    places = [plot.place(*point) for point in points]
    path = " ".join(f"{px:.1f},{py:.1f}" for px, py in places)
    parts = plot.frame() + plot.happened(happenings)
    if filled:
        parts.append(
            tag(
                "polygon",
                points=f"{places[0][0]:.1f},{plot.bottom:g} {path} {places[-1][0]:.1f},{plot.bottom:g}",
                class_="under",
            )
        )
    parts.append(tag("polyline", points=path, class_="curve"))
    return plot.drawing(title, parts)


def distribution(title: str, ascending: Sequence[float]) -> Markup:
    """What share of values is below each, with the percentiles marked."""
    if not ascending:
        return tag("p", "No object arrived anywhere.", class_="soft")
    least, most = max(ascending[0], 1e-3), max(ascending[-1], 1e-3)
    count = len(ascending)
    is_wide = most / max(percentile(ascending, 0.5), least) > WIDE_SPREAD
    scale = powers(least, most) if is_wide else straight(0.0, most)
    marks = [(value := percentile(ascending, part), f"p{round(100 * part)}: {seconds(value)}") for part in SHARES]
    plot = Plot(
        Axis("time from publication to arrival" + (", by powers of ten" if is_wide else ""), scale, seconds),
        Axis("share that has arrived", straight(0.0, 1.0), share),
        len(marks),
    )
    chosen = sorted({round(at * (count - 1) / POINTS) for at in range(POINTS + 1)})
    # A staircase: the share stays as it is until the next object arrives.
    stairs = [(scale.low, 0.0)]
    for at in chosen:
        stairs += [(ascending[at], stairs[-1][1]), (ascending[at], (at + 1) / count)]
    places = [plot.place(*stair) for stair in stairs]
    parts = plot.frame()
    parts.append(tag("polyline", points=" ".join(f"{x:.1f},{y:.1f}" for x, y in places), class_="curve"))
    parts += plot.happened([Happening(value, value, words) for value, words in marks])
    for part in SHARES:
        x, y = plot.place(percentile(ascending, part), part)
        parts.append(tag("circle", cx=x, cy=y, r=4.5, class_="dot ring"))
    return plot.drawing(title, parts)


def dots(
    title: str, points: Sequence[tuple[float, float, bool]], *, x: Axis, y: Axis, happenings: Sequence[Happening]
) -> Markup:
    """One dot for each; those that are not whole are rings."""
    plot = Plot(x, y, len(happenings))
    parts = plot.frame() + plot.happened(happenings)
    for px, py, is_whole in points:
        at_x, at_y = plot.place(px, py)
        parts.append(tag("circle", cx=at_x, cy=at_y, r=4, class_="dot" if is_whole else "dot open"))
    return plot.drawing(title, parts)
