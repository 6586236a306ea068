"""A store in memory with a disk's troubles: writes that take time, a full disk, and what a crash takes away.

The store contract says that what was given to a put survives once the put has returned. A disk that keeps the contract
loses, in a crash, only writes that had not returned, and not all of those: one may be durable a moment earlier. A disk
that lies, as some do, loses more: `after_crash(unsynced)`.
A torn write is the same as a lost one here, because the real store's transactions make it so.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Container, Coroutine, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import anyio

from bnw.identity.keys import IdentityId
from bnw.objects.rules import is_catalog_object
from bnw.objects.signed import SignedObject
from bnw.store.faults import disk_full
from bnw.store.interface import PutOutcome
from bnw.store.memory import MemoryStore
from bnw.wire.content_id import ContentId

T = TypeVar("T")

OnPut = Callable[[SignedObject, PutOutcome], None]


def _tell_nobody(obj: SignedObject, outcome: PutOutcome) -> None:
    return None


@dataclass(slots=True)
class Disk:
    """`write_time` is how many seconds a write takes; a store that `can_crash` keeps a log to be restored from.

    `is_full` may be changed at any time. `on_put` is told of every object and what became of it.
    """

    write_time: float = 0.0
    can_crash: bool = True
    is_full: bool = False
    on_put: OnPut = field(default=_tell_nobody)


@dataclass(frozen=True, slots=True)
class _Write:
    at: float
    apply: Callable[[SimulatedStore], None]


DURABLE_AFTER = 0.75
"""Of the time of a write. A crash after that finds it on the disk, although nobody has been told that it is there."""


class SimulatedStore(MemoryStore):
    """A `MemoryStore` on a `Disk`."""

    def __init__(self, disk: Disk) -> None:
        super().__init__()
        self._disk = disk
        self._log: list[_Write] = []

    def after_crash(self, unsynced: float) -> SimulatedStore:
        """A new store with what survives a crash now: all but the last `unsynced` seconds."""
        restored = SimulatedStore(self._disk)
        self._disk = Disk(can_crash=False)
        horizon = anyio.current_time() - unsynced
        for write in self._log:
            # Rounding must not lose, to a disk that lies by nothing, what was written in this very moment.
            if write.at <= horizon or not unsynced:
                write.apply(restored)
                restored._log.append(write)
        return restored

    def backup(self) -> SimulatedStore:
        """A second store with what this one holds now, as a copy of its files. Needs a disk that `can_crash`."""
        copied = SimulatedStore(self._disk)
        for write in self._log:
            write.apply(copied)
            copied._log.append(write)
        return copied

    def count_foreign(self, signers: Container[IdentityId]) -> int:
        """Catalog objects by anybody but `signers`."""
        return sum(is_catalog_object(obj.body) and obj.signer not in signers for obj in self._index.objects.values())

    async def put_objects(self, objects: Sequence[SignedObject], *, now: int) -> list[PutOutcome]:
        await self._write()
        outcomes = self._put_objects(objects, now)
        await self._written()
        return outcomes

    async def put_blob(self, data: bytes) -> ContentId:
        await self._write()
        id = self._put_blob(data)
        await self._written()
        return id

    async def delete_blob(self, id: ContentId) -> bool:
        await self._write()
        there = self._delete_blob(id)
        await self._written()
        return there

    async def put_record(self, table: str, key: bytes, value: bytes) -> None:
        await self._write()
        self._put_record(table, key, value)
        await self._written()

    async def delete_record(self, table: str, key: bytes) -> bool:
        await self._write()
        there = self._delete_record(table, key)
        await self._written()
        return there

    async def put_record_with_objects(
        self, table: str, key: bytes, value: bytes, objects: Sequence[SignedObject], *, now: int
    ) -> list[PutOutcome]:
        await self._write()
        outcomes = self._put_objects(objects, now)
        self._put_record(table, key, value)
        await self._written()
        return outcomes

    async def remove_expired(self, *, now: int) -> int:
        removed = _run(super().remove_expired(now=now))
        if removed:
            self._keep(lambda store: _run(MemoryStore.remove_expired(store, now=now)))
        return removed

    async def delete_inbox_objects(self, ids: Collection[ContentId]) -> int:
        await self._write()
        self._keep(lambda store: _run(MemoryStore.delete_inbox_objects(store, ids)))
        count = _run(super().delete_inbox_objects(ids))
        await self._written()
        return count

    async def _write(self) -> None:
        if self._disk.is_full:
            raise disk_full(Path("simulated"), "the scenario says so")
        if self._disk.write_time:
            await anyio.sleep(DURABLE_AFTER * self._disk.write_time)

    async def _written(self) -> None:
        if self._disk.write_time:
            await anyio.sleep((1 - DURABLE_AFTER) * self._disk.write_time)

    def _keep(self, apply: Callable[[SimulatedStore], object]) -> None:
        if self._disk.can_crash:
            self._log.append(_Write(anyio.current_time(), lambda store: _forget(apply(store))))

    def _put_objects(self, objects: Sequence[SignedObject], now: int) -> list[PutOutcome]:
        outcomes = _run(super().put_objects(objects, now=now))
        for obj, outcome in zip(objects, outcomes, strict=True):
            self._disk.on_put(obj, outcome)
        kept = [obj for obj, outcome in zip(objects, outcomes, strict=True) if outcome is not PutOutcome.KNOWN]
        if kept:
            self._keep(lambda store: _run(MemoryStore.put_objects(store, kept, now=now)))
        return outcomes

    def _put_blob(self, data: bytes) -> ContentId:
        self._keep(lambda store: _run(MemoryStore.put_blob(store, data)))
        return _run(super().put_blob(data))

    def _delete_blob(self, id: ContentId) -> bool:
        self._keep(lambda store: _run(MemoryStore.delete_blob(store, id)))
        return _run(super().delete_blob(id))

    def _put_record(self, table: str, key: bytes, value: bytes) -> None:
        self._keep(lambda store: _run(MemoryStore.put_record(store, table, key, value)))
        _run(super().put_record(table, key, value))

    def _delete_record(self, table: str, key: bytes) -> bool:
        self._keep(lambda store: _run(MemoryStore.delete_record(store, table, key)))
        return _run(super().delete_record(table, key))


def _run(call: Coroutine[Any, Any, T]) -> T:
    """The result of a method of `MemoryStore`, none of which ever waits."""
    try:
        call.send(None)
    except StopIteration as stop:
        result: T = stop.value
        return result
    call.close()
    raise AssertionError("a store in memory waits for nothing")


def _forget(result: object) -> None:
    return None
