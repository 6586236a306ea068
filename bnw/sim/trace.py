"""What happened in a simulation, line by line, and its hash: two runs are the same if their traces are.

The format is text, so that `diff` finds where two runs part: UTF-8, one event a line, each ended by a line feed. The
first line names the format. A line is virtual seconds with six digits, then words separated by single spaces:

    1.005000 a>b a#1 data <hash> <size> sent 1.000000      something arrived at b that a had sent
    1.005000 b news capability-manifest <id>               something happened at b

A hash in a line is the first half of a BLAKE3 hash in hex; ids of objects stand in full. The trace's own hash is BLAKE3
over all its bytes.
"""

from __future__ import annotations

from collections.abc import Callable

from blake3 import blake3

from bnw.wire.content_id import ContentId

FORMAT = "bnw-trace/1"
BUFFER_LINES = 1000
"""Lines that are hashed and written at once; one by one costs several times as much."""


class EventTrace:
    """Lines can only be added. `write`, if given, gets the same bytes as the hash, some lines at a time."""

    def __init__(self, write: Callable[[bytes], object] | None = None) -> None:
        self._write = write
        self._hash = blake3()
        self._buffer: list[str] = []
        self._lines = 0
        self.add(FORMAT)

    def __len__(self) -> int:
        """How many lines there are, the first included."""
        return self._lines

    def add(self, line: str) -> None:
        """Add a line. A line feed in it, from an error's text perhaps, becomes `\\n`: a trace must not end a run."""
        self._buffer.append(line.replace("\n", "\\n"))
        self._lines += 1
        if len(self._buffer) >= BUFFER_LINES:
            self.flush()

    def flush(self) -> None:
        """Hash and write what is buffered. Call at the end when there is a `write`."""
        if self._buffer:
            data = ("\n".join(self._buffer) + "\n").encode(errors="backslashreplace")
            self._buffer.clear()
            self._hash.update(data)
            if self._write is not None:
                self._write(data)

    @property
    def digest(self) -> ContentId:
        """The hash of all lines so far: the content id of the bytes that `write` got, or would have got."""
        self.flush()
        return ContentId(self._hash.digest())
