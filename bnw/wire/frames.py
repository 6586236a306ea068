"""Frames: a 4-byte big-endian length, then that many bytes of deterministic CBOR (design section 14).

The decoder is sans-I/O. It refuses a length above its limit as soon as the length has arrived, so that a peer cannot
make it buffer more than one frame of the size that the protocol allows.
"""

from __future__ import annotations

from bnw.wire.cbor import Value, decode_map, encode
from bnw.wire.errors import InvalidError
from bnw.wire.limits import MAX_FRAME

LENGTH_SIZE = 4


def encode_frame(message: dict[str, Value], *, max_size: int = MAX_FRAME) -> bytes:
    """One frame that holds `message`; raises `InvalidError` if it would exceed `max_size` bytes."""
    body = encode(message)
    if len(body) > max_size:
        raise InvalidError("frame-too-large", f"a message of {len(body):,} bytes exceeds the limit of {max_size:,}")
    return len(body).to_bytes(LENGTH_SIZE) + body


class FrameDecoder:
    """Turns received bytes into messages. `feed` bytes, then call `next_message` until it returns None."""

    def __init__(self, *, max_size: int = MAX_FRAME) -> None:
        self._max_size = max_size
        self._buffer = bytearray()

    def feed(self, data: bytes) -> None:
        self._buffer += data

    def next_message(self) -> dict[str, Value] | None:
        """The next whole message, or None until more bytes have been fed; raises `InvalidError` on a bad frame."""
        if len(self._buffer) < LENGTH_SIZE:
            return None
        length = int.from_bytes(self._buffer[:LENGTH_SIZE])
        if length > self._max_size:
            raise InvalidError(
                "frame-too-large", f"a frame of {length:,} bytes exceeds the limit of {self._max_size:,}"
            )
        end = LENGTH_SIZE + length
        if len(self._buffer) < end:
            return None
        body = bytes(self._buffer[LENGTH_SIZE:end])
        del self._buffer[:end]
        return decode_map(body, max_size=self._max_size)

    def take(self, count: int) -> bytes:
        """Hand over up to `count` bytes that follow the last message: raw bytes that a message has announced."""
        taken = bytes(self._buffer[:count])
        del self._buffer[:count]
        return taken

    @property
    def is_empty(self) -> bool:
        """Whether the stream may end here without cutting a frame."""
        return not self._buffer
