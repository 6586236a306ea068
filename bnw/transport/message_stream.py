"""Messages over a stream: frames of deterministic CBOR, with the peer blamed for bad ones."""

from __future__ import annotations

from types import TracebackType
from typing import Self

import anyio

from bnw.transport.interface import PeerId, Stream
from bnw.wire.cbor import Value
from bnw.wire.errors import InvalidError, RemoteError
from bnw.wire.frames import FrameDecoder, encode_frame
from bnw.wire.limits import MAX_FRAME

STALL_TIMEOUT = 20.0
"""Seconds without a byte, in either direction, after which a peer counts as stalled."""


class MessageStream:
    """Sends and receives whole messages. An async context manager: closes the stream, or resets it on an error."""

    def __init__(self, stream: Stream, *, max_size: int = MAX_FRAME, stall_timeout: float = STALL_TIMEOUT) -> None:
        self._stream = stream
        self._decoder = FrameDecoder(max_size=max_size)
        self._max_size = max_size
        self._stall_timeout = stall_timeout

    @property
    def peer(self) -> PeerId:
        return self._stream.peer

    async def send(self, message: dict[str, Value]) -> None:
        """Send one message. Raises `RemoteError` (`stream-closed`, `stream-stalled`)."""
        await self.send_bytes(encode_frame(message, max_size=self._max_size))

    async def send_bytes(self, data: bytes) -> None:
        """Send raw bytes that a message has announced."""
        with self._stall_scope() as scope:
            await self._stream.send(data)
        if scope.cancelled_caught:
            raise self._stalled("took no bytes")

    async def receive(self) -> dict[str, Value] | None:
        """The next message, or None if the peer ended the stream between messages.

        Raises `RemoteError`: `stream-closed`, `stream-stalled`, or the code of what is wrong with the message.
        """
        try:
            while (message := self._decoder.next_message()) is None:
                data = await self._receive_some(MAX_FRAME)
                if not data:
                    if self._decoder.is_empty:
                        return None
                    raise RemoteError("stream-closed", "the stream ended within a message", place=f"peer {self.peer}")
                self._decoder.feed(data)
        except InvalidError as error:
            raise error.from_peer(self.peer) from error
        return message

    async def receive_exactly(self, size: int) -> bytes:
        """`size` raw bytes that a message has announced; the caller has checked that `size` is acceptable."""
        buffer = bytearray(self._decoder.take(size))
        while len(buffer) < size:
            data = await self._receive_some(size - len(buffer))
            if not data:
                raise RemoteError(
                    "stream-closed",
                    f"the stream ended after {len(buffer):,} of {size:,} bytes",
                    place=f"peer {self.peer}",
                )
            buffer += data
        return bytes(buffer)

    async def send_eof(self) -> None:
        await self._stream.send_eof()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        with anyio.CancelScope(shield=True):
            if exc is None:
                await self._stream.aclose()
            else:
                await self._stream.reset()

    async def _receive_some(self, max_bytes: int) -> bytes:
        with self._stall_scope() as scope:
            return await self._stream.receive(max_bytes)
        assert scope.cancelled_caught
        raise self._stalled("sent nothing")

    def _stall_scope(self) -> anyio.CancelScope:
        return anyio.move_on_after(self._stall_timeout)

    def _stalled(self, what: str) -> RemoteError:
        return RemoteError("stream-stalled", f"{what} for {self._stall_timeout:g} s", place=f"peer {self.peer}")
