"""The store on disk: a directory with `index.sqlite` (objects, records, small blobs) and `blobs/` (larger ones).

    async with SqliteStore.open(directory) as store:
        outcomes = await store.put_objects(objects, now=environment.now_ms())

Nothing here blocks the event loop: writes go through one thread that commits them in groups (`writer`), reads through a
few (`readers`), files through a few more. Who opens a directory makes sure that nobody else has it open.
"""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator, Callable, Collection, Iterator, Sequence
from contextlib import ExitStack, asynccontextmanager, contextmanager
from pathlib import Path
from typing import TypeVar

import anyio
import anyio.to_thread

from bnw.identity.keys import IdentityId
from bnw.objects.signed import SignedObject
from bnw.store.blob_files import BLOBS_NAME, PRIVATE_DIRECTORY_MODE, BlobFiles
from bnw.store.database import DATABASE_NAME, open_reader, open_writer
from bnw.store.faults import closed, translated
from bnw.store.interface import PutOutcome, Quota, ScopeItem, ScopeSummary, ScopeWatcher, StoreStatistics
from bnw.store.limits import (
    BLOB_THREADS,
    INLINE_BLOB,
    MAX_REMOVED_AT_ONCE,
    READERS,
    check_blob_size,
    check_record_size,
    check_unexpired,
)
from bnw.store.readers import Readers
from bnw.store.scopes import scope_key
from bnw.store.sqlite_index import SqliteIndex
from bnw.store.writer import GroupCommitWriter
from bnw.wire.content_id import ContentId, content_id

T = TypeVar("T")


