"""Reading and writing Negentropy messages, and how items and bounds are kept in memory.

An item is its *key*: the timestamp as 8 big-endian bytes, then the 32-byte id. Keys sort as items do. A bound is the
beginning of a key (at least the 8 bytes of the timestamp), which sorts before every key that begins with it. So all
comparisons of items and bounds are comparisons of bytes.
"""

from __future__ import annotations

from typing import Final

from bnw.wire.errors import InvalidError

VERSION: Final = 0x61
VERSIONS: Final = range(0x60, 0x70)
"""First bytes that a message of any version can have."""

SKIP: Final = 0
FINGERPRINT: Final = 1
ID_LIST: Final = 2

TIMESTAMP_SIZE: Final = 8
ID_SIZE: Final = 32
KEY_SIZE: Final = TIMESTAMP_SIZE + ID_SIZE
FINGERPRINT_SIZE: Final = 16

MAX_TIMESTAMP: Final = 2**64 - 2
"""The highest timestamp of an item; the one after it stands for infinity."""
START: Final = bytes(TIMESTAMP_SIZE)
INFINITY: Final = b"\xff" * TIMESTAMP_SIZE

_MAX_VARINT_SIZE = 10
_SEVEN_BITS = 0x7F
_MORE = 0x80
_SMALL_VARINTS = tuple(bytes([number]) for number in range(_MORE))


def item_key(timestamp: int, id: bytes) -> bytes:
    """The key of an item; raises `InvalidError` (`negentropy-item`)."""
    if not 0 <= timestamp <= MAX_TIMESTAMP or len(id) != ID_SIZE:
        raise InvalidError("negentropy-item", f"not a timestamp up to 2^64 − 2 and an id of {ID_SIZE} bytes")
    return timestamp.to_bytes(TIMESTAMP_SIZE) + id


def key_id(key: bytes) -> bytes:
    """The id of an item."""
    return key[TIMESTAMP_SIZE:]


def bound_between(before: bytes, after: bytes) -> bytes:
    """The shortest bound that lies above the key `before` and not above the key `after`, which must follow it."""
    if before[:TIMESTAMP_SIZE] != after[:TIMESTAMP_SIZE]:
        return after[:TIMESTAMP_SIZE]
    same = TIMESTAMP_SIZE
    while before[same] == after[same]:
        same += 1
    return after[: same + 1]


def encode_varint(number: int) -> bytes:
    if number < _MORE:
        return _SMALL_VARINTS[number]
    digits = [number & _SEVEN_BITS]
    number >>= 7
    while number:
        digits.append(number & _SEVEN_BITS | _MORE)
        number >>= 7
    digits.reverse()
    return bytes(digits)


class MessageReader:
    """Reads a message from its second byte on. Every method raises `InvalidError` at a place where it is malformed."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 1
        self._timestamp = 0
        self._bound = START

    @property
    def at_end(self) -> bool:
        return self._at >= len(self._data)

    def varint(self) -> int:
        """An integer below 2^64."""
        data, at = self._data, self._at
        number = 0
        for place in range(at, min(at + _MAX_VARINT_SIZE, len(data))):
            byte = data[place]
            number = number << 7 | byte & _SEVEN_BITS
            if byte < _MORE:
                if number > MAX_TIMESTAMP + 1:
                    break
                self._at = place + 1
                return number
        raise self._malformed("an integer is cut off or exceeds 64 bits")

    def take(self, count: int) -> bytes:
        """Exactly `count` bytes; nothing is set aside for them before it is known that they are there."""
        taken = self._data[self._at : self._at + count]
        if len(taken) < count:
            raise self._malformed(f"{len(taken)} bytes where {count} are announced")
        self._at += count
        return taken

    def bound(self) -> bytes:
        """The upper bound of the next range. Bounds never fall, and nothing comes after infinity."""
        if self._bound == INFINITY:
            raise self._malformed("a range begins at infinity")
        step = self.varint()
        length = self.varint()
        if length > ID_SIZE:
            raise self._malformed(f"a bound has {length} bytes of an id, which is {ID_SIZE} long")
        prefix = self.take(length)
        if step == 0:
            self._bound = INFINITY
            return INFINITY
        self._timestamp += step - 1
        if self._timestamp > MAX_TIMESTAMP:
            raise self._malformed("a timestamp exceeds 64 bits")
        bound = self._timestamp.to_bytes(TIMESTAMP_SIZE) + prefix
        # Trailing zeros make no difference to where a bound lies, but they do to a comparison of bytes.
        if bound < self._bound and bound.ljust(KEY_SIZE, b"\0") < self._bound.ljust(KEY_SIZE, b"\0"):
            raise self._malformed("a range ends before it begins")
        self._bound = bound
        return bound

    def ids(self) -> list[bytes]:
        """The payload of a list."""
        count = self.varint()
        data = self.take(count * ID_SIZE)
        return [data[at : at + ID_SIZE] for at in range(0, len(data), ID_SIZE)]

    def _malformed(self, cause: str) -> InvalidError:
        return InvalidError("negentropy", cause, place=f"byte {self._at} of a Negentropy message")


class MessageWriter:
    """Builds a message of at most `limit` bytes (0: any size).

    Ranges are added in order. `skip` only notes that there is nothing to say up to a bound; the range is written when
    something follows. One that does not fit is not added, and the writer must then be closed with `finish`, for which
    room is always left.
    """

    _HEAD = 48
    """No bound with its mode and count is longer: 10 + 1 + 32 bytes, and 1 + 3."""
    _TAIL = 2 * _HEAD + FINGERPRINT_SIZE
    """Room for a skipped range and the fingerprint of the rest."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._parts = [bytes([VERSION])]
        self._size = 1
        self._timestamp = 0
        self._skipped: bytes | None = None

    def room_for_ids(self) -> int:
        """How many ids a list still has room for, whatever its bound."""
        if not self._limit:
            return MAX_TIMESTAMP
        heads = 2 * self._HEAD  # of this list, and of a skipped range before it
        return max(0, (self._limit - self._TAIL - heads - self._size) // ID_SIZE)

    def skip(self, bound: bytes) -> None:
        self._skipped = bound

    def add(self, bound: bytes, mode: int, payload: bytes) -> bool:
        """Add a range; returns False if it does not fit."""
        timestamp = self._timestamp
        head = b"" if self._skipped is None else self._encode_bound(self._skipped) + _SMALL_VARINTS[SKIP]
        part = head + self._encode_bound(bound) + _SMALL_VARINTS[mode] + payload
        if self._limit and self._size + len(part) + self._TAIL > self._limit:
            self._timestamp = timestamp
            return False
        self._skipped = None
        self._parts.append(part)
        self._size += len(part)
        return True

    def finish(self, bound: bytes = INFINITY, rest: bytes | None = None) -> bytes:
        """The message; with `rest` at its end, the fingerprint from the last range or skip up to `bound`."""
        if rest is not None:
            self._limit = 0
            self.add(bound, FINGERPRINT, rest)
        return b"".join(self._parts)

    def _encode_bound(self, bound: bytes) -> bytes:
        if bound == INFINITY:
            return b"\0\0"
        timestamp = int.from_bytes(bound[:TIMESTAMP_SIZE])
        step = timestamp - self._timestamp
        self._timestamp = timestamp
        return encode_varint(step + 1) + _SMALL_VARINTS[len(bound) - TIMESTAMP_SIZE] + bound[TIMESTAMP_SIZE:]
