"""Text from elsewhere, made safe to print. Pure."""

from __future__ import annotations


def printable(text: str) -> str:
    """`text` for a terminal: what does not print, escape sequences above all, is shown as an escape."""
    if text.isprintable():
        return text
    return "".join(mark if mark.isprintable() else mark.encode("unicode_escape").decode() for mark in text)


def printable_lines(text: str) -> str:
    """The same for text of several lines: line feeds and tabs stay."""
    return "".join(mark if mark in "\n\t" else printable(mark) for mark in text)