class SqliteStore:
    """A `Store` (see `bnw.store.interface`) in a directory. Make one with `open`."""

    def __init__(self, writer: GroupCommitWriter, readers: Readers, files: BlobFiles, quota: Quota) -> None:
        self._writer = writer
        self._readers = readers
        self._files = files
        self._touched: set[ContentId] | None = None
        self._file_threads = anyio.CapacityLimiter(BLOB_THREADS)
        self._quota = quota
        self._closed = False

    @classmethod
    @asynccontextmanager
    async def open(cls, directory: Path, quota: Quota | None = None) -> AsyncIterator[SqliteStore]:
        """Open the store in `directory`, making both if they are missing.

        Raises `LocalError`: `store-version` (made by a newer BNW or another program), `store-damaged`, `disk-full` or
        `store-failed`. Leaving finishes the writes that are waiting; calls after that are `store-failed`.
        """
        connections, files = await anyio.to_thread.run_sync(_open_files, directory)
        path = directory / DATABASE_NAME
        writer = GroupCommitWriter(connections[0], path)
        readers = Readers(connections[1:], path)
        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(writer.run)
                store = cls(writer, readers, files, quota or Quota())
                try:
                    yield store
                finally:
                    store._closed = True
                    with anyio.CancelScope(shield=True):
                        await writer.stop()
                        await readers.stop()
                        await anyio.to_thread.run_sync(_close, connections)
        except BaseExceptionGroup as group:
            # Somebody who writes `except LocalError` around a store need not know that it has a task group inside.
            if len(group.exceptions) == 1:
                raise group.exceptions[0] from None
            raise

    @property
    def transactions(self) -> int:
        """How many write transactions there have been, for measurements."""
        return self._writer.transactions

    async def put_objects(self, objects: Sequence[SignedObject], *, now: int) -> list[PutOutcome]:
        check_unexpired(objects, now)
        if not objects:
            return []
        batch, quota = tuple(objects), self._quota
        return await self._writer.write(lambda index, _: index.put(batch, now, quota), size=_size(batch))

    async def get_object(self, id: ContentId) -> SignedObject | None:
        return await self._readers.read(lambda ask: ask.get_object(id))

    async def held_in_slot(self, slot: bytes) -> SignedObject | None:
        return await self._readers.read(lambda ask: ask.held_in_slot(slot))

    async def list_objects(
        self,
        *,
        kind: str,
        now: int,
        signer: IdentityId | None = None,
        after: ContentId | None = None,
        limit: int = 1000,
    ) -> list[SignedObject]:
        return await self._readers.read(lambda ask: ask.list_objects(kind, signer, now, after, limit))

    async def scope_ids(
        self, scope: str, *, now: int, after: ContentId | None = None, limit: int = 1024
    ) -> list[ContentId]:
        key = scope_key(scope)
        return await self._readers.read(lambda ask: ask.scope_ids(key, now, after, limit))

    async def scope_summary(self, scope: str, *, now: int) -> ScopeSummary:
        key = scope_key(scope)
        return await self._readers.read(lambda ask: ask.scope_summary(key, now))

    async def scope_items(
        self, scope: str, *, now: int, after: ContentId | None = None, limit: int = 1024
    ) -> list[ScopeItem]:
        key = scope_key(scope)
        return await self._readers.read(lambda ask: ask.scope_items(key, now, after, limit))

    async def expired_items(self, scope: str, *, now: int) -> list[ScopeItem]:
        key = scope_key(scope)
        return await self._readers.read(lambda ask: ask.expired_items(key, now))

    async def scope_objects(self, scope: str, ids: Collection[ContentId], *, now: int) -> list[bytes]:
        key = scope_key(scope)
        return await self._readers.read(lambda ask: ask.scope_objects(key, ids, now))

    def watch_scope(self, scope: str, watcher: ScopeWatcher) -> Callable[[], None]:
        return self._writer.watchers.watch(scope, watcher)

    async def missing_objects(self, ids: Collection[ContentId]) -> list[ContentId]:
        return await self._readers.read(lambda ask: ask.missing_objects(ids))

    async def equivocations(self, *, limit: int = 1000) -> list[tuple[SignedObject, SignedObject]]:
        return await self._readers.read(lambda ask: ask.equivocations(limit))

    async def remove_expired(self, *, now: int) -> int:
        removed = 0
        while True:
            some = await self._writer.write(lambda index, _: index.remove_some_expired(now))
            removed += some
            if some < MAX_REMOVED_AT_ONCE:
                return removed

    async def delete_inbox_objects(self, ids: Collection[ContentId]) -> int:
        return await self._writer.write(lambda index, _: index.remove_from_inboxes(ids))

    async def list_blobs(self, *, after: ContentId | None = None, limit: int = 1000) -> list[tuple[ContentId, int]]:
        small = await self._readers.read(lambda ask: ask.list_small_blobs(after, limit))
        large = await self._in_file_thread(lambda: self._files.list(after, limit))
        return sorted({*small, *large})[:limit]

    @contextmanager
    def collecting(self) -> Iterator[None]:
        self._touched = set()
        try:
            yield
        finally:
            self._touched = None

    async def collect_blob(self, id: ContentId) -> bool:
        touched = self._touched
        assert touched is not None
        # Asked again at the very moment of deletion: whoever puts the blob has touched it before it waits for its turn.
        if await self._writer.write(lambda _, connection: id not in touched and _delete_small_blob(connection, id)):
            return True
        return await self._in_file_thread(lambda: self._files.delete(id, unless=lambda: id in touched))

    def _touch(self, id: ContentId) -> None:
        if self._touched is not None:
            self._touched.add(id)

    async def put_blob(self, data: bytes) -> ContentId:
        check_blob_size(data)
        id = content_id(data)
        self._touch(id)
        if len(data) > INLINE_BLOB:
            return await self._in_file_thread(lambda: self._files.put(data))
        await self._writer.write(lambda _, connection: _put_small_blob(connection, id, data), size=len(data))
        return id

    async def get_blob(self, id: ContentId) -> bytes | None:
        self._touch(id)
        small = await self._readers.read(lambda ask: ask.small_blob(id))
        return await self._in_file_thread(lambda: self._files.get(id)) if small is None else small

    async def blob_size(self, id: ContentId) -> int | None:
        self._touch(id)
        small = await self._readers.read(lambda ask: ask.small_blob_size(id))
        return await self._in_file_thread(lambda: self._files.size(id)) if small is None else small

    async def delete_blob(self, id: ContentId) -> bool:
        if await self._writer.write(lambda _, connection: _delete_small_blob(connection, id)):
            return True
        return await self._in_file_thread(lambda: self._files.delete(id))

    async def put_record(self, table: str, key: bytes, value: bytes) -> None:
        await self.put_record_with_objects(table, key, value, (), now=0)

    async def get_record(self, table: str, key: bytes) -> bytes | None:
        return await self._readers.read(lambda ask: ask.get_record(table, key))

    async def delete_record(self, table: str, key: bytes) -> bool:
        return await self._writer.write(lambda _, connection: _delete_record(connection, table, key))

    async def list_records(
        self, table: str, *, after: bytes | None = None, limit: int = 1000
    ) -> list[tuple[bytes, bytes]]:
        return await self._readers.read(lambda ask: ask.list_records(table, after, limit))

    async def put_record_with_objects(
        self, table: str, key: bytes, value: bytes, objects: Sequence[SignedObject], *, now: int
    ) -> list[PutOutcome]:
        check_record_size(value)
        check_unexpired(objects, now)
        batch, quota = tuple(objects), self._quota

        def write(index: SqliteIndex, connection: sqlite3.Connection) -> list[PutOutcome]:
            connection.execute("REPLACE INTO records VALUES (?, ?, ?)", (table, key, value))
            return index.put(batch, now, quota)

        return await self._writer.write(write, size=len(value) + _size(batch))

    async def statistics(self) -> StoreStatistics:
        objects, object_bytes, small, small_bytes = await self._readers.read(lambda ask: ask.counts())
        files, file_bytes = await self._in_file_thread(self._files.count)
        return StoreStatistics(objects, object_bytes, small + files, small_bytes + file_bytes)

    async def _in_file_thread(self, work: Callable[[], T]) -> T:
        if self._closed:
            raise closed(self._files.directory)
        return await anyio.to_thread.run_sync(work, limiter=self._file_threads)


