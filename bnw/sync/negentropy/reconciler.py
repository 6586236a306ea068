"""The two sides of a reconciliation, as functions of the messages that they get.

    initiator = Initiator(index)                       responder = Responder(other_index)
    message = initiator.start()              ──▶       answer = responder.answer(message)
    step = initiator.take(answer)            ◀──
    while step.message is not None: the same again, with step.message
    step.have, step.need: what is missing over there and over here, as far as this answer tells

Neither side bounds how many messages there are; whoever carries them must (`bnw.sync.protocol.MAX_ROUNDS`).
"""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Final

from bnw.sync.negentropy.coding import (
    FINGERPRINT,
    FINGERPRINT_SIZE,
    ID_LIST,
    ID_SIZE,
    INFINITY,
    SKIP,
    VERSION,
    VERSIONS,
    MessageReader,
    MessageWriter,
    bound_between,
    encode_varint,
    key_id,
)
from bnw.sync.negentropy.index import OrderedIndex
from bnw.wire.errors import InvalidError
from bnw.wire.limits import KIB

BUCKETS: Final = 16
"""Into how many ranges a differing one is cut at most. What JavaScript and C++ implementations do as well."""
LISTED: Final = 4
"""A differing range of up to this many items is answered with their ids."""
SMALL_BUCKET: Final = 4
"""No range is cut into smaller pieces than about this.

Measured with 100,000 items and 50 differences on either side: 67 KB in 3 round trips, against 75 KB with 6 and 3. Lists
of up to 31 items, as other implementations send them, cost 110 KB in 2 round trips.
"""
MIN_FRAME_LIMIT: Final = 4 * KIB
"""Below this, a message might have no room to make any progress."""
MAX_MESSAGE: Final = 256 * KIB
"""What a message may measure that comes in, unless the caller says otherwise."""

_MODULUS = 1 << (8 * ID_SIZE)


@dataclass(frozen=True, slots=True)
class Step:
    """What an initiator makes of an answer."""

    message: bytes | None
    """The next message to send, or None when everything has been compared."""
    have: list[bytes]
    """Ids that the initiator has and the responder lacks, in order."""
    need: list[bytes]
    """Ids that the responder has and the initiator lacks, in the order of the responder's items.

    These are the responder's words. A false one may repeat from one answer to the next, name what is not there, or name
    what the initiator has under another timestamp.
    """


def range_fingerprint(total: int, count: int) -> bytes:
    """The fingerprint of `count` items whose ids have the sum `total`, reduced or not."""
    data = (total % _MODULUS).to_bytes(ID_SIZE, "little") + encode_varint(count)
    return hashlib.sha256(data).digest()[:FINGERPRINT_SIZE]


