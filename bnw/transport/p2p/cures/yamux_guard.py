"""Reads frame headers before Yamux does, and holds peers to the protocol.

Faults (libp2p 0.8.1): the receive window is announced but not enforced, so that a sender who ignores it fills our
memory (198 MiB were reached); streams are accepted without limit (20,000 took 236 MiB and stalled healthy peers for
28 s); a stream may be opened under one of our own numbers; FIN and RST on a frame that also carries ACK are overlooked.

On the stock library: tests/transport/test_crash_frames.py.

Can go when `Yamux.handle_incoming` enforces windows and bounds the streams of a peer.

`handle_incoming` asks its connection for 12 bytes and then, for data, for as many as the header has said. So the guard
is a connection that looks at what it returns.
"""

from __future__ import annotations

import struct
from typing import Protocol

from libp2p.io.exceptions import IOException
from libp2p.security.secure_session import SecureSession
from libp2p.stream_muxer.yamux.yamux import (
    DEFAULT_WINDOW_SIZE,
    FLAG_ACK,
    FLAG_FIN,
    FLAG_RST,
    FLAG_SYN,
    HEADER_SIZE,
    TYPE_DATA,
    TYPE_GO_AWAY,
    TYPE_WINDOW_UPDATE,
    YAMUX_HEADER_FORMAT,
    YamuxStream,
)

from bnw.transport.bounds import MAX_STREAM_WINDOW
from bnw.transport.p2p.cures.yamux_stream import CuredStream

MAX_REFUSED = 256
"""Streams refused in a row, for want of a slot, after which a peer must be ignoring the refusals."""


class Guarded(Protocol):
    """The Yamux connection, as its guard sees it."""

    streams: dict[int, YamuxStream]
    next_stream_id: int

    def take_slot(self) -> bool:
        """Whether a stream that the peer opens has room; if so it counts from now on."""
        ...

    async def wait_for_readers(self) -> None:
        """Until so little is unread that more data may come."""
        ...

    async def refuse(self, stream_id: int) -> None:
        """Tell the peer that the stream is reset."""
        ...


class GuardedSession(SecureSession):
    def __init__(self, session: SecureSession, connection: Guarded) -> None:
        super().__init__(
            local_peer=session.local_peer,
            local_private_key=session.local_private_key,
            remote_peer=session.remote_peer,
            remote_permanent_pubkey=session.remote_permanent_pubkey,
            is_initiator=session.is_initiator,
            conn=session.conn,
        )
        # Negotiation may have left the peer's first frames in the buffer, so it keeps reading.
        self._session = session
        self._connection = connection
        self._body_expected = False
        self._passed: tuple[YamuxStream | None, int, int] | None = None
        self._refused = 0

    async def read(self, n: int | None = None) -> bytes:
        if self._body_expected:
            self._body_expected = False
            return await self._session.read(n)
        self._after_passed()
        while True:
            header = await self._session.read(HEADER_SIZE)
            if len(header) < HEADER_SIZE:
                raise IOException("the connection ends within a frame")
            admitted = await self._admit(header)
            if admitted is not None:
                return admitted

    async def _admit(self, header: bytes) -> bytes | None:
        """The header for Yamux to see, or None if the frame has been dealt with."""
        version, kind, flags, stream_id, length = struct.unpack(YAMUX_HEADER_FORMAT, header)
        if version != 0 or kind > TYPE_GO_AWAY:
            raise IOException("this is no Yamux frame")
        if kind not in (TYPE_DATA, TYPE_WINDOW_UPDATE):
            return header
        stream = self._connection.streams.get(stream_id)
        window = MAX_STREAM_WINDOW if stream is None else stream.recv_window
        if flags & FLAG_SYN:
            if not await self._admit_stream(flags, stream_id):
                await self._drop(stream_id, length if kind == TYPE_DATA else 0)
                return None
            window = DEFAULT_WINDOW_SIZE
        if kind == TYPE_DATA and length:
            if isinstance(stream, CuredStream) and stream.finished and not stream.discarding:
                raise IOException("data after the end of a stream")
            if length > window:
                raise IOException(f"{length:,} bytes of data where the window allows {window:,}")
            if not flags & FLAG_SYN and _unwanted(stream):
                await self._drop(None if stream is None else stream_id, length)
                return None
            await self._connection.wait_for_readers()
            self._body_expected = True
        elif flags & FLAG_FIN and isinstance(stream, CuredStream):
            stream.finished = True
        if flags & FLAG_RST and isinstance(stream, CuredStream):
            stream.buffer.clear()  # what a reset leaves unread is nobody's; kept, it would also keep the stream
        self._passed = stream, stream_id, flags
        return struct.pack(YAMUX_HEADER_FORMAT, version, kind, flags & ~FLAG_ACK, stream_id, length)

    async def _admit_stream(self, flags: int, stream_id: int) -> bool:
        own = stream_id % 2 == self._connection.next_stream_id % 2
        if not stream_id or own or stream_id in self._connection.streams:
            raise IOException(f"the peer opens stream {stream_id}, which it cannot")
        if not flags & FLAG_RST and self._connection.take_slot():
            self._refused = 0
            return True
        self._refused += 1
        if self._refused > MAX_REFUSED:
            raise IOException("the peer opens streams faster than it heeds refusals")
        return False

    async def _drop(self, refused: int | None, length: int) -> None:
        """Read past `length` bytes that nobody wants, and say so for the stream `refused`."""
        if length > MAX_STREAM_WINDOW:
            raise IOException(f"{length:,} bytes of data in one frame")
        while length:
            length -= len(await self._session.read(min(length, DEFAULT_WINDOW_SIZE)))
        if refused is not None:
            await self._connection.refuse(refused)

    def _after_passed(self) -> None:
        """Yamux has worked off the frame passed last: tell its stream what the base class tells nobody."""
        if self._passed is None:
            return
        stream, stream_id, flags = self._passed
        self._passed = None
        stream = stream or self._connection.streams.get(stream_id)
        if stream is not None:
            cured = CuredStream.adopt(stream)
            cured.finished = cured.finished or bool(flags & FLAG_FIN)
            cured.wake()


def _unwanted(stream: YamuxStream | None) -> bool:
    return stream is None or (isinstance(stream, CuredStream) and stream.discarding)
