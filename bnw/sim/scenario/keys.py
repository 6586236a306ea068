"""Kinds of values in a scenario file: how each is written, read and limited.

A key of the schema is a dataclass field made by one of these functions. Its metadata says how to read the value from
TOML (`READ`) and what the key means (`HELP`). A reader raises `ValueError` with a sentence for people.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import MISSING, field
from typing import Any, Final

READ: Final = "read"
HELP: Final = "help"

MAX_SECONDS: Final = 7 * 24 * 3600.0
_TIME_UNITS: Final = {"us": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_SIZE_UNITS: Final = {"B": 1, "KiB": 1024, "MiB": 1024**2, "GiB": 1024**3, "KB": 1000, "MB": 1000**2}
_QUANTITY: Final = re.compile(r"(-?\d{1,12}(?:\.\d{1,9})?) ?([A-Za-z]+)(/s)?")
_NAME: Final = re.compile(r"[a-z0-9][a-z0-9-]{0,31}")

Read = Callable[[Any], Any]


def key(read: Read, help: str, default: Any = MISSING) -> Any:
    """A field with this reader; without a default the key must be there."""
    metadata = {READ: read, HELP: help}
    if default is MISSING:
        return field(metadata=metadata)
    return field(default=default, metadata=metadata)


def duration(help: str, default: Any = MISSING, *, least: float = 0.0, negative: bool = False) -> Any:
    """Text such as "250ms", "1.5s", "2m"; seconds to the program."""

    def read(value: Any) -> float:
        number, unit, per_second = _quantity(value, 'a duration such as "250ms", "1.5s" or "2m"')
        if per_second or unit not in _TIME_UNITS:
            raise ValueError(f"{value!r} is no duration; units are {', '.join(_TIME_UNITS)}")
        seconds = number * _TIME_UNITS[unit]
        low = -MAX_SECONDS if negative else least
        if not low <= seconds <= MAX_SECONDS:
            raise ValueError(f"{value!r} is outside {low:g} s to {MAX_SECONDS:g} s")
        return seconds

    return key(read, help, default)


def size(help: str, default: Any = MISSING, *, most: int) -> Any:
    """Text such as "4KiB" or a plain number of bytes."""

    def read(value: Any) -> int:
        if type(value) is int:
            count = value
        else:
            number, unit, per_second = _quantity(value, 'a size such as "4KiB"')
            if per_second or unit not in _SIZE_UNITS:
                raise ValueError(f"{value!r} is no size; units are {', '.join(_SIZE_UNITS)}")
            count = round(number * _SIZE_UNITS[unit])
        if not 0 <= count <= most:
            raise ValueError(f"{count:,} bytes; possible are 0 to {most:,}")
        return count

    return key(read, help, default)


def speed(help: str, default: Any = MISSING) -> Any:
    """Text such as "1MiB/s"; bytes a second to the program."""

    def read(value: Any) -> float:
        number, unit, per_second = _quantity(value, 'a bandwidth such as "1MiB/s"')
        if not per_second or unit not in _SIZE_UNITS or number <= 0:
            raise ValueError(f'{value!r} is no bandwidth; write for example "1MiB/s"')
        return number * _SIZE_UNITS[unit]

    return key(read, help, default)


def share(help: str, default: Any = MISSING) -> Any:
    """A number from 0 to 1."""
    return number(help, default, least=0.0, most=1.0)


def number(help: str, default: Any = MISSING, *, least: float, most: float) -> Any:
    def read(value: Any) -> float:
        if type(value) not in (int, float) or not least <= value <= most:
            raise ValueError(f"{value!r} is no number from {least:g} to {most:g}")
        return float(value)

    return key(read, help, default)


def count(help: str, default: Any = MISSING, *, least: int = 1, most: int = 100_000) -> Any:
    def read(value: Any) -> int:
        if type(value) is not int or not least <= value <= most:
            raise ValueError(f"{value!r} is no whole number from {least:,} to {most:,}")
        return value

    return key(read, help, default)


def switch(help: str, default: bool) -> Any:
    def read(value: Any) -> bool:
        if type(value) is not bool:
            raise ValueError(f"{value!r} is neither true nor false")
        return value

    return key(read, help, default)


def name(help: str, default: Any = MISSING) -> Any:
    """Lowercase letters, digits and -, up to 32."""

    def read(value: Any) -> str:
        if not isinstance(value, str) or not _NAME.fullmatch(value):
            raise ValueError(f"{value!r} is no name; use lowercase letters, digits and -, at most 32")
        return value

    return key(read, help, default)


def names(help: str, default: Any = MISSING) -> Any:
    def read(value: Any) -> tuple[str, ...]:
        if not isinstance(value, list) or not value or not all(isinstance(item, str) for item in value):
            raise ValueError(f"{value!r} is no list of names")
        return tuple(value)

    return key(read, help, default)


def text(help: str, default: Any = MISSING, *, most: int = 2000) -> Any:
    def read(value: Any) -> str:
        if not isinstance(value, str) or not len(value.strip()) > 0 or len(value) > most:
            raise ValueError(f"this must be text of 1 to {most:,} characters")
        return " ".join(value.split())

    return key(read, help, default)


def choice(help: str, options: tuple[str, ...], default: Any = MISSING) -> Any:
    def read(value: Any) -> str:
        if value not in options:
            raise ValueError(f"{value!r} is none of {', '.join(options)}")
        return str(value)

    return key(read, f"{help}; one of {', '.join(options)}", default)


def _quantity(value: Any, what: str) -> tuple[float, str, bool]:
    match = _QUANTITY.fullmatch(value) if isinstance(value, str) else None
    if match is None:
        raise ValueError(f"{value!r} is not {what}")
    return float(match[1]), match[2], match[3] is not None
