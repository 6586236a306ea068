"""The provider's durable counters of delegated calls.

One record per link with a counted caveat, under the id of the chain's root and then its own, so that the counters of a
root lie together: they are bounded per root, and whoever was granted the right to delegate under one cannot use up the
room of another. There are at most as many roots as the provider and the publishers it listens to have delegations in
the catalog, which their quotas bound. A record goes when its link has expired.

A call is counted on each of its links in turn, before it is journalled as running. Every record remembers the latest
calls that it counted, so that a call that a crash stopped half-way, and that the journal takes up again, is counted on
the rest and not twice on the first. Only if more than `RECENT_CALLS` others are counted on a link in between would it
count twice, and a grant then ends a call early: never late.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from bnw.invoke.authority.usage import MAX_MINUTES, Usage
from bnw.objects.authority import Delegation
from bnw.objects.fields import CONTENT_ID, TIME, array, integer, read_fields, record, spec, write_fields
from bnw.objects.signed import SignedObject
from bnw.store.interface import Store
from bnw.wire.cbor import decode_map, encode
from bnw.wire.content_id import CONTENT_ID_SIZE, ContentId
from bnw.wire.errors import InvalidError, LocalError
from bnw.wire.limits import KIB

MAX_COUNTERS_PER_ROOT = 4096
RECENT_CALLS = 64
MAX_ENTRY = 16 * KIB
PAGE = 1000


@dataclass(frozen=True, slots=True)
class MinuteCount:
    """Calls in one minute, counted since the Unix epoch."""

    count: int = spec(integer(1))
    minute: int = spec(integer())


@dataclass(frozen=True, slots=True)
class Counter:
    """What one link was used for; `expires` is the link's own, `recent` the latest calls, the newest last."""

    TABLE: ClassVar[str] = "delegation-usage"

    calls: int = spec(integer())
    expires: int = spec(TIME)
    minutes: tuple[MinuteCount, ...] = spec(array(record(MinuteCount), 0, MAX_MINUTES))
    recent: tuple[ContentId, ...] = spec(array(CONTENT_ID, 0, RECENT_CALLS))

    @property
    def usage(self) -> Usage:
        return Usage(self.calls, tuple((entry.minute, entry.count) for entry in self.minutes))

    def with_call(self, call: ContentId, now: int, *, by_the_hour: bool) -> Counter:
        usage = self.usage.with_call(now, by_the_hour=by_the_hour)
        return replace(
            self,
            calls=usage.calls,
            minutes=tuple(MinuteCount(count, minute) for minute, count in usage.minutes),
            recent=(*self.recent, call)[-RECENT_CALLS:],
        )


class UsageLedger:
    """See the module docstring. Not safe against itself: the caller holds a lock from `read` to the end of `count`."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._held: dict[ContentId, int] = {}
        """How many counters a root has, for roots that were counted under since the start."""

    async def read(self, root: ContentId, links: Collection[ContentId]) -> dict[ContentId, Counter]:
        """The counters of those `links` that have one. Raises `LocalError` (`store-damaged`)."""
        found = {}
        for link in links:
            data = await self._store.get_record(Counter.TABLE, root + link)
            if data is not None:
                found[link] = _decode(data, link)
        return found

    async def count(
        self,
        root: ContentId,
        links: Sequence[SignedObject],
        counters: Mapping[ContentId, Counter],
        call: ContentId,
        now: int,
    ) -> None:
        """Count `call` on `links`, whose `counters` were just read, durably.

        Raises `InvalidError` (`counters-full`), and counts nothing, if the root has no room for new counters.
        """
        new = sum(link.id not in counters for link in links)
        if new and await self._held_under(root) + new > MAX_COUNTERS_PER_ROOT:
            raise InvalidError(
                "counters-full",
                f"the provider counts the calls of {MAX_COUNTERS_PER_ROOT:,} delegations under this root already",
                place=root.hex(),
                cure="ask the root's issuer for a delegation of your own, or wait until others expire",
            )
        for link in links:
            body = link.body
            assert isinstance(body, Delegation)
            counter = counters.get(link.id) or Counter(0, body.expires, (), ())
            by_the_hour = body.caveats.max_calls_per_hour is not None
            data = encode(write_fields(counter.with_call(call, now, by_the_hour=by_the_hour)))
            await self._store.put_record(Counter.TABLE, root + link.id, data)
            if link.id not in counters:
                self._held[root] += 1

    async def remove_expired(self, now: int) -> int:
        """Drop the counters of links that have expired, which no chain can use again; returns how many."""
        removed = 0
        after: bytes | None = None
        while True:
            page = await self._store.list_records(Counter.TABLE, after=after, limit=PAGE)
            for key, data in page:
                if now >= _decode(data, ContentId(key[CONTENT_ID_SIZE:])).expires:
                    await self._store.delete_record(Counter.TABLE, key)
                    removed += 1
            if len(page) < PAGE:
                break
            after = page[-1][0]
        if removed:
            self._held.clear()
        return removed

    async def _held_under(self, root: ContentId) -> int:
        if root not in self._held:
            held, after = 0, bytes(root)
            while True:
                page = await self._store.list_records(Counter.TABLE, after=after, limit=PAGE)
                under = [key for key, _ in page if key.startswith(root)]
                held += len(under)
                if len(under) < PAGE:
                    break
                after = under[-1]
            self._held[root] = held
        return self._held[root]


def _decode(data: bytes, link: ContentId) -> Counter:
    try:
        return Counter(**read_fields(Counter, decode_map(data, max_size=MAX_ENTRY), "counter"))
    except InvalidError as error:
        raise LocalError(
            "store-damaged",
            f"the counter of a delegation cannot be read: {error.cause}",
            place=link.hex(),
            cure="ask for a new delegation; calls under this one are refused",
        ) from error
