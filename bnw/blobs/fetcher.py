"""Fetches blobs by content id from connected peers into the store."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import anyio

from bnw.blobs.bell import Bell
from bnw.blobs.plan import Claims, FetchPlan
from bnw.blobs.sources import Wanted
from bnw.blobs.transfer import OnProgress, Transfer
from bnw.store.interface import Store
from bnw.transport.interface import PeerId, Transport
from bnw.wire.content_id import ContentId
from bnw.wire.errors import InvalidError, LocalError, RemoteError
from bnw.wire.limits import MAX_BLOB

MAX_LARGE = 4
MAX_SMALL = 4
"""Transfers of more than `MAX_BLOB` bytes, and of at most that, which run at once; others wait. Two sorts, so that a
descriptor need not wait for somebody's gigabyte. Each transfer holds in memory what is on its way from
`bnw.blobs.plan.MAX_SOURCES` sources: from each one blob, or at most 1 MiB of small ones."""
PATIENCE = 60.0
"""Seconds."""


def ignore_progress(done: int, total: int) -> None:
    """Wants to know nothing."""


class BlobFetcher:
    """Fetches for all users of one store. What several of them want at the same time is fetched once."""

    def __init__(self, transport: Transport, store: Store) -> None:
        self._transport = transport
        self._store = store
        self._large = anyio.Semaphore(MAX_LARGE)
        self._small = anyio.Semaphore(MAX_SMALL)
        self._claims = Claims()
        self._bell = Bell()

    async def fetch_to_store(
        self,
        wanted: Iterable[Wanted],
        *,
        prefer: Sequence[PeerId] = (),
        timeout: float = PATIENCE,
        on_progress: OnProgress = ignore_progress,
    ) -> None:
        """Bring what is missing of `wanted` into the store, from several peers at once, `prefer`red ones first.

        Every blob is verified, and durable before it counts as progress; whatever ends this, calling it again asks only
        for what is missing then. A peer that sends wrong bytes is not asked again, one that stalls is set aside.

        Raises `RemoteError` (`blob-not-found`) when no connected peer has what is missing, or none has given anything
        for `timeout` seconds; `InvalidError` (`blob-size`) when a blob in the store has another size than is wanted;
        `LocalError` when the store fails.
        """
        plan = FetchPlan(wanted, self._claims)
        try:
            await self._find_stored(plan)
            if plan.is_complete:
                on_progress(plan.kept_bytes, plan.total_bytes)
                return
            async with self._large if plan.total_bytes > MAX_BLOB else self._small:
                await Transfer(self._transport, self._store, plan, self._bell).run(prefer, timeout, on_progress)
        finally:
            plan.close()
            self._bell.ring()

    def wanted(self) -> frozenset[ContentId]:
        """All blobs of the transfers that are under way, those included that have arrived."""
        return self._claims.wanted()

    async def fetch(
        self, id: ContentId, *, max_size: int = MAX_BLOB, prefer: Sequence[PeerId] = (), timeout: float = PATIENCE
    ) -> bytes:
        """The blob `id`: from the store, else from a connected peer, `prefer`red ones first, and then stored.

        Raises `RemoteError`: `blob-not-found` when no connected peer gave the right bytes within `timeout` seconds,
        `too-large` when it has more than `max_size` bytes.
        """
        try:
            await self.fetch_to_store([Wanted(id, max_size)], prefer=prefer, timeout=timeout)
        except InvalidError as error:
            raise RemoteError("too-large", error.cause, place=id.hex()) from error
        return await self._stored(id)

    async def fetch_all(
        self,
        ids: Sequence[ContentId],
        *,
        max_size: int,
        prefer: Sequence[PeerId] = (),
        timeout: float = PATIENCE,
    ) -> list[bytes]:
        """Many blobs, in the order of `ids`, all of them in memory. Raises as `fetch` does."""
        try:
            await self.fetch_to_store([Wanted(id, max_size) for id in ids], prefer=prefer, timeout=timeout)
        except InvalidError as error:
            raise RemoteError("too-large", error.cause, place=error.place) from error
        return [await self._stored(id) for id in ids]

    async def _find_stored(self, plan: FetchPlan) -> None:
        for wanted in plan.wanted:
            size = await self._store.blob_size(wanted.id)
            if size is not None:
                try:
                    wanted.check_size(size)
                except InvalidError as error:
                    raise InvalidError(error.code, error.cause, place=wanted.id.hex()) from error
                plan.found(wanted.id)

    async def _stored(self, id: ContentId) -> bytes:
        data = await self._store.get_blob(id)
        if data is None:
            raise LocalError(
                "blob-gone", "the blob was removed from the store just after it came", place=id.hex(), cure="try again"
            )
        return data
