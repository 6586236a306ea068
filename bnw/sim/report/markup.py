"""HTML and SVG as text in which nothing that comes from outside can be markup.

`tag` escapes attributes and every child that is not `Markup` already, so a name or an error's text stays text.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape


class Markup(str):
    """Text that is markup already."""

    __slots__ = ()


Child = str | int | float | Markup


def tag(name: str, *children: Child, **attributes: str | float) -> Markup:
    """An element. Underscores in attribute names stand for hyphens; one at the end is dropped (`class_`)."""
    shown = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escape(_text(value))}"' for key, value in attributes.items()
    )
    return Markup(f"<{name}{shown}>{joined(*children)}</{name}>")


def joined(*children: Child) -> Markup:
    return Markup("".join(child if isinstance(child, Markup) else escape(_text(child)) for child in children))


def _text(value: object) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".") if isinstance(value, float) else str(value)


def table(headings: Sequence[str], rows: Sequence[Sequence[Child]], *, numbers: Sequence[int] = ()) -> Markup:
    """`numbers` are the columns that hold numbers, which stand at their right edge.

    On a narrow screen each row becomes a paragraph, in which every cell has its heading before it.
    """
    kinds = [{"class_": "number"} if at in numbers else {} for at in range(len(headings))]
    head = tag("tr", *(tag("th", name, scope="col", **kind) for name, kind in zip(headings, kinds, strict=True)))
    body = [
        tag(
            "tr",
            *(tag("td", cell, data_name=name, **kind) for name, cell, kind in zip(headings, row, kinds, strict=True)),
        )
        for row in rows
    ]
    return tag("table", tag("thead", head), tag("tbody", *body))


def facts(rows: Sequence[tuple[Child, Child]]) -> Markup:
    """Names and what belongs to them."""
    return tag("dl", *(joined(tag("dt", name), tag("dd", value)) for name, value in rows))


def wide(content: Markup) -> Markup:
    """What may be wider than a narrow screen, and is then moved sideways by itself."""
    return tag("div", content, class_="wide", tabindex=0)
