"""Plays a simulation beside the trace of an earlier run, and finds the first event in which the two differ."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import BinaryIO, Final

CONTEXT: Final = 5
"""Lines before the difference that are shown."""
MAX_LINE: Final = 64 * 1024
"""Bytes of one line of a trace that are read; no event has as many."""


@dataclass(frozen=True, slots=True)
class Difference:
    """`line` counts from 1. `before` are the lines ahead of it, the same in both; None is the end of a trace."""

    line: int
    before: tuple[str, ...]
    expected: str | None
    found: str | None


class Replay:
    """Takes what `EventTrace` writes, and compares it with `expected`, an open trace, line by line."""

    def __init__(self, expected: BinaryIO) -> None:
        self._expected = expected
        self._rest = b""
        self._before: deque[str] = deque(maxlen=CONTEXT)
        self.lines = 0
        """Lines that were the same."""
        self.difference: Difference | None = None

    def write(self, data: bytes) -> None:
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            if self.difference is not None:
                return
            self._compare(line)

    def finish(self, *, is_whole: bool) -> None:
        """Call at the end. A run that was stopped early need not reach the end of the trace."""
        if self.difference is None and is_whole and (left := self._read()) is not None:
            self._differ(left, None)

    def _compare(self, found: bytes) -> None:
        expected = self._read()
        if expected != found:
            self._differ(expected, found)
            return
        self._before.append(_text(found))
        self.lines += 1

    def _read(self) -> bytes | None:
        line = self._expected.readline(MAX_LINE)
        return line.removesuffix(b"\n") if line else None

    def _differ(self, expected: bytes | None, found: bytes | None) -> None:
        self.difference = Difference(
            self.lines + 1,
            tuple(self._before),
            None if expected is None else _text(expected),
            None if found is None else _text(found),
        )


def _text(line: bytes) -> str:
    return line.decode(errors="backslashreplace")
