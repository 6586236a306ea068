"""Text from elsewhere, made safe to print. Pure."""

from __future__ import annotations


def printable(text: str) -> str:
    """`text` for a terminal: what does not print, escape sequences above all, is shown as an escape."""
    if text.isprintable():
        return text
    return "".join(mark if mark.isprintable() else mark.encode("unicode_escape").decode() for mark in text)
