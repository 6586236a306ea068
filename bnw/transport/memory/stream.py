"""One half of a stream between two endpoints of a memory network."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Protocol

import anyio
import anyio.lowlevel

from bnw.transport.bounds import MAX_PIECE, STALL_TIMEOUT, STREAM_WINDOW
from bnw.transport.interface import PeerId
from bnw.wire.errors import LocalError, RemoteError

CONTROL_SIZE = 12
"""What an entry without data weighs on a link: a Yamux header."""


class Carrier(Protocol):
    """The connection, seen from the stream: carries calls to the far side in order, and frees the stream's slot."""

    @property
    def peer(self) -> PeerId: ...

    def carry(self, size: int, call: Callable[[], None], *what: object) -> None: ...

    def forget(self, stream: MemoryStream) -> None: ...


class MemoryStream:
    """Implements `bnw.transport.interface.Stream`. Methods named `on_...` are what the far half makes happen here."""

    def __init__(self, carrier: Carrier, protocol: str, name: str, *, far: MemoryStream | None = None) -> None:
        self._carrier = carrier
        self._protocol = protocol
        self.name = name
        self._far = far
        self._refused: str | None = None
        self._arrived = bytearray()
        self._consumed = 0
        self._window = STREAM_WINDOW
        self._failed = False
        self._closed = False
        self._sent_eof = False
        self._far_eof = False
        self._far_stopped = False
        self._changed = anyio.Event()
        self._receiving = anyio.ResourceGuard("receiving from")
        self._sending = anyio.ResourceGuard("sending to")

    @property
    def _place(self) -> str:
        return f"stream of {self._protocol} with peer {self.peer}"

    @property
    def peer(self) -> PeerId:
        return self._carrier.peer

    @property
    def protocol(self) -> str:
        return self._protocol

    async def opened(self) -> None:
        """Wait for the peer's answer to the opening; raises `RemoteError` (`protocol`, `busy`, `stream-closed`)."""
        while self._far is None:
            if self._refused is not None:
                raise RemoteError(self._refused, f"the peer refused a stream of {self._protocol}", place=self._place)
            self._refuse_if_over()
            await self._wait()

    async def receive(self, max_bytes: int = 65536) -> bytes:
        with self._receiving:
            await anyio.lowlevel.checkpoint()
            while not self._arrived:
                self._refuse_if_over()
                if self._far_eof:
                    return b""
                await self._wait()
            piece = bytes(self._arrived[:max_bytes])
            del self._arrived[:max_bytes]
            self._consumed += len(piece)
            if self._consumed >= STREAM_WINDOW // 2 or not self._arrived:
                self._give_window()
            return piece

    async def send(self, data: bytes) -> None:
        with self._sending:
            await anyio.lowlevel.checkpoint()
            rest = memoryview(data)
            while rest:
                self._refuse_if_over()
                if self._sent_eof:
                    raise LocalError("stream-ended", "nothing can be sent after send_eof", place=self._place)
                if self._far_stopped:
                    raise RemoteError("stream-closed", "the peer no longer reads this stream", place=self._place)
                if not self._window:
                    with anyio.move_on_after(STALL_TIMEOUT) as patience:
                        await self._wait()
                    if patience.cancelled_caught:
                        raise RemoteError(
                            "stream-stalled", f"the peer has read nothing for {STALL_TIMEOUT:g} s", place=self._place
                        )
                    continue
                piece = bytes(rest[: min(MAX_PIECE, self._window)])
                rest = rest[len(piece) :]
                self._window -= len(piece)
                self._to_far(partial(_far(self).on_data, piece), "data", piece, size=len(piece))

    async def send_eof(self) -> None:
        await anyio.lowlevel.checkpoint()
        self._refuse_if_over()
        self._end()

    async def aclose(self) -> None:
        if not self._over:
            self._end()
            if not self._far_eof:
                self._to_far(_far(self).on_stop, "stop")
            self._finish()
        await anyio.lowlevel.checkpoint()

    async def reset(self) -> None:
        self.drop()
        await anyio.lowlevel.checkpoint()

    def drop(self) -> None:
        """Reset without waiting."""
        if not self._over:
            if self._far is not None:
                self._to_far(self._far.on_reset, "reset")
            self._finish()

    def on_accepted(self, far: MemoryStream) -> None:
        """The peer has made its half. If this one has been given up since, tell it so."""
        self._far = far
        if self._over:
            self._to_far(far.on_reset, "reset")
        self._changed.set()

    def on_refused(self, code: str) -> None:
        self._refused = code
        self._changed.set()

    def on_data(self, piece: bytes) -> None:
        if not self._over:
            self._arrived += piece
            self._changed.set()

    def on_eof(self) -> None:
        self._far_eof = True
        self._changed.set()

    def on_stop(self) -> None:
        self._far_stopped = True
        self._changed.set()

    def on_window(self, size: int) -> None:
        self._window += size
        self._changed.set()

    def on_reset(self) -> None:
        """The far half, or the whole connection, is gone. What was not yet received is lost, as with Yamux."""
        if not self._over:
            self._failed = True
            self._arrived.clear()
            self._carrier.forget(self)
            self._changed.set()

    @property
    def _over(self) -> bool:
        return self._failed or self._closed

    def _refuse_if_over(self) -> None:
        if self._failed:
            raise RemoteError("stream-closed", "the peer reset the stream or went away", place=self._place)
        if self._closed:
            raise LocalError("stream-ended", "the stream was closed here", place=self._place)

    def _end(self) -> None:
        if not self._sent_eof:
            self._sent_eof = True
            self._to_far(_far(self).on_eof, "eof")

    def _finish(self) -> None:
        self._closed = True
        self._arrived.clear()
        self._carrier.forget(self)
        self._changed.set()

    def _give_window(self) -> None:
        if not self._far_eof:
            self._to_far(partial(_far(self).on_window, self._consumed), "window", self._consumed)
        self._consumed = 0

    def _to_far(self, call: Callable[[], None], *what: object, size: int = 0) -> None:
        self._carrier.carry(CONTROL_SIZE + size, call, self.name, *what)

    async def _wait(self) -> None:
        # One event serves the reader and the writer: waking both is harmless, as each looks again.
        if self._changed.is_set():
            self._changed = anyio.Event()
        await self._changed.wait()


def _far(stream: MemoryStream) -> MemoryStream:
    """The far half; a stream is handed to its user only once there is one."""
    assert stream._far is not None
    return stream._far
