"""A sweep as one page: a table of medians, and a picture with a panel for each metric."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from bnw.sim.report.charts import LETTER
from bnw.sim.report.markup import Child, Markup, joined, table, tag, wide
from bnw.sim.report.page import document
from bnw.sim.report.scales import straight
from bnw.sim.report.words import amount, meaning, metric_text

COLUMNS: Final = 2
PANEL_WIDTH: Final = 350
PANEL_HEIGHT: Final = 190
LEFT: Final = 74
RIGHT: Final = 26
TOP: Final = 26
BOTTOM: Final = 42

Row = dict[str, Any]


def sweep_page(title: str, outcome: dict[str, Any], shown: Sequence[str]) -> str:
    """`outcome` is what `bnw.sim.sweep.run_sweep` returned; `shown` are the metrics of table and picture."""
    rows: list[Row] = outcome["rows"]
    key, seeds = outcome["key"], outcome["seeds"]
    counted = f"{len(seeds):,} {'seed' if len(seeds) == 1 else 'seeds'}"
    failed = sum(len(row["failed_seeds"]) for row in rows)
    runs = len(rows) * len(seeds)
    if failed:
        verdict = tag("p", f"✗ In {failed:,} of {runs:,} runs an expectation did not hold.", class_="verdict bad")
    else:
        verdict = tag("p", f"✓ All expectations held in all {runs:,} runs.", class_="verdict good")
    given = f"{key} was given {len(rows)} {'value' if len(rows) == 1 else 'values'}, each played with {counted}."
    how = given if key is not None else f"Played with {counted}."
    body = joined(
        tag("header", tag("p", "BNW simulation · sweep", class_="kind"), tag("h1", title)),
        tag("p", f"{how} Lines and dots are medians of the seeds, bars reach from the least to the most."),
        verdict,
        _picture(key, rows, shown),
        tag("h2", "Table"),
        _table(key, rows, shown),
        tag("h2", "What the metrics mean"),
        table(("metric", "what it is"), [(tag("code", name), meaning(name)) for name in shown]),
    )
    return document(f"{title} – BNW sweep", body)


def _table(key: str | None, rows: Sequence[Row], shown: Sequence[str]) -> Markup:
    lines: list[tuple[Child, ...]] = []
    for row in rows:
        figures = [row["metrics"][name] for name in shown]
        cells = [_cell(name, figure) for name, figure in zip(shown, figures, strict=True)]
        failed = row["failed_seeds"]
        said = tag("span", f"✗ {', '.join(map(str, failed))}", class_="bad") if failed else "none"
        why = (tag("small", ", ".join(row["failed"])),) if failed else ()
        lines.append((_value(row), *cells, joined(said, *why)))
    heads = (key or "", *(name.replace(".", ".\u200b") for name in shown), "failed seeds")
    return wide(table(heads, lines, numbers=range(1, 1 + len(shown))))


def _cell(name: str, figure: dict[str, float]) -> Markup:
    texts = {end: metric_text(name, figure[end]) for end in ("least", "median", "most")}
    if texts["least"] == texts["most"]:
        return joined(texts["median"])
    return joined(texts["median"], tag("small", f"{texts['least']} – {texts['most']}"))


def _value(row: Row) -> str:
    return "all" if row["value"] is None else str(row["value"])


def _picture(key: str | None, rows: Sequence[Row], shown: Sequence[str]) -> Markup:
    lines = -(-len(shown) // COLUMNS)
    panels = []
    for number, name in enumerate(shown):
        across, down = number % COLUMNS * PANEL_WIDTH, number // COLUMNS * PANEL_HEIGHT
        panels.append(tag("g", *_panel(key, rows, name), transform=f"translate({across} {down})"))
    title = "What became of it" if key is None else f"What {key} does"
    size = f"0 0 {COLUMNS * PANEL_WIDTH} {lines * PANEL_HEIGHT}"
    return tag(
        "figure", tag("figcaption", title), wide(tag("svg", tag("title", title), *panels, viewBox=size, role="img"))
    )


def _panel(key: str | None, rows: Sequence[Row], name: str) -> list[Markup]:
    figures = [row["metrics"][name] for row in rows]
    y = straight(min(0.0, *(f["least"] for f in figures)), max(f["most"] for f in figures) or 1.0)
    values = [row["value"] for row in rows]
    is_scale = len(values) > 1 and all(
        isinstance(value, int | float) and not isinstance(value, bool) for value in values
    )
    x = straight(min(values), max(values), is_tight=True) if is_scale else None
    right, bottom = PANEL_WIDTH - RIGHT, PANEL_HEIGHT - BOTTOM

    def across(at: int) -> float:
        share = x.at(values[at]) if x is not None else (at + 0.5) / len(values)
        return LEFT + (right - LEFT) * share

    def down(value: float) -> float:
        return bottom - (bottom - TOP) * y.at(value)

    parts = [tag("text", name, x=LEFT, y=14)]
    for tick in y.ticks[:: max(1, len(y.ticks) // 4)]:
        parts.append(tag("line", x1=LEFT, x2=right, y1=down(tick), y2=down(tick), class_="grid"))
        parts.append(tag("text", metric_text(name, tick), x=LEFT - 7, y=down(tick) + 4, class_="tick end"))
    room = -99.0
    for at in sorted(range(len(values)), key=across):
        words = amount(values[at]) if is_scale else _value(rows[at])
        half = LETTER * len(words) / 2
        if across(at) - half > room:
            parts.append(tag("text", words, x=across(at), y=bottom + 16, class_="tick middle"))
            room = across(at) + half + 4
    parts.append(tag("text", key or "all seeds", x=(LEFT + right) / 2, y=bottom + 33, class_="middle"))
    for at, figure in enumerate(figures):
        line = {"x1": across(at), "x2": across(at), "y1": down(figure["least"]), "y2": down(figure["most"])}
        parts.append(tag("line", **line, class_="range"))
    order = sorted(range(len(values)), key=across)
    if is_scale:
        points = " ".join(f"{across(at):.1f},{down(figures[at]['median']):.1f}" for at in order)
        parts.append(tag("polyline", points=points, class_="curve"))
    for at, figure in enumerate(figures):
        kind = "dot open" if rows[at]["failed_seeds"] else "dot"
        parts.append(tag("circle", cx=across(at), cy=down(figure["median"]), r=4, class_=kind))
    return parts
