"""Tables and lists of facts for people, through rich, with nothing in them that could control a terminal."""

from __future__ import annotations

import io
import shutil
import sys
from collections.abc import Iterable, Sequence

from bnw.wire.printable import printable

WIDE = 1000
"""Columns when nobody looks: a table that goes to a file or a pipe is never cut."""


def facts(pairs: Iterable[tuple[str, str]]) -> list[str]:
    """Lines of a label and a value each, the values aligned."""
    shown = list(pairs)
    width = max(len(label) for label, _ in shown)
    return [f"{label:<{width}}  {printable(value)}" for label, value in shown]


def table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """Lines of a table. On a terminal it fits the width; long cells fold."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    columns = shutil.get_terminal_size().columns if sys.stdout.isatty() else WIDE
    drawn = Table(box=None, pad_edge=False, header_style="bold")
    for heading in headings:
        drawn.add_column(heading, overflow="fold")
    for row in rows:
        drawn.add_row(*(Text(printable(cell)) for cell in row))
    sink = io.StringIO()
    Console(file=sink, width=columns, force_terminal=sys.stdout.isatty()).print(drawn)
    return [line.rstrip() for line in sink.getvalue().splitlines()]
