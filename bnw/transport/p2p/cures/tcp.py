"""TCP that owns its port, reads in large pieces, and notices vanished peers.

Faults (libp2p 0.8.1), each visible with two lines of code on the stock library:

- listening uses SO_REUSEPORT: two nodes can listen at one port and each gets half of the other's connections;
- why listening failed is lost;
- each two-byte length prefix is a system call, and a Noise message that arrives in more than 100 pieces is given up;
- `read(n)` hands any `n` that a peer has named to the operating system;
- the remote address of an IPv6 connection is unknown;
- the accepting task is a system task of Trio: a failure in it is reported as a bug in Trio and ends the program.

Can go when a listener can be told not to share its port, and reads are buffered.
"""

from __future__ import annotations

import errno
import socket
from collections.abc import Awaitable, Callable

import anyio
import trio
from libp2p.abc import IRawConnection
from libp2p.io.abc import ReadWriteCloser
from libp2p.io.exceptions import IOException
from libp2p.io.trio import TrioTCPStream
from libp2p.network.connection.raw_connection import RawConnection
from libp2p.transport.exceptions import OpenConnectionError
from libp2p.transport.tcp.tcp import TCP, TCPListener
from multiaddr import Multiaddr

from bnw.transport.p2p.addresses import endpoint_of
from bnw.wire.errors import LocalError

READ_SIZE = 256 * 1024
MAX_READ = 65_535
"""What may be asked for at once: the largest Noise message."""

HAPPY_EYEBALLS_DELAY = 0.05
"""Seconds of head start that one address of a host name gets before the next is tried as well (RFC 8305 section 5)."""

KEEPALIVE = (("TCP_KEEPIDLE", 30), ("TCP_KEEPINTVL", 10), ("TCP_KEEPCNT", 3))
"""Seconds of silence before the kernel asks whether the peer is there, seconds between questions, and how many."""

Handler = Callable[[ReadWriteCloser], Awaitable[None]]


class TcpStream(TrioTCPStream):
    """A connected socket. `read(n)` returns exactly `n` bytes unless the stream ends before."""

    def __init__(self, stream: trio.SocketStream) -> None:
        super().__init__(stream)
        self._buffer = bytearray()
        self._remote: tuple[str, int] | None = None
        try:
            self._remote = stream.socket.getpeername()[:2]
            stream.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            for name, value in KEEPALIVE:
                if hasattr(socket, name):
                    stream.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
        except OSError:
            # The peer has hung up already, which the first read will tell.
            return

    async def read(self, n: int | None = None) -> bytes:
        wanted = 1 if n is None else n
        if wanted > MAX_READ:
            raise IOException(f"a message of {wanted:,} bytes is announced where at most {MAX_READ:,} are allowed")
        while len(self._buffer) < wanted:
            received = await super().read(READ_SIZE)
            if not received:
                break
            self._buffer += received
        count = len(self._buffer) if n is None else n
        piece = bytes(self._buffer[:count])
        del self._buffer[:count]
        return piece

    def get_remote_address(self) -> tuple[str, int] | None:
        return self._remote


class OwnPortListener(TCPListener):
    """Serves until `close`, in `nursery`."""

    def __init__(self, handler: Handler, nursery: trio.Nursery) -> None:
        super().__init__(handler)
        self._tasks = nursery

    async def listen(self, maddr: Multiaddr) -> None:
        """Raises `LocalError`: `port-in-use`, or `address` for one that this machine does not have."""
        endpoint = endpoint_of(maddr)
        try:
            (listener,) = await trio.open_tcp_listeners(endpoint.port, host=endpoint.host)
        except OSError as error:
            raise _listening_failed(maddr, error) from None
        self.listeners.append(listener)
        self._scope = anyio.CancelScope()
        self._tasks.start_soon(self._serve, listener)

    async def close(self) -> None:
        if self.listeners:
            self._scope.cancel()
        for listener in self.listeners:
            await listener.aclose()
        self.listeners.clear()

    async def _serve(self, listener: trio.SocketListener) -> None:
        with self._scope:
            await trio.serve_listeners(self._handle, [listener])

    async def _handle(self, stream: trio.SocketStream) -> None:
        await self.handler(TcpStream(stream))


class OwnPortTcp(TCP):
    """Dials; `ContainedSwarm.listen` makes the listeners."""

    async def dial(self, maddr: Multiaddr) -> IRawConnection:
        endpoint = endpoint_of(maddr)
        try:
            stream = await trio.open_tcp_stream(endpoint.host, endpoint.port, happy_eyeballs_delay=HAPPY_EYEBALLS_DELAY)
        except OSError as error:
            raise OpenConnectionError(f"connecting failed: {_reason(error)}") from error
        return RawConnection(TcpStream(stream), True)


def _listening_failed(address: Multiaddr, error: OSError) -> LocalError:
    if error.errno == errno.EADDRINUSE:
        return LocalError(
            "port-in-use",
            "another program listens there already",
            place=str(address),
            cure="stop that program, or choose another port (/tcp/0 takes any that is free)",
        )
    return LocalError("address", f"cannot listen there: {_reason(error)}", place=str(address))


def _reason(error: OSError) -> str:
    """Why connecting failed. Trio raises one `OSError` from the errors of all addresses that it tried."""
    cause: BaseException = error.__cause__ or error
    while isinstance(cause, BaseExceptionGroup):
        cause = cause.exceptions[0]
    return (isinstance(cause, OSError) and cause.strerror) or str(cause)
