"""Answers blob requests from the store.

Whoever knows a content id may have the blob: payload chunks are ciphertext, and descriptors and schemas are public.
Inbox objects are not served this way, since carriers can see their ids in other objects.

Requests are read ahead of their answers, and answers that are small leave together, so that a thousand small blobs are
a few large messages and not two thousand small ones.
"""

from __future__ import annotations

from collections import Counter, deque

import anyio

from bnw.blobs.bell import Bell
from bnw.blobs.plan import STALLED
from bnw.blobs.protocol import BLOB_PROTOCOL, BlobAbsent, BlobBusy, BlobFollows, GetBlob
from bnw.objects.envelope import parse_envelope
from bnw.objects.message import read_message
from bnw.objects.rules import CATALOG_KINDS
from bnw.store.interface import Store
from bnw.transport.interface import PeerId, Stream, Transport
from bnw.transport.message_stream import MessageStream
from bnw.transport.tasks import background_tasks
from bnw.wire.cbor import Value
from bnw.wire.content_id import ContentId
from bnw.wire.errors import InvalidError, RemoteError
from bnw.wire.frames import encode_frame
from bnw.wire.limits import KIB

MAX_SERVED_AT_ONCE = 8
"""Streams on which blobs are being sent. Each holds one in memory, and a little of others: 128 MiB in all."""
MAX_SERVED_TO_ONE = 4
"""Of these, streams to one peer, so that one that reads slowly leaves some for others."""
MAX_REQUEST = 128
MAX_READ_AHEAD = 128
"""Requests on one stream that wait for their answers before no more are read from it."""
PIECE = 64 * KIB
"""Bytes that a peer must take within the stall timeout of the stream, to go on being served."""

_PUBLIC_KINDS = frozenset(cls.KIND for cls in CATALOG_KINDS)


class BlobServer:
    def __init__(self, transport: Transport, store: Store) -> None:
        self._store = store
        self._slots = anyio.Semaphore(MAX_SERVED_AT_ONCE)
        self._served: Counter[PeerId] = Counter()
        transport.serve(BLOB_PROTOCOL, self._serve)

    async def _serve(self, stream: Stream) -> None:
        messages = MessageStream(stream, max_size=MAX_REQUEST)
        requests = _Requests(messages)
        async with background_tasks() as tasks:
            tasks.start_soon(requests.read_ahead)
            while (first := await requests.next()) is not None:
                if self._take_slot(stream.peer):
                    try:
                        await self._answer(messages, first, requests)
                    finally:
                        self._give_slot_back(stream.peer)
                else:
                    await messages.send(BlobBusy().to_wire())

    async def _answer(self, messages: MessageStream, first: ContentId, requests: _Requests) -> None:
        """Answer a request and all that wait behind it."""
        unsent = bytearray()

        async def flush() -> None:
            await messages.send_bytes(bytes(unsent))
            unsent.clear()

        requests.are_being_answered = True
        id: ContentId | None = first
        while id is not None:
            data = await self._read(id)
            if data is None:
                unsent += encode_frame(BlobAbsent().to_wire())
            else:
                unsent += encode_frame(BlobFollows(len(data)).to_wire())
                for start in range(0, len(data), PIECE):
                    unsent += data[start : start + PIECE]
                    if len(unsent) >= PIECE:
                        await flush()
            id = requests.next_waiting()
        if unsent:
            await flush()
        requests.are_being_answered = False

    def _take_slot(self, peer: PeerId) -> bool:
        if self._served[peer] >= MAX_SERVED_TO_ONE:
            return False
        try:
            self._slots.acquire_nowait()
        except anyio.WouldBlock:
            return False
        self._served[peer] += 1
        return True

    def _give_slot_back(self, peer: PeerId) -> None:
        self._slots.release()
        self._served[peer] -= 1
        if not self._served[peer]:
            del self._served[peer]

    async def _read(self, id: ContentId) -> bytes | None:
        data = await self._store.get_blob(id)
        return None if data is None or _is_mail(data) else data


class _Requests:
    """What a peer asks for on one stream, read while earlier requests are being answered."""

    def __init__(self, messages: MessageStream) -> None:
        self._messages = messages
        self._waiting: deque[ContentId] = deque()
        self._ended = False
        self._error: RemoteError | None = None
        self._bell = Bell()
        self.are_being_answered = False

    async def read_ahead(self) -> None:
        """Until the peer ends the stream, or breaks it; `next` tells of that."""
        try:
            while (value := await self._receive()) is not None:
                self._waiting.append(read_message(value, GetBlob).id)
                self._bell.ring()
                while len(self._waiting) >= MAX_READ_AHEAD:
                    await self._bell.wait()
        except InvalidError as error:
            self._error = error.from_peer(self._messages.peer)
        except RemoteError as error:
            self._error = error
        self._ended = True
        self._bell.ring()

    async def _receive(self) -> dict[str, Value] | None:
        """The next message. A peer that says nothing because it is busy with our answer has not stalled."""
        while True:
            try:
                return await self._messages.receive()
            except RemoteError as error:
                if error.code != STALLED or not self.are_being_answered:
                    raise

    async def next(self) -> ContentId | None:
        """The next request, or None when there will be no more.

        Raises `RemoteError` if the peer went away or sent something else, when what came before has been passed on.
        """
        while not self._waiting and not self._ended:
            await self._bell.wait()
        if not self._waiting and self._error is not None:
            raise self._error
        return self.next_waiting()

    def next_waiting(self) -> ContentId | None:
        """The next request if it is here already."""
        if not self._waiting:
            return None
        self._bell.ring()
        return self._waiting.popleft()


def _is_mail(data: bytes) -> bool:
    """Whether these bytes are a signed object that is not public, wherever they are kept."""
    try:
        return parse_envelope(data).kind not in _PUBLIC_KINDS
    except InvalidError:
        return False
