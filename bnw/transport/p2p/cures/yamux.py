"""A Yamux connection whose peer cannot fill it up, block it, or break it.

Faults (libp2p 0.8.1), besides those of `yamux_guard` and `yamux_stream`:

- opening a stream when 256 are open waits for ever, and leaks a slot when it is cancelled half-way;
- a slot is free again when its stream is half closed, not closed;
- cancelling a write that has begun breaks the encryption of the whole connection;
- a peer that does not read its socket blocks writers, and `close` with them, for ever;
- the reading loop answers pings and the like by itself, and waits with that for writers; two ends that both send a lot
  wait for each other;
- `close` waits 0.1 s for nothing.

On the stock library: tests/transport/test_yamux.py.

Can go, with its two helpers, when these are cured upstream.
"""

from __future__ import annotations

import struct
from collections import OrderedDict, deque
from collections.abc import Awaitable, Callable
from typing import Any

import anyio
import trio
from libp2p.abc import ISecureConn
from libp2p.io.exceptions import ConnectionClosedError, IOException
from libp2p.peer.id import ID
from libp2p.security.secure_session import SecureSession
from libp2p.stream_muxer.yamux.yamux import (
    DEFAULT_WINDOW_SIZE,
    FLAG_RST,
    FLAG_SYN,
    GO_AWAY_NORMAL,
    HEADER_SIZE,
    TYPE_GO_AWAY,
    TYPE_WINDOW_UPDATE,
    YAMUX_HEADER_FORMAT,
    Yamux,
    YamuxStream,
)

from bnw.transport.bounds import MAX_PIECE, MAX_STREAM_WINDOW, MAX_STREAMS, MAX_UNREAD, STALL_TIMEOUT
from bnw.transport.p2p.cures.yamux_guard import GuardedSession
from bnw.transport.p2p.cures.yamux_stream import CuredStream
from bnw.transport.tasks import log

FAREWELL = 0.5
"""Seconds that closing waits for the peer to hang up, which it does when it has received everything."""

MAX_CONNECTION_UNREAD = 4 * MAX_UNREAD
"""Bytes from one peer that no reader has taken, at which nothing more is received from it. Above the largest window, so
that one stream alone cannot hold up the others."""

MAX_ANSWERS = 64 * 1024
"""Frames of a header only that we owe the peer, at which it must be ignoring them on purpose."""

MAX_BATCH = MAX_PIECE // HEADER_SIZE

MAX_SERVING = 2 * MAX_STREAMS
"""Handlers at work for one peer, those of streams that it has reset included: otherwise opening and resetting in turn
would pile them up."""

MAX_CLOSING = MAX_STREAMS
"""Streams closed here whose end from the peer is still to come. When there are more, the oldest are reset."""