class _Side(ABC):
    """What both sides do alike."""

    def __init__(self, index: OrderedIndex, *, frame_limit: int = 0, max_message: int = MAX_MESSAGE) -> None:
        """`frame_limit` is how many bytes an outgoing message may have (0: any), `max_message` an incoming one."""
        if frame_limit and frame_limit < MIN_FRAME_LIMIT:
            raise InvalidError("negentropy-limit", f"a frame limit below {MIN_FRAME_LIMIT:,} bytes allows no progress")
        self._index = index
        self._frame_limit = frame_limit
        self._max_message = max_message
        self._last_sum = (0, 0)

    def _process(self, message: bytes) -> bytes:
        """Answer every range of `message`, as far as there is room."""
        reader = MessageReader(message)
        writer = MessageWriter(self._frame_limit)
        lower = 0
        while not reader.at_end:
            bound = reader.bound()
            upper = max(lower, self._index.rank(bound))
            stopped = self._process_range(reader, writer, lower, upper, bound)
            if stopped is not None:
                end = _last_bound(reader, bound)
                return writer.finish(end, self._fingerprint(stopped, self._index.rank(end)))
            lower = upper
        return writer.finish()

    def _process_range(
        self, reader: MessageReader, writer: MessageWriter, lower: int, upper: int, bound: bytes
    ) -> int | None:
        """Read a range's mode and payload, and answer it. Returns the rank from which on there was no room to."""
        mode = reader.varint()
        if mode == SKIP:
            writer.skip(bound)
            return None
        if mode == FINGERPRINT:
            if reader.take(FINGERPRINT_SIZE) == self._fingerprint(lower, upper):
                writer.skip(bound)
                return None
            return self._split(writer, lower, upper, bound)
        if mode == ID_LIST:
            return self._process_list(reader.ids(), writer, lower, upper, bound)
        raise InvalidError("negentropy", f"a Negentropy message has a range of mode {mode}, which is not known")

    @abstractmethod
    def _process_list(
        self, theirs: list[bytes], writer: MessageWriter, lower: int, upper: int, bound: bytes
    ) -> int | None:
        """Take the ids that the other side lists for a range. Returns as `_process_range` does."""

    def _split(self, writer: MessageWriter, lower: int, upper: int, bound: bytes) -> int | None:
        """Say what is in a range that differs, piece by piece. Returns the rank of the first piece without room."""
        count = upper - lower
        if count <= LISTED:
            return self._list(writer, lower, upper, bound)
        pieces = min(BUCKETS, -(-count // SMALL_BUCKET))
        start = lower
        for number in range(1, pieces + 1):
            end = lower + count * number // pieces
            fingerprint = self._fingerprint(start, end)
            end_bound = bound if end == upper else bound_between(*self._index.keys(end - 1, end + 1))
            if not writer.add(end_bound, FINGERPRINT, fingerprint):
                return start
            start = end
        return None

    def _list(self, writer: MessageWriter, lower: int, upper: int, bound: bytes) -> int | None:
        """Say all ids in a range. Returns the rank of the first one without room."""
        room = writer.room_for_ids()
        end = min(upper, lower + room)
        if end < upper:
            if end == lower:
                return lower
            bound = bound_between(*self._index.keys(end - 1, end + 1))
        keys = self._index.keys(lower, end)
        payload = encode_varint(len(keys)) + b"".join(map(key_id, keys))
        if not writer.add(bound, ID_LIST, payload):
            return lower
        return end if end < upper else None

    def _fingerprint(self, lower: int, upper: int) -> bytes:
        # Ranges follow one another, so the sum below this one is mostly the one that has just been asked for.
        rank, total = self._last_sum
        below = total if rank == lower else self._index.sum_below(lower)
        upto = self._index.sum_below(upper)
        self._last_sum = (upper, upto)
        return range_fingerprint(upto - below, upper - lower)

    def _check_size(self, message: bytes) -> None:
        if len(message) > self._max_message:
            raise InvalidError(
                "negentropy-too-large",
                f"a Negentropy message of {len(message):,} bytes exceeds the limit of {self._max_message:,}",
            )
        if not message or message[0] not in VERSIONS:
            raise InvalidError("negentropy", "these bytes do not begin with a version of Negentropy")
        # The index may have changed since the last message.
        self._last_sum = (0, 0)


def _last_bound(reader: MessageReader, bound: bytes) -> bytes:
    """Where the last range ends about which the message says anything, from one that ends at `bound` on.

    What lies after it has been compared before. A fingerprint over that too, as other implementations send it, would
    have all differences found there compared again whenever a message is cut short.
    """
    last = bound
    while not reader.at_end:
        bound = reader.bound()
        mode = reader.varint()
        if mode == FINGERPRINT:
            reader.take(FINGERPRINT_SIZE)
        elif mode == ID_LIST:
            reader.ids()
        if mode != SKIP:
            last = bound
    return last


class Responder(_Side):
    """Answers messages. It remembers nothing from one to the next, so it can serve one after the other."""

    def answer(self, message: bytes) -> bytes:
        """The answer to one message. To another version it is this one's version byte alone, as the protocol says.

        Raises `InvalidError`: `negentropy` (malformed) or `negentropy-too-large`.
        """
        self._check_size(message)
        if message[0] != VERSION:
            return bytes([VERSION])
        return self._process(message)

    def _process_list(
        self, theirs: list[bytes], writer: MessageWriter, lower: int, upper: int, bound: bytes
    ) -> int | None:
        # Whatever they have, it is for them to compare.
        return self._list(writer, lower, upper, bound)


class Initiator(_Side):
    """Asks, and learns the difference."""

    def __init__(self, index: OrderedIndex, *, frame_limit: int = 0, max_message: int = MAX_MESSAGE) -> None:
        super().__init__(index, frame_limit=frame_limit, max_message=max_message)
        self._have: list[bytes] = []
        self._need: list[bytes] = []

    def start(self) -> bytes:
        """The first message. Starting again begins a new comparison."""
        writer = MessageWriter(self._frame_limit)
        self._last_sum = (0, 0)
        size = len(self._index)
        stopped = self._split(writer, 0, size, INFINITY)
        return writer.finish() if stopped is None else writer.finish(INFINITY, self._fingerprint(stopped, size))

    def take(self, answer: bytes) -> Step:
        """Learn from an answer.

        Raises `InvalidError`: `negentropy` (malformed), `negentropy-version` (the other side speaks another version),
        `negentropy-duplicate` (an id twice in one list) or `negentropy-too-large`.
        """
        self._check_size(answer)
        if answer[0] != VERSION:
            raise InvalidError(
                "negentropy-version", f"the other side speaks version {answer[0] - VERSIONS[0]} of Negentropy, not 1"
            )
        self._have, self._need = [], []
        message = self._process(answer)
        return Step(message if len(message) > 1 else None, self._have, self._need)

    def _process_list(
        self, theirs: list[bytes], writer: MessageWriter, lower: int, upper: int, bound: bytes
    ) -> int | None:
        ours = [key_id(key) for key in self._index.keys(lower, upper)]
        offered = set(theirs)
        if len(offered) != len(theirs):
            raise InvalidError("negentropy-duplicate", "a list of a Negentropy message has an id twice")
        known = set(ours)
        self._have += [id for id in ours if id not in offered]
        self._need += [id for id in theirs if id not in known]
        writer.skip(bound)
        return None
