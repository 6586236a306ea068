"""What this node wants and has not got yet, kept in the store, so that a restart goes on where a pull was cut short.

The list is written before the first of its objects is asked for and again when a pull has ended. In between it may name
objects that have arrived; they are sorted out when it is read. An id that nobody delivers is dropped after an hour. If
it is still somewhere, reconciliation will find it again.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar, Final

from bnw.objects.fields import TIME, raw_bytes, spec
from bnw.objects.message import Message, read_message
from bnw.store.interface import Store
from bnw.store.limits import MAX_RECORD
from bnw.sync.protocol import MAX_WANTED
from bnw.wire.cbor import decode_map, encode
from bnw.wire.content_id import CONTENT_ID_SIZE, ContentId
from bnw.wire.errors import InvalidError
from bnw.wire.limits import HOUR

logger = logging.getLogger(__name__)

WANT_TABLE: Final = "sync-wants"
WANT_LIFETIME: Final = 1 * HOUR


@dataclass(frozen=True, slots=True)
class _WantRecord(Message):
    TYPE: ClassVar[str] = "wants-1"
    ids: bytes = spec(raw_bytes(0, MAX_WANTED * CONTENT_ID_SIZE))
    """One after the other."""
    saved: int = spec(TIME)


class WantList:
    """The wanted ids of one scope, at most `MAX_WANTED`, oldest first. Times are milliseconds since the Unix epoch."""

    def __init__(self, store: Store, scope: str) -> None:
        self._store = store
        self._key = scope.encode()
        self._wanted: dict[ContentId, int] = {}
        self._is_loaded = False

    async def load(self, now: int) -> None:
        """Read what an earlier run has left. Does nothing after the first time. Raises `LocalError`."""
        if self._is_loaded:
            return
        data = await self._store.get_record(WANT_TABLE, self._key)
        left: list[ContentId] = []
        saved = now
        if data is not None:
            try:
                record = read_message(decode_map(data, max_size=MAX_RECORD), _WantRecord)
            except InvalidError as error:
                # Losing it costs one more reconciliation; stopping for it would cost the node.
                logger.error("the list of wanted objects cannot be read and is begun anew: %s", error)
            else:
                ends = range(CONTENT_ID_SIZE, len(record.ids) + 1, CONTENT_ID_SIZE)
                left = [ContentId(record.ids[end - CONTENT_ID_SIZE : end]) for end in ends]
                saved = record.saved
        missing = await self._store.missing_objects(left)
        if not self._is_loaded:
            self._is_loaded = True
            self.add(missing, saved)

    def ids(self, now: int) -> list[ContentId]:
        """What is wanted now."""
        # Oldest first, so the ones to drop stand together at the beginning.
        for id, added in list(self._wanted.items()):
            if now - added < WANT_LIFETIME:
                break
            del self._wanted[id]
        return list(self._wanted)

    def add(self, ids: Iterable[ContentId], now: int) -> None:
        """Want further objects. What exceeds the bound is not remembered."""
        for id in ids:
            if len(self._wanted) >= MAX_WANTED:
                return
            self._wanted.setdefault(id, now)

    def drop(self, ids: Iterable[ContentId]) -> None:
        """Want these no longer."""
        for id in ids:
            self._wanted.pop(id, None)

    async def save(self, now: int) -> None:
        """Make the list durable. Raises `LocalError`."""
        if not self._wanted:
            await self._store.delete_record(WANT_TABLE, self._key)
            return
        record = _WantRecord(b"".join(self._wanted), now)
        await self._store.put_record(WANT_TABLE, self._key, encode(record.to_wire()))
