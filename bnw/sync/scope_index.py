"""The live objects of one scope as Negentropy items, in memory beside the store.

An item's timestamp is the `created` field of the signed body, in milliseconds: every kind of object has it, only the
signer chooses it, and it is the same on every node. It says nothing about when the object came here, and nothing relies
on that: an object with an old date that arrives today is compared like any other.

The index is filled from the store once and then kept true by the store's own reports of changes. What has expired is
taken out before every session, whether the store has removed it or not, so that two nodes with the same clock compare
the same sets. Memory: about 100 bytes for each object of the scope.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import anyio
import anyio.lowlevel

from bnw.store.interface import ScopeChange, ScopeItem, ScopeSummary, Store
from bnw.store.scopes import reduce_sum
from bnw.sync.negentropy.coding import item_key
from bnw.sync.negentropy.index import BlockedIndex
from bnw.wire.content_id import ContentId

LOADED_AT_ONCE: Final = 1024
"""Items that are read from the store and put into the index before other tasks get their turn (3 ms)."""


async def snapshot(store: Store, scope: str, *, now: int) -> BlockedIndex:
    """The items of a scope that are live at `now`, read once. Raises `LocalError`.

    For inboxes, which are small, many, and seldom compared. The store's quota for an inbox bounds it.
    """
    items = BlockedIndex()
    after: ContentId | None = None
    while page := await store.scope_items(scope, now=now, after=after, limit=LOADED_AT_ONCE):
        for item in page:
            items.add(_key(item))
        after = page[-1].id
        await anyio.lowlevel.checkpoint()
    return items


class ScopeIndex:
    """The items of `scope` in `store`."""

    def __init__(self, store: Store, scope: str) -> None:
        self.scope = scope
        self._store = store
        self._items = BlockedIndex()
        self._loading = anyio.Lock()
        self._is_loaded = False
        self._removed_meanwhile: set[bytes] = set()
        store.watch_scope(scope, self._change)

    async def at(self, now: int) -> BlockedIndex:
        """The items that are live at `now`. Later changes show in it too. Raises `LocalError`."""
        if not self._is_loaded:
            async with self._loading:
                await self._load(now)
        for item in await self._store.expired_items(self.scope, now=now):
            self._items.remove(_key(item))
        return self._items

    async def summary(self, now: int) -> ScopeSummary:
        """The same as the store's own `scope_summary`, without asking it. Raises `LocalError`."""
        items = await self.at(now)
        return ScopeSummary(len(items), reduce_sum(items.sum_below(len(items))))

    async def _load(self, now: int) -> None:
        if self._is_loaded:
            return
        after: ContentId | None = None
        while page := await self._store.scope_items(self.scope, now=now, after=after, limit=LOADED_AT_ONCE):
            for item in page:
                # The page may have been read before a removal that has been reported since.
                if (key := _key(item)) not in self._removed_meanwhile:
                    self._items.add(key)
            after = page[-1].id
            await anyio.lowlevel.checkpoint()
        self._is_loaded = True
        self._removed_meanwhile.clear()

    def _change(self, changes: Sequence[ScopeChange]) -> None:
        for item, added in changes:
            key = _key(item)
            if added:
                self._items.add(key)
            else:
                self._items.remove(key)
                if not self._is_loaded:
                    self._removed_meanwhile.add(key)


def _key(item: ScopeItem) -> bytes:
    return item_key(item.created, item.id)
