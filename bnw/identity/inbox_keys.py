"""X25519 inbox keys (RFC 7748): what others encrypt to, and when each is valid (design section 7).

A key is used for new mail between `not_before` and `not_after`. Its private half is kept for a grace period beyond
that, so that mail sent in time but delivered late still opens, and is then dropped for good.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from nacl.bindings import crypto_scalarmult_base

from bnw.wire.errors import InvalidError
from bnw.wire.limits import CLOCK_SKEW, DAY

INBOX_KEY_SIZE = 32
INBOX_KEY_PERIOD = 7 * DAY
"""How long a key is used for new mail."""
INBOX_KEY_GRACE = 14 * DAY
"""How long its private half is kept after that."""
RENEW_BEFORE = 1 * DAY
"""A successor is made this long before a key ends, so that identity records have time to spread."""


@dataclass(frozen=True, slots=True)
class InboxKey:
    """A private inbox key and its validity, in milliseconds since the Unix epoch."""

    private: bytes = field(repr=False)
    not_before: int
    not_after: int

    def __post_init__(self) -> None:
        if len(self.private) != INBOX_KEY_SIZE:
            raise InvalidError("key-size", f"an X25519 key is {INBOX_KEY_SIZE} bytes, not {len(self.private)}")
        if self.not_before >= self.not_after:
            raise InvalidError("key-validity", "an inbox key ends before it begins")

    @property
    def public(self) -> bytes:
        return crypto_scalarmult_base(self.private)


def new_inbox_key(private: bytes, now: int) -> InboxKey:
    """A key for new mail from now on. It begins a clock skew early, so that peers with slow clocks may use it."""
    return InboxKey(private, now - CLOCK_SKEW, now + INBOX_KEY_PERIOD)


def needs_successor(keys: Iterable[InboxKey], now: int) -> bool:
    """Whether a new key is due: none is usable now and for a while yet.

    A key that begins in the future does not count. It was made while this clock ran ahead, and may be years away.
    """
    return not any(key.not_before <= now < key.not_after - RENEW_BEFORE for key in keys)


def without_expired(keys: Iterable[InboxKey], now: int) -> tuple[InboxKey, ...]:
    """The keys whose grace period is not over."""
    return tuple(key for key in keys if now <= key.not_after + INBOX_KEY_GRACE)
