"""What a transfer knows about one source: what it was asked, what it lacks, how long it may still take. Sans-I/O.

Patience is a bucket of seconds. It holds `GRACE` seconds at first; waiting for the source empties it, and every byte
and every answer fills it again, up to `GRACE`. So a source may pause, may be slow to start, and may be as slow as
`MIN_RATE`, but one that sends a byte now and then runs out of patience as surely as one that sends nothing.
"""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass, field
from typing import Final

from bnw.objects.mail import CHUNK_OVERHEAD
from bnw.transport.interface import PeerId
from bnw.wire.content_id import ContentId
from bnw.wire.errors import InvalidError
from bnw.wire.limits import KIB, MAX_BLOB, PAYLOAD_CHUNK

WINDOW: Final = PAYLOAD_CHUNK + CHUNK_OVERHEAD
"""Bytes that one source may have been asked for and that are not stored yet. One blob may always be asked for, so of
payload chunks it is one at a time, and a crash costs at most that one; of small blobs it is many."""
MAX_ASKED: Final = 128
"""Blobs that one source may have been asked for and that are not stored yet."""
MAX_PROBES: Final = 16
"""A source that has given nothing yet is asked for one blob at a time, and after so many absent ones no more."""

GRACE: Final = 10.0
"""Seconds of patience that a source has at first and at most."""
MIN_RATE: Final = 16 * KIB
"""Bytes that buy a second of patience. A whole answer buys one as well, since a small one is mostly round trip."""

SILENCE: Final = 2.0
"""Seconds after which another source is asked as well for what one that has given nothing yet is silent about. The
patience with it goes on, but whoever waits for a small blob need not wait for the end of that."""

FIRST_REST: Final = 0.5
LONGEST_REST: Final = 30.0
"""Seconds that a source rests which is busy or failed: doubled each time it does so again, from the first to the
longest. One that ran out of patience rests longest at once."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """A blob to be fetched, and between how many bytes it must have. The size of a payload chunk is known exactly."""

    id: ContentId
    most: int = MAX_BLOB
    least: int = 0

    def check_size(self, size: int) -> None:
        """Raise `InvalidError` (`blob-size`) unless a blob of `size` bytes may be the wanted one."""
        if not self.least <= size <= self.most:
            allowed = f"{self.most:,}" if self.least == self.most else f"{self.least:,} to {self.most:,}"
            raise InvalidError("blob-size", f"the blob has {size:,} bytes, where {allowed} are allowed")


@dataclass(slots=True)
class Source:
    """A peer that may have some of the blobs. Blobs go by their number in the plan."""

    peer: PeerId
    asked: deque[int] = field(default_factory=deque)
    """What it has yet to answer, in the order in which it was asked."""
    asked_bytes: int = 0
    storing: int = 0
    """Blobs that it gave and that are not durable yet."""
    storing_bytes: int = 0
    absent: set[int] = field(default_factory=set)
    is_useful: bool = False
    """It gave a blob, so it is worth asking for several at a time."""
    is_away: bool = False
    dropped: str | None = None
    """Why it is asked no more."""
    rest_until: float = 0.0
    _rests: int = 0
    _patience: float = GRACE
    quiet_since: float = 0.0
    """When it last sent something, or was asked for the first of what it has yet to answer."""
    deadline: float = 0.0
    """When its patience is used up, while it has something to answer."""

    @property
    def is_hopeless(self) -> bool:
        return self.dropped is not None or (not self.is_useful and len(self.absent) >= MAX_PROBES)

    def is_ready(self, now: float) -> bool:
        return not (self.is_hopeless or self.is_away or now < self.rest_until)

    def silent_from(self) -> float:
        """When it counts as silent; never, if it has nothing to answer or has given something before."""
        return self.quiet_since + SILENCE if self.asked and not self.is_useful else math.inf

    @property
    def in_flight(self) -> int:
        return len(self.asked) + self.storing

    def has_room(self, size: int) -> bool:
        if not self.in_flight:
            return True
        fits = self.asked_bytes + self.storing_bytes + size <= WINDOW
        return self.is_useful and fits and self.in_flight < MAX_ASKED

    def ask(self, number: int, size: int, now: float) -> None:
        if not self.asked:
            self.deadline = now + self._patience
            self.quiet_since = now
        self.asked.append(number)
        self.asked_bytes += size

    def progressed(self, size: int, now: float) -> None:
        """`size` bytes of the answer that is due have come."""
        self.quiet_since = now
        self.deadline = min(self.deadline + size / MIN_RATE, now + GRACE)

    def answered(self, size: int, now: float) -> int:
        """The answer that was due has come; `size` is what was set aside for it. Returns the number."""
        self.progressed(MIN_RATE, now)
        number = self.asked.popleft()
        self.asked_bytes -= size
        if not self.asked:
            self._patience = self.deadline - now
        return number

    def gave(self, size: int) -> None:
        self.is_useful = True
        self._rests = 0
        self.storing += 1
        self.storing_bytes += size

    def stored(self, size: int) -> None:
        self.storing -= 1
        self.storing_bytes -= size

    def rest(self, now: float, *, longest: bool) -> None:
        seconds = LONGEST_REST if longest else min(FIRST_REST * 2**self._rests, LONGEST_REST)
        self._rests = min(self._rests + 1, 16)  # far beyond the longest rest already
        self.rest_until = max(self.rest_until, now + seconds)
        self._patience = GRACE

    def returned(self) -> None:
        """It is connected again, and what hindered it before may be over."""
        self.is_away = False
        self.rest_until = 0.0
        self._patience = GRACE

    def give_up_asked(self) -> list[int]:
        """Forget what it was asked and has not answered; returns those."""
        numbers = list(self.asked)
        self.asked.clear()
        self.asked_bytes = 0
        return numbers
