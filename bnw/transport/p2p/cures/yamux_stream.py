"""A Yamux stream that waits for its window, grants windows sparingly, and can tell an end from a reset.

Faults (libp2p 0.8.1):

- a writer looks for a new window every 10 ms, and fails after 5 s without one: a reader that pauses kills the transfer;
- nearly every `read()` sends a WINDOW_UPDATE, single bytes of a length prefix included;
- windows grow to 16 MiB each;
- a reader that waits when its stream is reset sees the end of the data instead, and what arrived before the end of a
  connection is lost to it;
- `close` leaves unread data and the stream itself in place until the peer ends it as well.

On the stock library: tests/transport/test_yamux.py.

Can go when these are cured upstream; nothing else here depends on it.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Self

import anyio
from libp2p.stream_muxer.exceptions import MuxedStreamEOF, MuxedStreamError, MuxedStreamReset
from libp2p.stream_muxer.yamux.yamux import TYPE_DATA, YAMUX_HEADER_FORMAT, YamuxStream

from bnw.transport.bounds import MAX_PIECE, STALL_TIMEOUT
from bnw.transport.tasks import log

if TYPE_CHECKING:
    from bnw.transport.p2p.cures.yamux import CuredYamux


class MuxedStreamStalled(MuxedStreamError):
    """The peer has granted no window for `STALL_TIMEOUT` seconds."""


class CuredStream(YamuxStream):
    conn: CuredYamux
    finished: bool
    """The peer has said that it sends nothing more, and everything before has arrived."""
    discarding: bool
    """We have closed the stream, and want nothing of what still comes."""

    def __init__(self, stream_id: int, conn: CuredYamux, is_initiator: bool) -> None:
        super().__init__(stream_id, conn, is_initiator)
        self._equip(bytearray())

    @classmethod
    def adopt(cls, stream: YamuxStream) -> Self:
        """Cure a stream that `handle_incoming` has made, since it cannot be told which class to make."""
        if not isinstance(stream, cls):
            # Neither class has slots, and this one only adds methods and the attributes that `_equip` sets.
            stream.__class__ = cls
            assert isinstance(stream, cls)
            stream._equip(stream.conn.stream_buffers.get(stream.stream_id, bytearray()))
        return stream

    def _equip(self, buffer: bytearray) -> None:
        # Held here too, because the connection forgets its table of buffers when it ends.
        self.buffer = buffer
        self.finished = self.recv_closed
        self.discarding = False
        self._sending = anyio.Lock()
        self._changed = anyio.Event()

    def wake(self) -> None:
        """Something about the stream has changed: let its reader and its writer look again."""
        self._changed.set()
        self._changed = anyio.Event()

    @property
    def lost(self) -> bool:
        return self.reset_received or self.discarding or self.conn.event_shutting_down.is_set()

    async def read(self, n: int | None = -1) -> bytes:
        while not self.buffer:
            if self.finished:
                raise MuxedStreamEOF("the peer has finished")
            if self.lost:
                raise MuxedStreamReset("the stream was reset")
            await self._changed.wait()
        count = len(self.buffer) if n is None or n < 0 else n
        piece = bytes(self.buffer[:count])
        del self.buffer[:count]
        self.conn.data_was_read()
        if self.closed and not self.buffer:
            await self.conn._finalize_stream(self, fully_closed=True)
        elif not self.finished and not self.lost:
            await self._auto_tune_and_send_window_update(bytes_read=len(piece))
        return piece

    async def write(self, data: bytes) -> None:
        async with self._sending:
            rest = memoryview(data)
            while rest:
                if self.send_closed or self.lost:
                    raise MuxedStreamReset("the stream was reset")
                if self.send_window <= 0:
                    await self._wait_for_window()
                    continue
                size = min(len(rest), self.send_window, MAX_PIECE)
                header = struct.pack(YAMUX_HEADER_FORMAT, 0, TYPE_DATA, 0, self.stream_id, size)
                await self.conn._write_frame(header + rest[:size])
                # After, as `_write_frame` can be cancelled before it has sent anything, and not later.
                self.send_window -= size
                rest = rest[size:]

    async def reset(self) -> None:
        self.buffer.clear()
        self.conn.data_was_read()
        await super().reset()
        self.wake()

    async def discard(self) -> None:
        """Want no more of the peer: free what it has sent, and refuse what it sends from now on."""
        self.discarding = True
        self.buffer.clear()
        self.conn.data_was_read()
        await self.conn._finalize_stream(self, fully_closed=self.closed)
        self.wake()

    async def _wait_for_window(self) -> None:
        with anyio.move_on_after(STALL_TIMEOUT) as patience:
            while self.send_window <= 0 and not self.lost and not self.send_closed:
                await self._changed.wait()
        if patience.cancelled_caught:
            raise MuxedStreamStalled(f"the peer has read nothing for {STALL_TIMEOUT:g} s")

    async def _auto_tune_and_send_window_update(self, *, bytes_read: int = 0) -> None:
        due = self.target_recv_window - (self.recv_window + len(self.buffer))
        if due < self.target_recv_window // 2:
            return
        self.recv_window += due
        due += self._apply_autotune_epoch(len(self.buffer))
        try:
            await self.send_window_update(due)
        except Exception as error:  # noqa: BLE001 - the layers below raise anything on a broken connection
            # What was read is good all the same; the next call will say that the connection is gone.
            log.debug("no window update to peer %s: %r", self.conn.peer_id, error)

    def _apply_autotune_epoch(self, buffered: int) -> int:
        return super()._apply_autotune_epoch(buffered) if self.conn.may_grow(self.target_recv_window) else 0
