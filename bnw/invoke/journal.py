"""The provider's durable memory of calls: what was accepted, what was begun, and what came of it.

A call is `accepted` before its delivery is confirmed, `running` before the handler starts, and `finished` together with
its receipt. A node that finds `running` after a crash knows that the handler may have run, and never runs it again.

    accepted ──► running ──► finished
        └────────────────────►┘        refused before it ran, or interrupted by a crash
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from bnw.objects.fields import CONTENT_ID, TIME, choice, optional, read_fields, spec, write_fields
from bnw.objects.signed import SignedObject
from bnw.store.interface import Store
from bnw.wire.cbor import decode_map, encode
from bnw.wire.content_id import ContentId
from bnw.wire.limits import KIB

ACCEPTED = "accepted"
RUNNING = "running"
FINISHED = "finished"
MAX_ENTRY = 1 * KIB
PAGE = 1000


@dataclass(frozen=True, slots=True)
class CallEntry:
    """One call as the provider remembers it; times in milliseconds since the Unix epoch."""

    TABLE: ClassVar[str] = "calls"

    expires: int = spec(TIME)
    receipt: ContentId | None = spec(optional(CONTENT_ID))
    received: int = spec(TIME)
    started: int | None = spec(optional(TIME))
    state: str = spec(choice(ACCEPTED, RUNNING, FINISHED))


class CallJournal:
    def __init__(self, store: Store) -> None:
        self._store = store

    async def get(self, invocation: ContentId) -> CallEntry | None:
        data = await self._store.get_record(CallEntry.TABLE, invocation)
        return None if data is None else _decode(data)

    async def put(
        self, invocation: ContentId, entry: CallEntry, objects: Sequence[SignedObject] = (), *, now: int
    ) -> None:
        """Remember `entry`, and the objects that belong to it, before returning."""
        data = encode(write_fields(entry))
        await self._store.put_record_with_objects(CallEntry.TABLE, invocation, data, objects, now=now)

    async def unfinished(self) -> list[tuple[ContentId, CallEntry]]:
        """Calls that were accepted or begun and not finished, ordered by id."""
        return [(id, entry) for id, entry in await self._all() if entry.state != FINISHED]

    async def remove_expired(self, now: int) -> None:
        """Forget calls whose invocation has expired: a replay of one is refused for its age."""
        for id, entry in await self._all():
            if now >= entry.expires and entry.state == FINISHED:
                await self._store.delete_record(CallEntry.TABLE, id)

    async def _all(self) -> list[tuple[ContentId, CallEntry]]:
        found: list[tuple[ContentId, CallEntry]] = []
        while True:
            after = found[-1][0] if found else None
            page = await self._store.list_records(CallEntry.TABLE, after=after, limit=PAGE)
            found += [(ContentId(key), _decode(value)) for key, value in page]
            if len(page) < PAGE:
                return found


def _decode(data: bytes) -> CallEntry:
    return CallEntry(**read_fields(CallEntry, decode_map(data, max_size=MAX_ENTRY), "call"))
