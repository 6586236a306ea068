"""Answers blob requests from the store.

Whoever knows a content id may have the blob: payload chunks are ciphertext, and descriptors and schemas are public.
Inbox objects are not served this way, since carriers can see their ids in other objects.
"""

from __future__ import annotations

import anyio

from bnw.blobs.protocol import BLOB_PROTOCOL, BlobAbsent, BlobBusy, BlobFollows, GetBlob
from bnw.objects.message import read_message
from bnw.objects.rules import is_catalog_object
from bnw.store.interface import Store
from bnw.transport.interface import Stream, Transport
from bnw.transport.message_stream import MessageStream
from bnw.wire.content_id import ContentId
from bnw.wire.errors import InvalidError

MAX_SERVED_AT_ONCE = 8
"""Blobs held in memory for sending at once: at most 128 MiB."""
MAX_REQUEST = 128


class BlobServer:
    def __init__(self, transport: Transport, store: Store) -> None:
        self._store = store
        self._slots = anyio.Semaphore(MAX_SERVED_AT_ONCE)
        transport.serve(BLOB_PROTOCOL, self._serve)

    async def _serve(self, stream: Stream) -> None:
        messages = MessageStream(stream, max_size=MAX_REQUEST)
        while (value := await messages.receive()) is not None:
            try:
                request = read_message(value, GetBlob)
            except InvalidError as error:
                raise error.from_peer(stream.peer) from error
            try:
                self._slots.acquire_nowait()
            except anyio.WouldBlock:
                await messages.send(BlobBusy().to_wire())
                continue
            try:
                data = await self._read(request.id)
                if data is None:
                    await messages.send(BlobAbsent().to_wire())
                else:
                    await messages.send(BlobFollows(len(data)).to_wire())
                    await messages.send_bytes(data)
            finally:
                self._slots.release()

    async def _read(self, id: ContentId) -> bytes | None:
        obj = await self._store.get_object(id)
        if obj is not None:
            return obj.data if is_catalog_object(obj.body) else None
        return await self._store.get_blob(id)
