"""The database of a real node, read beside it, with the questions that are asked of a simulated store."""

from __future__ import annotations

from collections.abc import Callable, Container
from contextlib import closing
from pathlib import Path
from typing import TypeVar

import anyio
import anyio.to_thread

from bnw.identity.keys import IdentityId
from bnw.objects.signed import SignedObject
from bnw.store.database import open_reader
from bnw.store.interface import ScopeSummary
from bnw.store.scopes import scope_key
from bnw.store.sqlite_queries import Queries
from bnw.wire.content_id import ContentId

T = TypeVar("T")

NOTHING = ScopeSummary(0, bytes(32))


class RealStore:
    """Also there while the node is not. Methods raise `LocalError` as the store's do."""

    def __init__(self, path: Path, threads: anyio.CapacityLimiter) -> None:
        self._path = path
        self._threads = threads
        self.foreign = 0
        """Catalog objects by nobody in the scenario, at the last look."""

    async def scope_ids(self, scope: str, *, now: int, limit: int) -> list[ContentId]:
        return await self._read(lambda ask: ask.scope_ids(scope_key(scope), now, None, limit), [])

    async def scope_summary(self, scope: str, *, now: int) -> ScopeSummary:
        return await self._read(lambda ask: ask.scope_summary(scope_key(scope), now), NOTHING)

    async def equivocations(self, *, limit: int) -> list[tuple[SignedObject, SignedObject]]:
        return await self._read(lambda ask: ask.equivocations(limit), [])

    async def get_object(self, id: ContentId) -> SignedObject | None:
        return await self._read(lambda ask: ask.get_object(id), None)

    def count_foreign(self, signers: Container[IdentityId]) -> int:
        return self.foreign

    async def _read(self, question: Callable[[Queries], T], default: T) -> T:
        def read() -> T:
            if not self._path.exists():
                return default
            with closing(open_reader(self._path)) as connection:
                connection.execute("BEGIN")
                return question(Queries(connection, self._path))

        return await anyio.to_thread.run_sync(read, abandon_on_cancel=True, limiter=self._threads)
