"""Receipts that have reached neither their requester nor a mailbox of it, to be tried again: durable."""

from __future__ import annotations

from typing import Final

from bnw.objects.rules import is_expired
from bnw.objects.signed import SignedObject
from bnw.store.interface import Store
from bnw.wire.content_id import ContentId

TABLE: Final = "outbox"
RETRY_PERIOD: Final = 30.0
"""Seconds between two attempts."""
MAX_RETRIED: Final = 256
"""Receipts that one round tries again, those with the lowest ids; a requester that asks again gets its own at once."""


class Outbox:
    def __init__(self, store: Store) -> None:
        self._store = store

    async def add(self, receipt: SignedObject) -> None:
        """Remember a receipt that could not be delivered."""
        await self._store.put_record(TABLE, receipt.id, b"")

    async def remove(self, receipt: SignedObject) -> None:
        """It has been delivered after all. Most never were in here."""
        if await self._store.get_record(TABLE, receipt.id) is not None:
            await self._store.delete_record(TABLE, receipt.id)

    async def waiting(self, *, now: int) -> list[SignedObject]:
        """Receipts to be tried again. Those that have expired are forgotten."""
        found: list[SignedObject] = []
        for key, _ in await self._store.list_records(TABLE, limit=MAX_RETRIED):
            receipt = await self._store.get_object(ContentId(key))
            if receipt is None or is_expired(receipt.body, now):
                await self._store.delete_record(TABLE, key)
            else:
                found.append(receipt)
        return found
