"""The puller's end of one stream: what may be sent and received, and the limits on it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import anyio

from bnw.objects.message import Message, read_message
from bnw.sync.inbox_access import InboxReader
from bnw.sync.protocol import (
    MAX_ROUNDS,
    MAX_SESSION_BYTES,
    MESSAGE_TIMEOUT,
    VERSION,
    SyncChallenge,
    SyncObjects,
    SyncOpen,
    SyncProof,
    SyncReconcile,
    SyncRefused,
    SyncWant,
)
from bnw.transport.interface import PeerId
from bnw.transport.message_stream import MessageStream
from bnw.wire.content_id import ContentId
from bnw.wire.errors import InvalidError, RemoteError


class PeerRefused(Exception):
    """The peer answered with a refusal; nothing more will come."""

    def __init__(self, refused: SyncRefused) -> None:
        super().__init__(refused.code)
        self.refused = refused


class PullSession:
    """One pull of `scope`. Its methods raise `PeerRefused`, `InvalidError` and `RemoteError`."""

    def __init__(self, messages: MessageStream, scope: str, reader: InboxReader | None = None) -> None:
        """`reader` proves that it may read, if `scope` is an inbox."""
        self._messages = messages
        self._scope = scope
        self._reader = reader
        self.rounds = 0
        """Round trips of Negentropy so far."""
        self.received = 0
        """Bytes of objects so far."""
        self._closed: RemoteError | None = None

    @property
    def peer(self) -> PeerId:
        return self._messages.peer

    @property
    def may_compare(self) -> bool:
        return self.rounds < MAX_ROUNDS

    @property
    def may_ask(self) -> bool:
        return self.received < MAX_SESSION_BYTES

    async def exchange(self, message: bytes) -> bytes:
        """Send a Negentropy message and return the answer. The first one opens the session."""
        is_first = self.rounds == 0
        self.rounds += 1
        await self._send(SyncOpen(message, self._scope, VERSION) if is_first else SyncReconcile(message))
        if is_first and self._reader is not None:
            nonce = cast(SyncChallenge, await self._receive(SyncChallenge)).nonce
            await self._send(SyncProof(self._reader.prove(server=self.peer, scope=self._scope, nonce=nonce)))
        return cast(SyncReconcile, await self._receive(SyncReconcile)).message

    async def want(self, ids: Sequence[ContentId]) -> None:
        """Ask for objects; the answer is read with `objects`."""
        await self._send(SyncWant(tuple(ids)))

    async def objects(self) -> SyncObjects:
        """The next part of the answer to the oldest request for objects."""
        answer = cast(SyncObjects, await self._receive(SyncObjects))
        if answer.more and not answer.objects:
            raise InvalidError("sync-order", "an empty batch says that more follow", place="objects.more")
        self.received += sum(len(data) for data in answer.objects)
        return answer

    async def _send(self, message: Message) -> None:
        try:
            await self._messages.send(message.to_wire())
        except RemoteError as error:
            if error.code != "stream-closed":
                raise
            # The peer reads no more, perhaps because it has refused; then the refusal is still to be read.
            self._closed = error

    async def _receive(self, expected: type[Message]) -> Message:
        with anyio.move_on_after(MESSAGE_TIMEOUT) as scope:
            value = await self._messages.receive()
        if scope.cancelled_caught:
            raise too_slow(self.peer, f"took more than {MESSAGE_TIMEOUT:g} s for one message")
        if value is None and self._closed is not None:
            raise self._closed
        message: Message = read_message(value, expected, SyncRefused)
        if isinstance(message, SyncRefused):
            raise PeerRefused(message)
        return message


def too_slow(peer: PeerId, what: str) -> RemoteError:
    return RemoteError("sync-slow", what, place=f"peer {peer}")
