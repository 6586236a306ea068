"""The provider's durable memory of calls: what was accepted, what was begun, and what came of it.

Only what `bnw.invoke.machines.provider` calls durable is written. An entry stays until its invocation has expired and
no clock within the accepted skew can think otherwise; from then on a replay is refused for its age. A call that was
refused by the cheap checks is remembered too, or a later delivery of it might run after its receipt said `rejected`;
its entry is all that it costs, and how many there are is bounded.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from bnw.identity.keys import IdentityId
from bnw.invoke.machines.provider import ACCEPTED, FINISHED, RUNNING
from bnw.objects.fields import (
    BOOLEAN,
    CONTENT_ID,
    IDENTITY,
    TIME,
    choice,
    integer,
    optional,
    raw_bytes,
    read_fields,
    spec,
    write_fields,
)
from bnw.objects.signed import SignedObject, trusted_object
from bnw.store.interface import Store
from bnw.wire.cbor import decode_map, encode
from bnw.wire.content_id import ContentId
from bnw.wire.errors import InvalidError, LocalError
from bnw.wire.limits import CLOCK_SKEW, KIB

MAX_ENTRY = 4 * KIB
MAX_RECEIPT = 2 * KIB
MAX_REFUSED = 10_000
"""Refused calls that are remembered: at most 40 MB. Beyond that a call is refused without a receipt, to come again."""
MAX_REFUSED_PER_IDENTITY = 100
PAGE = 1000


@dataclass(frozen=True, slots=True)
class CallEntry:
    """One call as the provider remembers it; times in milliseconds since the Unix epoch. `receipt` is the object.

    `idempotent` is whether the handler was declared to be when the call was accepted.
    """

    TABLE: ClassVar[str] = "served-calls"

    capability: ContentId = spec(CONTENT_ID)
    expires: int = spec(TIME)
    idempotent: bool = spec(BOOLEAN)
    receipt: bytes | None = spec(optional(raw_bytes(1, MAX_RECEIPT)))
    received: int = spec(TIME)
    refused: bool = spec(BOOLEAN)
    requester: IdentityId = spec(IDENTITY)
    runs: int = spec(integer(0))
    started: int | None = spec(optional(TIME))
    state: str = spec(choice(ACCEPTED, RUNNING, FINISHED))

    @property
    def signed_receipt(self) -> SignedObject | None:
        return None if self.receipt is None else trusted_object(self.receipt)


class CallJournal:
    """`load` must have returned before anything else is asked."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._refused: Counter[IdentityId] = Counter()
        self._refused_in_all = 0

    async def load(self) -> list[tuple[ContentId, CallEntry]]:
        """Calls that were accepted or begun and not finished, ordered by id. Counts the refused ones."""
        self._refused.clear()
        self._refused_in_all = 0
        unfinished = []
        for id, entry in await self._all():
            if entry.state != FINISHED:
                unfinished.append((id, entry))
            self._count(entry, 1)
        return unfinished

    async def get(self, invocation: ContentId) -> CallEntry | None:
        data = await self._store.get_record(CallEntry.TABLE, invocation)
        return None if data is None else _decode(invocation, data)

    def has_room_for_refusal(self, requester: IdentityId) -> bool:
        return self._refused[requester] < MAX_REFUSED_PER_IDENTITY and self._refused_in_all < MAX_REFUSED

    async def put(
        self, invocation: ContentId, entry: CallEntry, objects: Sequence[SignedObject] = (), *, now: int
    ) -> None:
        """Remember `entry`, and the objects that belong to it, before returning."""
        data = encode(write_fields(entry))
        await self._store.put_record_with_objects(CallEntry.TABLE, invocation, data, objects, now=now)
        self._count(entry, 1)

    def _count(self, entry: CallEntry, change: int) -> None:
        if entry.refused:
            self._refused[entry.requester] += change
            self._refused_in_all += change
            if not self._refused[entry.requester]:
                del self._refused[entry.requester]

    async def remove_expired(self, now: int) -> None:
        """Forget calls whose invocation has expired by every clock within the skew."""
        for id, entry in await self._all():
            if now >= entry.expires + CLOCK_SKEW and entry.state == FINISHED:
                await self._store.delete_record(CallEntry.TABLE, id)
                self._count(entry, -1)

    async def _all(self) -> list[tuple[ContentId, CallEntry]]:
        found: list[tuple[ContentId, CallEntry]] = []
        while True:
            after = found[-1][0] if found else None
            page = await self._store.list_records(CallEntry.TABLE, after=after, limit=PAGE)
            found += [(ContentId(key), _decode(key, value)) for key, value in page]
            if len(page) < PAGE:
                return found


def _decode(key: bytes, data: bytes) -> CallEntry:
    try:
        return CallEntry(**read_fields(CallEntry, decode_map(data, max_size=MAX_ENTRY), "call"))
    except InvalidError as error:
        raise LocalError(
            "store-damaged",
            f"the entry of a call cannot be read: {error.cause}",
            place=key.hex(),
            cure="restore the home from a backup; calls made before that will not run",
        ) from error
