"""A store in the process, for the simulator: no threads, no files, and the same order of everything in every run.

Its indexes are plain sorted lists. At the size of a simulated node (some thousands of objects) finding the place takes
a microsecond and moving the tail less, an empty list costs 56 bytes, and nothing beyond the standard library is needed.

Methods never suspend, so a call costs no trip through a scheduler. A loop that only awaits a `MemoryStore` therefore
never lets other tasks run.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from typing import Any

from bnw.identity.keys import IdentityId
from bnw.objects.rules import is_catalog_object, is_expired, recipients_of, sequence_of, slot_of
from bnw.objects.signed import SignedObject
from bnw.store.interface import (
    PutOutcome,
    Quota,
    ScopeChange,
    ScopeItem,
    ScopeSummary,
    ScopeWatcher,
    StoreStatistics,
)
from bnw.store.limits import check_blob_size, check_record_size, check_unexpired
from bnw.store.placement import Held, Usage, put_object
from bnw.store.scopes import id_sum, scope_key, scope_keys_of, summary
from bnw.store.watching import KeyedChange, ScopeWatchers
from bnw.wire.content_id import ContentId, content_id


class MemoryStore:
    """A `Store` (see `bnw.store.interface`) whose contents last as long as the object. Never raises `LocalError`."""

    def __init__(self, quota: Quota | None = None) -> None:
        self._quota = quota or Quota()
        self._index = _MemoryIndex()
        self._watchers = ScopeWatchers()
        self._blobs: dict[ContentId, bytes] = {}
        self._blob_bytes = 0
        self._touched: set[ContentId] | None = None
        self._records: dict[str, dict[bytes, bytes]] = {}

    async def put_objects(self, objects: Sequence[SignedObject], *, now: int) -> list[PutOutcome]:
        check_unexpired(objects, now)
        outcomes = [put_object(self._index, obj, now=now, quota=self._quota) for obj in objects]
        self._tell()
        return outcomes

    async def get_object(self, id: ContentId) -> SignedObject | None:
        return self._index.find(id)

    async def held_in_slot(self, slot: bytes) -> SignedObject | None:
        return self._index.slots.get(slot)

    async def list_objects(
        self,
        *,
        kind: str,
        now: int,
        signer: IdentityId | None = None,
        after: ContentId | None = None,
        limit: int = 1000,
    ) -> list[SignedObject]:
        index = self._index
        rows = index.by_kind.after((kind,), after) if signer is None else index.by_signer.after((signer, kind), after)
        objects = (index.objects[row[-1]] for row in rows)
        return list(islice((obj for obj in objects if not is_expired(obj.body, now)), limit))

    async def scope_ids(
        self, scope: str, *, now: int, after: ContentId | None = None, limit: int = 1024
    ) -> list[ContentId]:
        index = self._index
        ids = (row[-1] for row in index.by_scope.after((scope_key(scope),), after))
        return list(islice((id for id in ids if not is_expired(index.objects[id].body, now)), limit))

    async def scope_summary(self, scope: str, *, now: int) -> ScopeSummary:
        key = scope_key(scope)
        count, total = self._index.totals.get(key, (0, 0))
        return summary(count, total, [row[-1] for row in self._index.by_scope_expiry.expired((key,), now)])

    async def scope_items(
        self, scope: str, *, now: int, after: ContentId | None = None, limit: int = 1024
    ) -> list[ScopeItem]:
        ids = await self.scope_ids(scope, now=now, after=after, limit=limit)
        return [_item(self._index.objects[id]) for id in ids]

    async def expired_items(self, scope: str, *, now: int) -> list[ScopeItem]:
        expired = self._index.by_scope_expiry.expired((scope_key(scope),), now)
        return sorted((_item(self._index.objects[row[-1]]) for row in expired), key=lambda item: item.id)

    async def scope_objects(self, scope: str, ids: Collection[ContentId], *, now: int) -> list[bytes]:
        key = scope_key(scope)
        found = (obj for id in ids if (obj := self._index.objects.get(id)) is not None)
        return [obj.data for obj in found if key in scope_keys_of(obj.body) and not is_expired(obj.body, now)]

    def watch_scope(self, scope: str, watcher: ScopeWatcher) -> Callable[[], None]:
        return self._watchers.watch(scope, watcher)

    def _tell(self) -> None:
        changes, self._index.changes = self._index.changes, []
        self._watchers.tell(changes)

    async def missing_objects(self, ids: Collection[ContentId]) -> list[ContentId]:
        index = self._index
        return [id for id in ids if not index.is_known(id) and not index.is_superseded(id)]

    async def equivocations(self, *, limit: int = 1000) -> list[tuple[SignedObject, SignedObject]]:
        proofs = (proof for mine in self._index.proofs.values() for proof in mine.values())
        pairs = sorted(((proof.winner, proof.loser) for proof in proofs), key=lambda pair: pair[0].id)
        return pairs[:limit]

    async def remove_expired(self, *, now: int) -> int:
        removed = self._index.remove_expired(now)
        self._tell()
        return removed

    async def delete_inbox_objects(self, ids: Collection[ContentId]) -> int:
        held = [id for id in dict.fromkeys(ids) if (obj := self._index.objects.get(id)) and recipients_of(obj.body)]
        for id in held:
            self._index.remove(id)
        self._tell()
        return len(held)

    async def list_blobs(self, *, after: ContentId | None = None, limit: int = 1000) -> list[tuple[ContentId, int]]:
        ids = sorted(id for id in self._blobs if after is None or id > after)[:limit]
        return [(id, len(self._blobs[id])) for id in ids]

    @contextmanager
    def collecting(self) -> Iterator[None]:
        self._touched = set()
        try:
            yield
        finally:
            self._touched = None

    async def collect_blob(self, id: ContentId) -> bool:
        assert self._touched is not None
        return id not in self._touched and await self.delete_blob(id)

    def _touch(self, id: ContentId) -> None:
        if self._touched is not None:
            self._touched.add(id)

    async def put_blob(self, data: bytes) -> ContentId:
        check_blob_size(data)
        id = content_id(data)
        self._touch(id)
        if id not in self._blobs:
            self._blobs[id] = bytes(data)
            self._blob_bytes += len(data)
        return id

    async def get_blob(self, id: ContentId) -> bytes | None:
        self._touch(id)
        obj = self._index.find(id)
        return self._blobs.get(id) if obj is None else obj.data

    async def blob_size(self, id: ContentId) -> int | None:
        data = await self.get_blob(id)
        return None if data is None else len(data)

    async def delete_blob(self, id: ContentId) -> bool:
        data = self._blobs.pop(id, None)
        self._blob_bytes -= 0 if data is None else len(data)
        return data is not None

    async def put_record(self, table: str, key: bytes, value: bytes) -> None:
        check_record_size(value)
        self._records.setdefault(table, {})[key] = value

    async def get_record(self, table: str, key: bytes) -> bytes | None:
        return self._records.get(table, {}).get(key)

    async def delete_record(self, table: str, key: bytes) -> bool:
        return self._records.get(table, {}).pop(key, None) is not None

    async def list_records(
        self, table: str, *, after: bytes | None = None, limit: int = 1000
    ) -> list[tuple[bytes, bytes]]:
        records = sorted(self._records.get(table, {}).items())
        return list(islice((item for item in records if after is None or item[0] > after), limit))

    async def put_record_with_objects(
        self, table: str, key: bytes, value: bytes, objects: Sequence[SignedObject], *, now: int
    ) -> list[PutOutcome]:
        check_record_size(value)
        outcomes = await self.put_objects(objects, now=now)
        await self.put_record(table, key, value)
        return outcomes

    def all_bytes(self) -> Iterator[bytes]:
        """Every byte string that is kept, whatever for: what somebody who searches the whole disk would find."""
        yield from self._blobs.values()
        yield from self._index.all_bytes()
        for table in self._records.values():
            yield from table.keys()
            yield from table.values()

    async def statistics(self) -> StoreStatistics:
        return StoreStatistics(len(self._index.objects), self._index.object_bytes, len(self._blobs), self._blob_bytes)


def _item(obj: SignedObject) -> ScopeItem:
    return ScopeItem(obj.body.created, obj.id)


class _SortedRows:
    """A sorted list of rows, each a tuple whose last field is an object id."""

    __slots__ = ("_rows",)

    def __init__(self) -> None:
        self._rows: list[tuple[Any, ...]] = []

    def add(self, row: tuple[Any, ...]) -> None:
        insort(self._rows, row)

    def remove(self, row: tuple[Any, ...]) -> None:
        del self._rows[bisect_left(self._rows, row)]

    def after(self, prefix: tuple[object, ...], id: ContentId | None) -> Iterator[tuple[Any, ...]]:
        """Rows that begin with `prefix`, in order, whose id follows `id`."""
        rows, length = self._rows, len(prefix)
        # A prefix sorts before every row that it begins, so without an id this is the place of the first of them.
        start = bisect_right(rows, prefix if id is None else (*prefix, id))
        for number in range(start, len(rows)):
            row = rows[number]
            if row[:length] != prefix:
                return
            yield row

    def expired(self, prefix: tuple[object, ...], now: int) -> list[tuple[Any, ...]]:
        """Rows (*prefix, expires, id) that had expired at `now`."""
        return self._rows[bisect_left(self._rows, prefix) : bisect_left(self._rows, (*prefix, now + 1))]


@dataclass(frozen=True, slots=True)
class _Proof:
    winner: SignedObject
    loser: SignedObject

    @property
    def until(self) -> int:
        return max(self.winner.body.expires, self.loser.body.expires)


class _MemoryIndex:
    """The `ObjectIndex` of a `MemoryStore`."""

    def __init__(self) -> None:
        self.objects: dict[ContentId, SignedObject] = {}
        self.object_bytes = 0
        self.changes: list[KeyedChange] = []
        """Changes in scopes that nobody has been told of."""
        self.slots: dict[bytes, SignedObject] = {}
        self.totals: dict[bytes, tuple[int, int]] = {}
        """Per scope: how many objects, and the sum of their ids."""
        self.proofs: dict[IdentityId, dict[tuple[bytes, int], _Proof]] = {}
        """Per signer, by slot and sequence."""
        self.by_kind = _SortedRows()
        self.by_signer = _SortedRows()
        self.by_scope = _SortedRows()
        self.by_scope_expiry = _SortedRows()
        self._by_expiry = _SortedRows()
        self._by_signer_expiry = _SortedRows()
        self._usage: dict[IdentityId, Usage] = {}
        self._proof_objects: dict[ContentId, SignedObject] = {}
        self._superseded: dict[ContentId, IdentityId] = {}
        self._superseded_of: dict[IdentityId, dict[ContentId, int]] = {}
        """Per signer, oldest first: when the object expires."""

    def find(self, id: ContentId) -> SignedObject | None:
        return self.objects.get(id) or self._proof_objects.get(id)

    def all_bytes(self) -> Iterator[bytes]:
        for obj in (*self.objects.values(), *self._proof_objects.values()):
            yield obj.data

    def is_known(self, id: ContentId) -> bool:
        return id in self.objects or id in self._proof_objects

    def is_superseded(self, id: ContentId) -> bool:
        return id in self._superseded

    def holder(self, slot: bytes) -> Held | None:
        obj = self.slots.get(slot)
        return None if obj is None else Held(obj.id, sequence_of(obj.body), obj.body.expires, len(obj.data))

    def usage(self, signer: IdentityId) -> Usage:
        return self._usage.get(signer, Usage(0, 0))

    def add(self, obj: SignedObject, slot: bytes | None) -> None:
        self.objects[obj.id] = obj
        if slot is not None:
            self.slots[slot] = obj
        for rows, row in self._rows_of(obj):
            rows.add(row)
        self._count(obj, 1)

    def remove(self, id: ContentId) -> None:
        obj = self.objects.pop(id)
        slot = slot_of(obj)
        if slot is not None:
            del self.slots[slot]
        for rows, row in self._rows_of(obj):
            rows.remove(row)
        self._count(obj, -1)

    def _rows_of(self, obj: SignedObject) -> Iterator[tuple[_SortedRows, tuple[Any, ...]]]:
        expires = obj.body.expires
        yield self.by_kind, (obj.kind, obj.id)
        yield self.by_signer, (obj.signer, obj.kind, obj.id)
        yield self._by_expiry, (expires, obj.id)
        yield self._by_signer_expiry, (obj.signer, expires, obj.id)
        for scope in scope_keys_of(obj.body):
            yield self.by_scope, (scope, obj.id)
            yield self.by_scope_expiry, (scope, expires, obj.id)

    def _count(self, obj: SignedObject, change: int) -> None:
        size = change * len(obj.data)
        self.object_bytes += size
        number = change * id_sum((obj.id,))
        told = ScopeChange(_item(obj), added=change > 0)
        for scope in scope_keys_of(obj.body):
            self.changes.append((scope, told))
            count, total = self.totals.pop(scope, (0, 0))
            if count + change:
                self.totals[scope] = (count + change, total + number)
        if is_catalog_object(obj.body):
            used = self._usage.pop(obj.signer, Usage(0, 0))
            if used.objects + change:
                self._usage[obj.signer] = Usage(used.objects + change, used.bytes + size)

    def remove_expired(self, now: int) -> int:
        expired = self._by_expiry.expired((), now)
        for row in expired:
            self.remove(row[-1])
        for signer in [*self.proofs, *self._superseded_of]:
            self._remove_memories_of(signer, now)
        return len(expired)

    def remove_expired_of(self, signer: IdentityId, now: int) -> None:
        for row in self._by_signer_expiry.expired((signer,), now):
            self.remove(row[-1])
        self._remove_memories_of(signer, now)

    def _remove_memories_of(self, signer: IdentityId, now: int) -> None:
        for id in [id for id, expires in self._superseded_of.get(signer, {}).items() if now >= expires]:
            self._forget_superseded(id)
        proofs = self.proofs.get(signer, {})
        for key, proof in list(proofs.items()):
            if now >= proof.until:
                del proofs[key], self._proof_objects[proof.winner.id], self._proof_objects[proof.loser.id]
        if not proofs:
            self.proofs.pop(signer, None)

    def superseded_count(self, signer: IdentityId) -> int:
        return len(self._superseded_of.get(signer, ()))

    def remember_superseded(self, id: ContentId, signer: IdentityId, expires: int) -> None:
        self._superseded[id] = signer
        self._superseded_of.setdefault(signer, {})[id] = expires

    def forget_oldest_superseded(self, signer: IdentityId) -> None:
        self._forget_superseded(next(iter(self._superseded_of[signer])))

    def _forget_superseded(self, id: ContentId) -> None:
        signer = self._superseded.pop(id)
        del self._superseded_of[signer][id]
        if not self._superseded_of[signer]:
            del self._superseded_of[signer]

    def proof_count(self, signer: IdentityId) -> int:
        return len(self.proofs.get(signer, ()))

    def has_proof(self, signer: IdentityId, slot: bytes, sequence: int) -> bool:
        return (slot, sequence) in self.proofs.get(signer, ())

    def add_proof(self, slot: bytes, held: Held, new: SignedObject, *, new_wins: bool) -> None:
        old = self.objects[held.id]
        proof = _Proof(new, old) if new_wins else _Proof(old, new)
        self.proofs.setdefault(new.signer, {})[slot, held.sequence] = proof
        for obj in (new, old):
            self._proof_objects[obj.id] = obj
