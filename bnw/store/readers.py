"""A few connections that read beside the writer, each in a worker thread while it is used.

Under SQLite's write-ahead log a reader sees the last commit before it began, is never blocked by the writer and never
blocks it.
"""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

import anyio
import anyio.to_thread

from bnw.store.faults import closed, translated
from bnw.store.sqlite_queries import Queries

T = TypeVar("T")


class Readers:
    """Shares reading connections to the database at `path` among callers."""

    def __init__(self, connections: Sequence[sqlite3.Connection], path: Path) -> None:
        self._free = list(connections)
        self._threads = anyio.CapacityLimiter(len(connections))
        self._path = path
        self._stopping = False

    async def read(self, question: Callable[[Queries], T]) -> T:
        """Answer a question from one snapshot of the database. Raises `LocalError`."""
        if self._stopping:
            raise closed(self._path)
        return await anyio.to_thread.run_sync(self._ask, question, limiter=self._threads)

    def _ask(self, question: Callable[[Queries], T]) -> T:
        if self._stopping:
            raise closed(self._path)
        connection = self._free.pop()  # there is one, because there are as many connections as threads
        try:
            with translated(self._path):
                connection.execute("BEGIN")
                try:
                    return question(Queries(connection, self._path))
                finally:
                    with contextlib.suppress(sqlite3.Error):  # an error before this one is worth more
                        connection.execute("ROLLBACK")
        finally:
            self._free.append(connection)

    async def stop(self) -> None:
        """Refuse further questions, and wait for those that are being answered."""
        self._stopping = True
        for _ in range(int(self._threads.total_tokens)):
            await self._threads.acquire_on_behalf_of(object())
