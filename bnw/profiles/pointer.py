"""JSON pointers (RFC 6901) as text."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

MAX_POINTER: Final = 4096
"""Characters. A thousand faults below one member whose name is a megabyte must not become a gigabyte of pointers."""


def token(name: str | int) -> str:
    """One reference token, with its slash."""
    if isinstance(name, int):
        return f"/{name}"
    return "/" + name.replace("~", "~0").replace("/", "~1")


def pointer(path: Iterable[str | int]) -> str:
    """The pointer that leads along `path`; the empty path is the whole document.

    Where that would be longer than `MAX_POINTER`, it leads to the nearest place around it that can be named.
    """
    text = ""
    for name in path:
        longer = text + token(name)
        if len(longer) > MAX_POINTER:
            break
        text = longer
    return text
