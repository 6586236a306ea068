"""Answers pulls from the store and passes hints on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Final

import anyio

from bnw.identity.keys import IdentityId
from bnw.objects.message import Message, read_message
from bnw.store.interface import ScopeSummary, Store
from bnw.store.scopes import parse_inbox_scope
from bnw.sync.inbox_access import InboxDoor
from bnw.sync.negentropy.index import BlockedIndex
from bnw.sync.negentropy.reconciler import Responder
from bnw.sync.protocol import (
    MAX_NEGENTROPY,
    MAX_OBJECT_BYTES_PER_FRAME,
    MAX_ROUNDS,
    MAX_SESSION_BYTES,
    MAX_WANTED,
    MESSAGE_TIMEOUT,
    REFUSED_BUSY,
    REFUSED_FRAME,
    REFUSED_LIMIT,
    REFUSED_SCOPE,
    REFUSED_VERSION,
    SESSION_TIMEOUT,
    SYNC_PROTOCOL,
    SyncChallenge,
    SyncHint,
    SyncObjects,
    SyncOpen,
    SyncProof,
    SyncReconcile,
    SyncWant,
    is_too_large,
    refusal,
    speaks_other_version,
)
from bnw.sync.scope_index import ScopeIndex, snapshot
from bnw.sync.session import too_slow
from bnw.transport.interface import PeerId, Stream, Transport
from bnw.transport.message_stream import MessageStream
from bnw.wire.cbor import Value
from bnw.wire.content_id import ContentId
from bnw.wire.environment import Environment
from bnw.wire.errors import InvalidError, RemoteError
from bnw.wire.rate_limit import RateLimiter

MAX_SERVED_AT_ONCE: Final = 16
MAX_SERVED_PER_PEER: Final = 2
"""One that is going on, and one of a peer that has come back before the old one was found to be dead."""
STREAMS_PER_SECOND: Final = 4.0
STREAMS_AT_ONCE: Final = 40.0
"""Pulls and hints of one peer; more are refused as `busy`."""
READ_AT_ONCE: Final = 64
"""Objects that are read from the store together: 4 MiB at most."""

OnHint = Callable[[PeerId, str, ScopeSummary], None]
"""Told that a peer has something new in a scope that is served, with its summary. Must not block."""


class _Refuse(Exception):
    """This session is to be ended with a refusal."""

    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.code = code


class SyncServer:
    """Serves the scopes of `indexes`, by name, to every peer, and inboxes to those who may read them."""

    def __init__(
        self,
        transport: Transport,
        store: Store,
        environment: Environment,
        indexes: Mapping[str, ScopeIndex],
        *,
        on_hint: OnHint,
    ) -> None:
        self._store = store
        self._environment = environment
        self._indexes = indexes
        self._on_hint = on_hint
        self._limiter = RateLimiter(rate=STREAMS_PER_SECOND, burst=STREAMS_AT_ONCE)
        self._served: Counter[PeerId] = Counter()
        self._door = InboxDoor(store, environment, transport.peer_id)
        transport.serve(SYNC_PROTOCOL, self._serve)

    async def _serve(self, stream: Stream) -> None:
        messages = MessageStream(stream)
        try:
            with anyio.fail_after(SESSION_TIMEOUT):
                await self._serve_messages(messages)
        except TimeoutError:
            raise too_slow(stream.peer, f"a session took more than {SESSION_TIMEOUT:g} s") from None
        except _Refuse as error:
            await messages.send(refusal(error.code).to_wire())
        except InvalidError as error:
            raise error.from_peer(stream.peer) from error

    async def _serve_messages(self, messages: MessageStream) -> None:
        value = await _receive(messages)
        # Only now, because a peer that is still sending when the stream is closed may never see why.
        if not self._limiter.allows(messages.peer, anyio.current_time()):
            raise _Refuse(REFUSED_BUSY)
        if speaks_other_version(value):
            raise _Refuse(REFUSED_VERSION)
        first: Message = read_message(value, SyncOpen, SyncHint)
        if isinstance(first, SyncHint):
            if first.scope in self._indexes:
                self._on_hint(messages.peer, first.scope, ScopeSummary(first.count, first.fingerprint))
            return
        assert isinstance(first, SyncOpen)
        index = self._indexes.get(first.scope)
        owner = None if index is not None else _owner_of(first.scope)
        if self._served.total() >= MAX_SERVED_AT_ONCE or self._served[messages.peer] >= MAX_SERVED_PER_PEER:
            raise _Refuse(REFUSED_BUSY)
        self._served[messages.peer] += 1
        try:
            if index is not None:
                # What expires later than this is still offered in this session, and no longer delivered.
                scope, items = index.scope, await index.at(self._environment.now_ms())
            else:
                assert owner is not None
                scope = await self._readable(owner, messages)
                items = await snapshot(self._store, scope, now=self._environment.now_ms())
            await _Session(self._store, self._environment, scope, items, messages).run(first.message)
        finally:
            self._served[messages.peer] -= 1
            if not self._served[messages.peer]:
                del self._served[messages.peer]

    async def _readable(self, owner: IdentityId, messages: MessageStream) -> str:
        """Challenge a reader of the inbox of `owner`; returns the scope to answer from."""
        nonce = self._door.challenge()
        await messages.send(SyncChallenge(nonce).to_wire())
        proof = read_message(await _receive(messages), SyncProof)
        assert isinstance(proof, SyncProof)
        return await self._door.readable(owner, reader=messages.peer, nonce=nonce, signature=proof.signature)


def _owner_of(scope: str) -> IdentityId:
    """Whose inbox it is."""
    try:
        return parse_inbox_scope(scope)
    except InvalidError:
        raise _Refuse(REFUSED_SCOPE) from None


class _Session:
    """One pull, seen from the side that answers."""

    def __init__(
        self, store: Store, environment: Environment, scope: str, items: BlockedIndex, messages: MessageStream
    ) -> None:
        self._store = store
        self._environment = environment
        self._scope = scope
        self._items = items
        self._messages = messages
        self._rounds = 0
        self._wanted = 0
        self._sent = 0

    async def run(self, first: bytes) -> None:
        responder = Responder(self._items, frame_limit=MAX_NEGENTROPY, max_message=MAX_NEGENTROPY)
        request: Message | None = SyncReconcile(first)
        while request is not None:
            if isinstance(request, SyncReconcile):
                self._rounds += 1
                if self._rounds > MAX_ROUNDS:
                    raise _Refuse(REFUSED_LIMIT)
                await self._send(SyncReconcile(responder.answer(request.message)))
            elif isinstance(request, SyncWant):
                self._wanted += len(request.ids)
                if self._wanted > MAX_WANTED:
                    raise _Refuse(REFUSED_LIMIT)
                await self._send_objects(request.ids)
            value = await _receive(self._messages)
            request = None if value is None else read_message(value, SyncReconcile, SyncWant)

    async def _send_objects(self, ids: Sequence[ContentId]) -> None:
        batch: list[bytes] = []
        size = 0
        for start in range(0, len(ids), READ_AT_ONCE):
            wanted = ids[start : start + READ_AT_ONCE]
            now = self._environment.now_ms()
            for data in await self._store.scope_objects(self._scope, wanted, now=now):
                if batch and size + len(data) > MAX_OBJECT_BYTES_PER_FRAME:
                    await self._send(SyncObjects(more=True, objects=tuple(batch)))
                    batch, size = [], 0
                batch.append(data)
                size += len(data)
                self._sent += len(data)
                # A puller stops at the limit itself, but not in the middle of what it has asked for already.
                if self._sent > 2 * MAX_SESSION_BYTES:
                    raise _Refuse(REFUSED_LIMIT)
        await self._send(SyncObjects(more=False, objects=tuple(batch)))

    async def _send(self, message: Message) -> None:
        await self._messages.send(message.to_wire())


async def _receive(messages: MessageStream) -> dict[str, Value] | None:
    """The next message of a puller, or None at the end of the stream."""
    try:
        with anyio.move_on_after(MESSAGE_TIMEOUT) as scope:
            value = await messages.receive()
    except RemoteError as error:
        if error.code == "frame-too-large":
            raise _Refuse(REFUSED_FRAME) from None
        raise
    if scope.cancelled_caught:
        raise too_slow(messages.peer, f"sent no whole message within {MESSAGE_TIMEOUT:g} s")
    if is_too_large(value):
        raise _Refuse(REFUSED_FRAME)
    return value