class CuredYamux(Yamux):
    def __init__(
        self,
        secured_conn: ISecureConn,
        peer_id: ID,
        is_initiator: bool | None = None,
        on_close: Callable[[], Awaitable[Any]] | None = None,
    ) -> None:
        assert isinstance(secured_conn, SecureSession)
        super().__init__(GuardedSession(secured_conn, self), peer_id, is_initiator, on_close)
        self.stream_backlog_limit = MAX_STREAMS
        self.stream_backlog_semaphore = trio.Semaphore(MAX_STREAMS)
        self._serving = 0
        self._closing: OrderedDict[int, CuredStream] = OrderedDict()
        self._read = anyio.Event()
        self._reader: trio.lowlevel.Task | None = None
        self._answers: deque[bytes] = deque()
        self._answers_wanted = anyio.Event()
        self._leaving = False
        self._cleaned = False

    async def open_stream(self) -> YamuxStream:
        await self.stream_backlog_semaphore.acquire()
        stream = CuredStream(self.next_stream_id, self, True)
        stream._owns_backlog_slot = True
        self.next_stream_id += 2
        self.streams[stream.stream_id] = stream
        self.stream_buffers[stream.stream_id] = stream.buffer
        self.stream_events[stream.stream_id] = trio.Event()
        try:
            if self.event_shutting_down.is_set():
                raise ConnectionClosedError("the connection is closed")
            await self._write_frame(_control(FLAG_SYN, stream.stream_id))
        except BaseException:
            self._finalize_stream_locked(stream, fully_closed=True)
            raise
        return stream

    async def accept_stream(self) -> YamuxStream:
        stream = await super().accept_stream()
        assert isinstance(stream, YamuxStream)
        return CuredStream.adopt(stream)

    def take_slot(self) -> bool:
        of_peer = [s for s in self.streams.values() if not s.is_initiator and s.stream_id not in self._closing]
        if len(of_peer) >= MAX_STREAMS or self._serving >= MAX_SERVING:
            return False
        self._serving += 1
        return True

    def slot_is_free(self) -> None:
        """The handler of a stream that the peer opened has ended."""
        self._serving -= 1

    async def refuse(self, stream_id: int) -> None:
        stream = self.streams.get(stream_id)
        if stream is not None:
            await stream.reset()
        else:
            await self._write_frame(_control(FLAG_RST, stream_id))

    def data_was_read(self) -> None:
        self._read.set()

    async def wait_for_readers(self) -> None:
        with anyio.move_on_after(STALL_TIMEOUT) as patience:
            while sum(map(len, self.stream_buffers.values())) > MAX_CONNECTION_UNREAD:
                self._read = anyio.Event()
                await self._read.wait()
        if patience.cancelled_caught:
            raise IOException(f"{MAX_CONNECTION_UNREAD:,} bytes from the peer wait for readers that do not come")

    def may_grow(self, extra: int) -> bool:
        """Whether the windows of all streams together may exceed their initial size by `extra` bytes more."""
        grown = sum(stream.target_recv_window - DEFAULT_WINDOW_SIZE for stream in self.streams.values())
        return grown + extra <= MAX_STREAM_WINDOW

    async def close(self, error_code: int = GO_AWAY_NORMAL) -> None:
        with anyio.CancelScope(shield=True):
            if not self._leaving and not self.event_shutting_down.is_set():
                self._leaving = True
                with anyio.move_on_after(FAREWELL):
                    async with self._write_lock:
                        await self.secured_conn.write(
                            struct.pack(YAMUX_HEADER_FORMAT, 0, TYPE_GO_AWAY, 0, 0, error_code)
                        )
                    # Hanging up with data of the peer unread would make TCP take back what we have sent.
                    await self.event_closed.wait()
            await self._cleanup_on_error()

    async def start(self) -> None:
        try:
            await super().start()
        finally:
            with anyio.CancelScope(shield=True):
                await self._cleanup_on_error()

    async def handle_incoming(self) -> None:
        self._reader = trio.lowlevel.current_task()
        assert self._nursery is not None
        self._nursery.start_soon(self._answer_loop)
        await super().handle_incoming()

    async def _write_frame(self, data: bytes) -> None:
        if trio.lowlevel.current_task() is self._reader:
            # The reading loop waits for nobody; whatever it sends is a header.
            if len(self._answers) >= MAX_ANSWERS:
                self.event_shutting_down.set()  # or else the loop would go on
                raise ConnectionClosedError("the peer makes us answer and does not read the answers")
            self._answers.append(data)
            self._answers_wanted.set()
            return
        async with self._write_lock:
            if self.event_shutting_down.is_set():
                raise ConnectionClosedError("the connection is closed")
            # A frame is sent whole or not at all; the peer could decrypt nothing after half of one.
            with anyio.CancelScope(deadline=anyio.current_time() + STALL_TIMEOUT, shield=True) as patience:
                await self.secured_conn.write(data)
        if patience.cancelled_caught:
            log.info("hanging up on peer %s: it has taken nothing for %g s", self.peer_id, STALL_TIMEOUT)
            await self._cleanup_on_error()
            raise ConnectionClosedError("the peer takes nothing")

    async def _answer_loop(self) -> None:
        while not self.event_shutting_down.is_set():
            while not self._answers:
                self._answers_wanted = anyio.Event()
                await self._answers_wanted.wait()
            batch = b"".join(self._answers.popleft() for _ in range(min(len(self._answers), MAX_BATCH)))
            try:
                await self._write_frame(batch)
            except Exception as error:  # noqa: BLE001 - the layers below raise anything on a broken connection
                log.debug("answering peer %s: %r", self.peer_id, error)
                return

    def _finalize_stream_locked(self, stream: YamuxStream, *, fully_closed: bool) -> None:
        if not fully_closed and not (isinstance(stream, CuredStream) and stream.discarding):
            return
        super()._finalize_stream_locked(stream, fully_closed=fully_closed)
        if stream.stream_id not in self.streams:
            self._closing.pop(stream.stream_id, None)
        elif isinstance(stream, CuredStream) and stream.discarding:
            self._closing[stream.stream_id] = stream

    async def _finalize_stream(self, stream: YamuxStream, *, fully_closed: bool) -> None:
        await super()._finalize_stream(stream, fully_closed=fully_closed)
        while len(self._closing) > MAX_CLOSING:
            _, oldest = self._closing.popitem(last=False)
            await oldest.reset()

    async def _cleanup_on_error(self) -> None:
        if self._cleaned:
            return
        self._cleaned = True
        streams = list(self.streams.values())
        self.event_shutting_down.set()
        for stream in streams:
            if isinstance(stream, CuredStream):
                stream.wake()
        self._read.set()
        await super()._cleanup_on_error()


def _control(flags: int, stream_id: int) -> bytes:
    return struct.pack(YAMUX_HEADER_FORMAT, 0, TYPE_WINDOW_UPDATE, flags, stream_id, 0)
