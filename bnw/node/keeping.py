"""What a node keeps blobs for, and the collection of those that nothing needs (design section 2, store).

A blob is kept as long as somebody gives a reason: it was added by hand, belongs to something that is published,
followed, provided or called, is listed by a payload manifest that is held, or is being fetched. What has no reason is
collected once it has had none for `GRACE`: so whatever is put first and referred to afterwards, such as the chunks of a
payload that is being sealed, has that much time. What is put or read while a collection runs stays
(`Store.collect_blob`).
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from typing import Final

import anyio

from bnw.store.interface import Store
from bnw.wire.content_id import ContentId
from bnw.wire.environment import Environment
from bnw.wire.limits import MINUTE

GRACE: Final = 10 * MINUTE
"""Milliseconds that a blob must have been found unused before it goes."""
PAGE: Final = 1000

Keeper = Callable[[], AsyncIterator[tuple[ContentId, str]]]
"""Gives the blobs that somebody needs, each with the reason in words; in any order, also several times."""


@dataclass(frozen=True, slots=True)
class Collected:
    """What a collection removed, or would, and what is unused and has not been so for long enough."""

    removed: int
    removed_bytes: int
    waiting: int
    waiting_bytes: int


@dataclass(frozen=True, slots=True)
class KeptBlob:
    id: ContentId
    size: int
    reasons: tuple[str, ...]
    unused_since: int | None


class BlobKeeping:
    """The reasons of all `keepers`, which are asked anew each time."""

    def __init__(self, store: Store, environment: Environment, keepers: Sequence[Keeper]) -> None:
        self._store = store
        self._environment = environment
        self._keepers = keepers
        self._unused: dict[ContentId, int] = {}
        """Since when blobs have been found unused. As many as there are blobs at most, about 150 bytes each."""
        self._one_at_a_time = anyio.Lock()

    async def collect(self, *, dry_run: bool = False) -> Collected:
        """Remove what has been unused for long enough. Raises `LocalError` if the store fails."""
        async with self._one_at_a_time:
            with self._store.collecting():
                return await self._collect(dry_run)

    async def _collect(self, dry_run: bool) -> Collected:
        needed = {id async for id, _ in self._all()}
        now = self._environment.now_ms()
        unused: dict[ContentId, int] = {}
        removed = removed_bytes = waiting = waiting_bytes = 0
        async for id, size in self._blobs():
            if id in needed:
                continue
            since = self._unused.get(id, now)
            is_due = now - since >= GRACE
            if is_due and (dry_run or await self._store.collect_blob(id)):
                removed, removed_bytes = removed + 1, removed_bytes + size
            elif not is_due:
                waiting, waiting_bytes = waiting + 1, waiting_bytes + size
            if not is_due or dry_run:
                unused[id] = since
        self._unused = unused
        return Collected(removed, removed_bytes, waiting, waiting_bytes)

    async def reasons(self, id: ContentId) -> tuple[str, ...]:
        """Why a blob is kept; empty if nothing needs it."""
        return tuple(dict.fromkeys([reason async for kept, reason in self._all() if kept == id]))

    def unused_since(self, id: ContentId) -> int | None:
        """When it was first found unused, if it was at the last look."""
        return self._unused.get(id)

    async def listed(self) -> list[KeptBlob]:
        """All blobs, ordered by id, each with its reasons."""
        reasons: dict[ContentId, dict[str, None]] = {}
        async for id, reason in self._all():
            reasons.setdefault(id, {})[reason] = None
        return [
            KeptBlob(id, size, tuple(reasons.get(id, ())), self._unused.get(id)) async for id, size in self._blobs()
        ]

    async def _all(self) -> AsyncIterator[tuple[ContentId, str]]:
        for keeper in self._keepers:
            async for id, reason in keeper():
                yield id, reason

    async def _blobs(self) -> AsyncIterator[tuple[ContentId, int]]:
        after: ContentId | None = None
        while page := await self._store.list_blobs(after=after, limit=PAGE):
            for id, size in page:
                yield id, size
            after = page[-1][0]
