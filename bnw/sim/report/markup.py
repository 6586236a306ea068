"""HTML and SVG as text in which nothing that comes from outside can be markup.

`tag` escapes attributes and every child that is not `Markup` already, so a name or an error's text stays text.
"""

from __future__ import annotations

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


def table(headings: tuple[str, ...], rows: list[tuple[Child, ...]]) -> Markup:
    head = tag("tr", *(tag("th", heading) for heading in headings))
    body = (tag("tr", *(tag("td", cell) for cell in row)) for row in rows)
    return tag("table", tag("thead", head), tag("tbody", *body))
