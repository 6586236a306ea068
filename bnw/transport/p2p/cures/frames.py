"""Splits a gossip stream into RPCs, without holding one that is too large.

Faults (libp2p 0.8.1): length prefixes are read byte by byte, each of which costs a window update; an RPC above the
limit resets the stream, and the message after it is lost as well.

On the stock library: tests/transport/test_crash_frames.py.

Can go when reads are buffered and an oversize RPC is skipped.
"""

from __future__ import annotations

from collections.abc import Iterator

from bnw.wire.errors import InvalidError
from bnw.wire.limits import MIB

MAX_RPC = MIB
"""The limit of all implementations. A larger one is skipped, as nobody sends one in good faith."""

MAX_SKIPPED = 16 * MIB
"""Bytes of a larger RPC that are worth skipping so as to keep the stream."""


class FrameReader:
    def __init__(self) -> None:
        self._buffer = bytearray()
        self._to_skip = 0
        self.skipped = 0
        """How many RPCs were too large."""

    def feed(self, data: bytes) -> Iterator[bytes]:
        """The RPCs that `data` completes. Raises `InvalidError` (`rpc`) for a length that nobody can mean."""
        self._buffer += data
        while True:
            if self._to_skip:
                skipping = min(self._to_skip, len(self._buffer))
                del self._buffer[:skipping]
                self._to_skip -= skipping
            header = _read_varint(self._buffer)
            if self._to_skip or header is None:
                return
            length, start = header
            if length > MAX_RPC:
                if length > MAX_SKIPPED:
                    raise InvalidError("rpc", f"an RPC of {length:,} bytes")
                self.skipped += 1
                self._to_skip = length
                del self._buffer[:start]
                continue
            if len(self._buffer) < start + length:
                return
            body = bytes(self._buffer[start : start + length])
            del self._buffer[: start + length]
            yield body


def _read_varint(data: bytearray) -> tuple[int, int] | None:
    """Value and size of the varint at the start; None if it is not all there."""
    value = 0
    for position, byte in enumerate(data[:5]):
        value |= (byte & 127) << 7 * position
        if byte < 128:
            return value, position + 1
    if len(data) >= 5:
        raise InvalidError("rpc", "a length of more than five bytes")
    return None
