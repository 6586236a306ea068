"""Group commit: one thread writes, and writes that wait together are made durable together.

A flush to the disk costs far more than the rows before it. While one transaction is being flushed, further writes
gather; the next transaction takes them all. A write that comes alone is written at once, and a thousand at the same
time need a handful of transactions.

Writes are plain functions of a `SqliteIndex` and a connection. They run in a worker thread, one batch after the other,
so they may read before they write. When a batch fails, it is rolled back and its writes are tried one by one, so that
each caller gets its own error and nobody else's.
"""

from __future__ import annotations

import contextlib
import sqlite3
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Generic, TypeVar, cast

import anyio
import anyio.to_thread

from bnw.store.faults import closed, from_sqlite
from bnw.store.limits import MAX_BATCH_BYTES, MAX_BATCH_WRITES, MAX_WAITING_WRITES
from bnw.store.sqlite_index import SqliteIndex
from bnw.store.watching import KeyedChange, ScopeWatchers

T = TypeVar("T")
WriteFunction = Callable[[SqliteIndex, sqlite3.Connection], T]


class _Write(Generic[T]):
    """A write and, once `done` is set, what became of it."""

    def __init__(self, function: WriteFunction[T], size: int) -> None:
        self.function = function
        self.size = size
        self.done = anyio.Event()
        self.result: T | None = None
        self.error: Exception | None = None


class GroupCommitWriter:
    """Owns the writing connection. `run` must be running in a task for `write` to return."""

    def __init__(self, connection: sqlite3.Connection, path: Path) -> None:
        self._connection = connection
        self._path = path
        self._waiting: deque[_Write[object]] = deque()
        self._room = anyio.Semaphore(MAX_WAITING_WRITES)
        self._thread = anyio.CapacityLimiter(1)
        self._changed = anyio.Event()
        self._stopping = False
        self._stopped = anyio.Event()
        self._committed: list[KeyedChange] = []
        self.watchers = ScopeWatchers()
        """Told of what has been committed, before the callers whose writes it was."""
        self.transactions = 0
        """How many transactions have been tried so far."""

    async def write(self, function: WriteFunction[T], *, size: int = 0) -> T:
        """Run `function` in a transaction, durable when this returns. `size` is about how many bytes it writes.

        Raises what the function raises, with errors of SQLite as `LocalError`. If the caller is cancelled before the
        write is under way it does not happen.
        """
        async with self._room:
            if self._stopping:
                raise closed(self._path)
            write = _Write(function, size)
            self._waiting.append(cast("_Write[object]", write))
            self._changed.set()
            try:
                await write.done.wait()
            except BaseException:
                if write in self._waiting:
                    self._waiting.remove(cast("_Write[object]", write))
                raise
        if write.error is not None:
            raise write.error
        return cast(T, write.result)

    async def run(self) -> None:
        """Write what is waiting until `stop`. Shielded from cancellation: a store is closed in order, by its owner."""
        try:
            with anyio.CancelScope(shield=True):
                while self._waiting or not self._stopping:
                    if self._waiting:
                        await self._write_batch()
                    else:
                        self._changed = anyio.Event()
                        await self._changed.wait()
        finally:
            self._stopping = True
            while self._waiting:
                write = self._waiting.popleft()
                write.error = closed(self._path)
                write.done.set()
            self._stopped.set()

    async def stop(self) -> None:
        """Finish what is waiting, refuse what comes, and end `run`."""
        self._stopping = True
        self._changed.set()
        await self._stopped.wait()

    async def _write_batch(self) -> None:
        batch: list[_Write[object]] = []
        size = 0
        while self._waiting and len(batch) < MAX_BATCH_WRITES and size < MAX_BATCH_BYTES:
            batch.append(self._waiting.popleft())
            size += batch[-1].size
        try:
            await anyio.to_thread.run_sync(self._commit, batch, limiter=self._thread)
            committed, self._committed = self._committed, []
            self.watchers.tell(committed)
        except BaseException:
            for write in batch:
                write.error = closed(self._path)
            raise
        finally:
            for write in batch:
                write.done.set()

    def _commit(self, batch: list[_Write[object]]) -> None:
        """In the thread: one transaction for all, or on failure one for each."""
        error = self._try_to_commit(batch)
        if error is None:
            return
        if len(batch) == 1:
            batch[0].error = error
            return
        for write in batch:
            write.error = self._try_to_commit([write])

    def _try_to_commit(self, batch: list[_Write[object]]) -> Exception | None:
        """Commit the batch, or roll it back and return the error."""
        connection = self._connection
        self.transactions += 1
        try:
            connection.execute("BEGIN IMMEDIATE")
            index = SqliteIndex(connection, self._path)
            for write in batch:
                write.result = write.function(index, connection)
            index.flush()
            connection.execute("COMMIT")
            self._committed += index.changes
        except Exception as error:  # noqa: BLE001 - whatever it is, the callers get it, and the writer goes on
            self._roll_back()
            return from_sqlite(error, self._path) if isinstance(error, sqlite3.Error) else error
        return None

    def _roll_back(self) -> None:
        # Some errors, a full disk among them, make SQLite roll back by itself. Should rolling back fail, the next
        # transaction cannot begin and says so; nothing is committed by mistake.
        if self._connection.in_transaction:
            with contextlib.suppress(sqlite3.Error):
                self._connection.execute("ROLLBACK")
