"""A libp2p stream behind the stream contract."""

from __future__ import annotations

import anyio.lowlevel
from libp2p.network.stream.exceptions import StreamEOF
from libp2p.network.stream.net_stream import NetStream

from bnw.transport.bounds import MAX_PIECE, STALL_TIMEOUT
from bnw.transport.interface import PeerId
from bnw.transport.p2p.cures.host import abandon, finish
from bnw.transport.p2p.cures.yamux_stream import MuxedStreamStalled
from bnw.wire.errors import LocalError, RemoteError


class HostStream:
    def __init__(self, stream: NetStream) -> None:
        self._stream = stream
        self._peer = PeerId(stream.muxed_conn.peer_id.to_base58())
        self._closed = False
        self._sent_eof = False

    @property
    def peer(self) -> PeerId:
        return self._peer

    @property
    def protocol(self) -> str:
        return str(self._stream.get_protocol())

    async def receive(self, max_bytes: int = 65536) -> bytes:
        await anyio.lowlevel.checkpoint()
        self._refuse_if_closed()
        try:
            return await self._stream.read(max_bytes)
        except StreamEOF:
            return b""
        except Exception as error:  # noqa: BLE001 - libp2p raises whatever the layer raises that broke
            raise self._failed(error) from None

    async def send(self, data: bytes) -> None:
        await anyio.lowlevel.checkpoint()
        self._refuse_if_closed()
        if self._sent_eof:
            raise LocalError("stream-ended", "nothing can be sent after send_eof", place=self._place)
        try:
            for start in range(0, len(data), MAX_PIECE):
                await self._stream.write(data[start : start + MAX_PIECE])
        except Exception as error:  # noqa: BLE001 - likewise
            raise self._failed(error) from None

    async def send_eof(self) -> None:
        await anyio.lowlevel.checkpoint()
        self._refuse_if_closed()
        if self._sent_eof:
            return
        self._sent_eof = True
        try:
            await self._stream.close_write()
        except Exception as error:  # noqa: BLE001 - likewise
            raise self._failed(error) from None

    async def aclose(self) -> None:
        if not self._closed:
            self._closed = True
            await finish(self._stream)

    async def reset(self) -> None:
        if not self._closed:
            self._closed = True
            await abandon(self._stream)

    @property
    def _place(self) -> str:
        return f"stream of {self.protocol} with peer {self._peer}"

    def _refuse_if_closed(self) -> None:
        if self._closed:
            raise LocalError("stream-ended", "the stream was closed here", place=self._place)

    def _failed(self, error: Exception) -> Exception:
        if self._closed:
            return LocalError("stream-ended", "the stream was closed here", place=self._place)
        if isinstance(error.__cause__, MuxedStreamStalled):
            return RemoteError(
                "stream-stalled", f"the peer has read nothing for {STALL_TIMEOUT:g} s", place=self._place
            )
        return RemoteError("stream-closed", "the peer reset the stream or went away", place=self._place)
