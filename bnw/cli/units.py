"""Options in people's units, and numbers shown in them."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Any

import click

_UNITS = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_SIZES = {"": 1, "KiB": 1024, "MiB": 1024**2, "GiB": 1024**3}
_SIZE = re.compile(r"(\d{1,12})(KiB|MiB|GiB|)")
_DURATION = re.compile(r"(\d{1,9})(ms|s|m|h|d)")


class Duration(click.ParamType[int]):
    """A duration such as 30s, 5m, 2h or 1d; milliseconds to the program."""

    name = "duration"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        if isinstance(value, int):
            return value
        match = _DURATION.fullmatch(value)
        if match is None or int(match[1]) == 0:
            self.fail(f"{value!r} is no duration; write 30s, 5m, 2h or 1d", param, ctx)
        return int(match[1]) * _UNITS[match[2]]


class Size(click.ParamType[int]):
    """A number of bytes such as 500KiB, 20MiB or 2GiB; bytes to the program."""

    name = "size"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        if isinstance(value, int):
            return value
        match = _SIZE.fullmatch(value)
        if match is None or int(match[1]) == 0:
            self.fail(f"{value!r} is no size; write 500KiB, 20MiB or 2GiB", param, ctx)
        return int(match[1]) * _SIZES[match[2]]


def size_text(count: int) -> str:
    """1,536 bytes as `1.5 KiB`."""
    number, unit = float(count), "bytes"
    for unit in ("bytes", "KiB", "MiB", "GiB"):
        if number < 1024 or unit == "GiB":
            break
        number /= 1024
    return f"{int(number):,} {unit}" if unit == "bytes" else f"{number:,.1f} {unit}"


def moment_text(milliseconds: int) -> str:
    """Milliseconds since the Unix epoch as a date and time in UTC."""
    return datetime.fromtimestamp(milliseconds / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
