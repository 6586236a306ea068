"""Answers pulls from the store and passes hints on."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import anyio

from bnw.objects.message import read_message
from bnw.objects.rules import CATALOG
from bnw.store.interface import ScopeSummary, Store
from bnw.sync.protocol import (
    MAX_IDS_PER_PAGE,
    MAX_OBJECT_BYTES_PER_FRAME,
    MAX_PAGES,
    REFUSED_BUSY,
    REFUSED_SCOPE,
    SYNC_PROTOCOL,
    SyncHint,
    SyncIds,
    SyncNext,
    SyncObjects,
    SyncOpen,
    SyncRefused,
    SyncSame,
    SyncWant,
)
from bnw.transport.interface import PeerId, Stream, Transport
from bnw.transport.message_stream import MessageStream
from bnw.wire.content_id import ContentId
from bnw.wire.environment import Environment
from bnw.wire.errors import InvalidError

MAX_SERVED_AT_ONCE = 16

OnHint = Callable[[PeerId, ScopeSummary], None]
"""Told that a peer has something new in the catalog, with its summary. Must not block."""


class SyncServer:
    def __init__(self, transport: Transport, store: Store, environment: Environment, *, on_hint: OnHint) -> None:
        self._store = store
        self._environment = environment
        self._on_hint = on_hint
        self._slots = anyio.Semaphore(MAX_SERVED_AT_ONCE)
        transport.serve(SYNC_PROTOCOL, self._serve)

    async def _serve(self, stream: Stream) -> None:
        messages = MessageStream(stream)
        try:
            match read_message(await messages.receive(), SyncOpen, SyncHint):
                case SyncHint(count=count, fingerprint=fingerprint, scope=scope):
                    if scope == CATALOG:
                        self._on_hint(stream.peer, ScopeSummary(count, fingerprint))
                case SyncOpen(count=count, fingerprint=fingerprint, scope=scope):
                    if scope == CATALOG:
                        await self._serve_pull(messages, scope, ScopeSummary(count, fingerprint))
                    else:
                        await messages.send(SyncRefused(REFUSED_SCOPE).to_wire())
        except InvalidError as error:
            raise error.from_peer(stream.peer) from error

    async def _serve_pull(self, messages: MessageStream, scope: str, theirs: ScopeSummary) -> None:
        try:
            self._slots.acquire_nowait()
        except anyio.WouldBlock:
            await messages.send(SyncRefused(REFUSED_BUSY).to_wire())
            return
        try:
            await self._answer_pull(messages, scope, theirs)
        finally:
            self._slots.release()

    async def _answer_pull(self, messages: MessageStream, scope: str, theirs: ScopeSummary) -> None:
        now = self._environment.now_ms()
        if await self._store.scope_summary(scope, now=now) == theirs:
            await messages.send(SyncSame().to_wire())
            return
        after: ContentId | None = None
        for _ in range(MAX_PAGES):
            ids = await self._store.scope_ids(scope, now=now, after=after, limit=MAX_IDS_PER_PAGE)
            more = len(ids) == MAX_IDS_PER_PAGE
            await messages.send(SyncIds(tuple(ids), more).to_wire())
            offered = set(ids)
            while True:
                value = await messages.receive()
                if value is None:
                    return
                request = read_message(value, SyncWant, SyncNext)
                if not isinstance(request, SyncWant):
                    break
                # Only what this page offered may be asked for, and each of it once, which bounds the stream's work.
                wanted = [id for id in request.ids if id in offered]
                offered.difference_update(wanted)
                await self._send_objects(messages, wanted)
            if not more:
                return
            after = ids[-1]

    async def _send_objects(self, messages: MessageStream, ids: Sequence[ContentId]) -> None:
        batch: list[bytes] = []
        size = 0
        for id in ids:
            obj = await self._store.get_object(id)
            if obj is None:
                continue  # expired or replaced since its id was sent
            if batch and size + len(obj.data) > MAX_OBJECT_BYTES_PER_FRAME:
                await messages.send(SyncObjects(more=True, objects=tuple(batch)).to_wire())
                batch, size = [], 0
            batch.append(obj.data)
            size += len(obj.data)
        await messages.send(SyncObjects(more=False, objects=tuple(batch)).to_wire())
