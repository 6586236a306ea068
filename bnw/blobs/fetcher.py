"""Fetches blobs by content id from connected peers, one peer after the other until one has the right bytes."""

from __future__ import annotations

import logging
from collections.abc import Sequence

import anyio

from bnw.blobs.protocol import BLOB_PROTOCOL, BlobAbsent, BlobBusy, BlobFollows, GetBlob
from bnw.objects.message import read_message
from bnw.store.interface import Store
from bnw.transport.interface import PeerId, Transport
from bnw.transport.message_stream import MessageStream
from bnw.wire.content_id import ContentId, content_id
from bnw.wire.errors import ExitStatus, InvalidError, RemoteError
from bnw.wire.limits import MAX_BLOB

logger = logging.getLogger(__name__)

MAX_FETCHES_AT_ONCE = 4
"""Blobs held in memory while they arrive: at most 64 MiB."""


class BlobFetcher:
    def __init__(self, transport: Transport, store: Store) -> None:
        self._transport = transport
        self._store = store
        self._slots = anyio.Semaphore(MAX_FETCHES_AT_ONCE)
        self._running: dict[ContentId, anyio.Event] = {}

    async def fetch(
        self, id: ContentId, *, max_size: int = MAX_BLOB, prefer: Sequence[PeerId] = (), timeout: float = 60.0
    ) -> bytes:
        """The blob `id`: from the store, else from a connected peer, `prefer`red ones first, and then stored.

        Raises `RemoteError`: `blob-not-found` when no connected peer gave the right bytes within `timeout` seconds,
        `too-large` when it has more than `max_size` bytes.
        """
        while (running := self._running.get(id)) is not None:
            await running.wait()
        data = await self._store.get_blob(id)
        if data is None:
            finished = self._running[id] = anyio.Event()
            try:
                async with self._slots:
                    data = await self._fetch_from_peers(id, max_size, prefer, timeout)
                    await self._store.put_blob(data)
            finally:
                del self._running[id]
                finished.set()
        if len(data) > max_size:
            raise _too_large(id, len(data), max_size)
        return data

    async def fetch_all(
        self,
        ids: Sequence[ContentId],
        *,
        max_size: int,
        prefer: Sequence[PeerId] = (),
        timeout: float = 60.0,
    ) -> list[bytes]:
        """Many blobs, several at once, in the order of `ids`. Raises as `fetch` does."""
        blobs: dict[ContentId, bytes] = {}

        async def fetch_one(id: ContentId) -> None:
            async with window:
                blobs[id] = await self.fetch(id, max_size=max_size, prefer=prefer, timeout=timeout)

        window = anyio.Semaphore(MAX_FETCHES_AT_ONCE)
        try:
            async with anyio.create_task_group() as group:
                for id in ids:
                    group.start_soon(fetch_one, id)
        except* RemoteError as errors:
            raise errors.exceptions[0] from None
        return [blobs[id] for id in ids]

    async def _fetch_from_peers(self, id: ContentId, max_size: int, prefer: Sequence[PeerId], timeout: float) -> bytes:
        asked: list[str] = []
        with anyio.move_on_after(timeout):
            for peer in self._candidates(prefer):
                try:
                    data = await self._fetch_from(peer, id, max_size)
                except RemoteError as error:
                    logger.info("blob %s: %s", id.hex(), error)
                    asked.append(f"{peer} ({error.code})")
                    continue
                if data is not None:
                    return data
                asked.append(f"{peer} (absent)")
        raise RemoteError(
            "blob-not-found",
            f"no connected peer gave the blob; asked: {', '.join(asked) or 'nobody'}",
            place=id.hex(),
            cure="connect to a peer that has it and try again",
            exit_status=ExitStatus.UNREACHABLE,
        )

    def _candidates(self, prefer: Sequence[PeerId]) -> list[PeerId]:
        connected = [info.peer for info in self._transport.peers()]
        return [*(peer for peer in prefer if peer in connected), *(peer for peer in connected if peer not in prefer)]

    async def _fetch_from(self, peer: PeerId, id: ContentId, max_size: int) -> bytes | None:
        stream = await self._transport.open_stream(peer, BLOB_PROTOCOL)
        async with MessageStream(stream) as messages:
            await messages.send(GetBlob(id).to_wire())
            try:
                answer = read_message(await messages.receive(), BlobFollows, BlobAbsent, BlobBusy)
            except InvalidError as error:
                raise error.from_peer(peer) from error
            match answer:
                case BlobAbsent():
                    return None
                case BlobBusy():
                    raise RemoteError("busy", "serves as many blobs as it can already", place=f"peer {peer}")
                case BlobFollows(size=size):
                    if size > max_size:
                        raise _too_large(id, size, max_size)
                    data = await messages.receive_exactly(size)
        if content_id(data) != id:
            raise RemoteError("wrong-bytes", f"sent bytes that are not {id.hex()}", place=f"peer {peer}")
        return data


def _too_large(id: ContentId, size: int, max_size: int) -> RemoteError:
    return RemoteError("too-large", f"the blob has {size:,} bytes, more than the {max_size:,} allowed", place=id.hex())
