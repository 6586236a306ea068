"""Charts over time and distributions, as SVG."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from bnw.sim.measure import percentile
from bnw.sim.report.markup import Markup, joined, tag

WIDTH: Final = 720
HEIGHT: Final = 220
LEFT: Final = 64
RIGHT: Final = 16
TOP: Final = 14
BOTTOM: Final = 40
POINTS: Final = 200
"""Of a distribution's curve."""

Point = tuple[float, float]


def line_chart(
    title: str,
    points: Sequence[Point],
    *,
    x_label: str,
    y_label: str,
    marks: Sequence[tuple[float, str]] = (),
    low: float = 0.0,
    high: float | None = None,
) -> Markup:
    """One line. `marks` are vertical lines with words, such as a partition and its end."""
    if not points:
        return tag("p", "Nothing to draw.")
    top = max((y for _, y in points), default=1.0) if high is None else high
    top = top if top > low else low + 1.0
    right = max(x for x, _ in points) or 1.0

    def place(x: float, y: float) -> Point:
        return (
            LEFT + (WIDTH - LEFT - RIGHT) * x / right,
            HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * (y - low) / (top - low),
        )

    parts = [_axes(right, low, top, x_label, y_label)]
    for number, (x, words) in enumerate(marks):
        at, _ = place(min(x, right), low)
        parts.append(tag("line", x1=at, x2=at, y1=TOP, y2=HEIGHT - BOTTOM, class_="mark"))
        parts.append(tag("text", words, x=at + 3, y=TOP + 10 + 12 * (number % 4), class_="small"))
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in (place(*point) for point in points))
    parts.append(tag("polyline", points=path, class_="line"))
    return _figure(title, parts)


def distribution(title: str, ascending: Sequence[float]) -> Markup:
    """What share of values is below each, with the three percentiles drawn in."""
    if not ascending:
        return tag("p", "No object arrived anywhere.")
    count = len(ascending)
    chosen = sorted({round(at * (count - 1) / POINTS) for at in range(POINTS + 1)})
    # The slowest hundredth would squeeze all others into a corner; it stands in the table.
    right = max(percentile(ascending, 0.99) * 1.15, 1e-3)
    points = [(min(ascending[at], right), (at + 1) / count) for at in chosen if ascending[at] <= right]
    marks = [(percentile(ascending, share / 100), f"p{share}") for share in (50, 95, 99)]
    return line_chart(
        title, [(0.0, 0.0), *points], x_label="seconds", y_label="share that has arrived", marks=marks, high=1.0
    )


def _axes(right: float, low: float, top: float, x_label: str, y_label: str) -> Markup:
    bottom = HEIGHT - BOTTOM
    parts = [
        tag("line", x1=LEFT, x2=WIDTH - RIGHT, y1=bottom, y2=bottom, class_="axis"),
        tag("line", x1=LEFT, x2=LEFT, y1=TOP, y2=bottom, class_="axis"),
        tag("text", x_label, x=(LEFT + WIDTH) / 2, y=HEIGHT - 6, class_="small middle"),
        tag(
            "text",
            y_label,
            x=14,
            y=(TOP + bottom) / 2,
            class_="small middle",
            transform=f"rotate(-90 14 {(TOP + bottom) / 2})",
        ),
    ]
    for step in range(5):
        share = step / 4
        x, y = LEFT + (WIDTH - LEFT - RIGHT) * share, bottom - (bottom - TOP) * share
        parts.append(tag("text", short(right * share), x=x, y=bottom + 15, class_="small middle"))
        parts.append(tag("text", short(low + (top - low) * share), x=LEFT - 6, y=y + 4, class_="small end"))
        parts.append(tag("line", x1=LEFT, x2=WIDTH - RIGHT, y1=y, y2=y, class_="grid"))
    return joined(*parts)


def _figure(title: str, parts: Sequence[Markup]) -> Markup:
    drawing = tag("svg", tag("title", title), *parts, viewBox=f"0 0 {WIDTH} {HEIGHT}", role="img")
    return tag("figure", tag("figcaption", title), drawing)


def short(value: float) -> str:
    """A number for an axis or a table."""
    for limit, divisor, letter in ((1e9, 1e9, " G"), (1e6, 1e6, " M"), (1e4, 1e3, " k")):
        if abs(value) >= limit:
            return f"{value / divisor:.3g}{letter}"
    return f"{value:.3g}" if value < 1000 else f"{value:,.0f}"