def _open_files(directory: Path) -> tuple[list[sqlite3.Connection], BlobFiles]:
    """In a thread: the writing connection followed by the reading ones, and the blob files."""
    with translated(directory):
        directory.mkdir(PRIVATE_DIRECTORY_MODE, parents=True, exist_ok=True)
    path = directory / DATABASE_NAME
    blobs = directory / BLOBS_NAME
    with ExitStack() as opened:
        # The database is made before the place for blobs, so blobs without a database mean that it got lost.
        connections = [open_writer(path, must_exist=blobs.exists())]
        opened.callback(connections[0].close)
        files = BlobFiles(blobs)
        for _ in range(READERS):
            connections.append(open_reader(path))
            opened.callback(connections[-1].close)
        opened.pop_all()
    return connections, files


def _close(connections: Sequence[sqlite3.Connection]) -> None:
    """In a thread: the writer last, which then writes the log back into the database."""
    for connection in reversed(connections):
        connection.close()


def _size(objects: Sequence[SignedObject]) -> int:
    return sum(len(obj.data) for obj in objects)


def _put_small_blob(connection: sqlite3.Connection, id: ContentId, data: bytes) -> None:
    row = connection.execute("SELECT data FROM blobs WHERE id = ?", (id,)).fetchone()
    if row is None or row[0] != data:  # not the same means damaged, which putting it again heals
        connection.execute("REPLACE INTO blobs VALUES (?, ?)", (id, data))


def _delete_small_blob(connection: sqlite3.Connection, id: ContentId) -> bool:
    return connection.execute("DELETE FROM blobs WHERE id = ?", (id,)).rowcount > 0


def _delete_record(connection: sqlite3.Connection, table: str, key: bytes) -> bool:
    return connection.execute("DELETE FROM records WHERE kind = ? AND key = ?", (table, key)).rowcount > 0
