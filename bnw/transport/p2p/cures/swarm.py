"""A swarm that strangers can neither fill up nor end.

Faults (libp2p 0.8.1):

- an inbound connection occupies its slot for the life of the process: after 250 of them, however short, nobody can
  connect any more;
- connections that never shake hands occupy all slots until they time out;
- a refusal for want of slots comes after the handshake, so that the refused side believes that it is connected;
- it dials peers of its own choice, and remembers every peer that ever disconnected;
- of two connections with one peer the older is used, though a peer that connects again has lost the older one;
- cancelling the opening of a stream leaks the stream;
- the multiplexer class that it was given is ignored for Yamux;
- closing takes 0.2 s per connection, one after the other.

On the stock library: tests/transport/test_crash_frames.py.

Can go when these are cured upstream.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from typing import TYPE_CHECKING

import anyio
from libp2p.abc import IMuxedConn, INetConn, INetStream, IPeerStore, ISecureConn
from libp2p.crypto.keys import KeyPair
from libp2p.custom_types import TProtocol
from libp2p.io.abc import ReadWriteCloser
from libp2p.network.auto_connector import AutoConnector
from libp2p.network.config import ConnectionConfig, RetryConfig
from libp2p.network.connection.raw_connection import RawConnection
from libp2p.network.connection.swarm_connection import SwarmConn
from libp2p.network.exceptions import SwarmException
from libp2p.network.swarm import Swarm
from libp2p.peer.id import ID
from libp2p.protocol_muxer.exceptions import MultiselectClientError, MultiselectError
from libp2p.rcmgr import Direction
from libp2p.security.noise.transport import PROTOCOL_ID as NOISE
from libp2p.security.noise.transport import Transport as Noise
from libp2p.stream_muxer.yamux.yamux import PROTOCOL_ID as YAMUX
from libp2p.transport.exceptions import MuxerUpgradeFailure
from libp2p.transport.upgrader import TransportUpgrader
from multiaddr import Multiaddr

from bnw.transport.bounds import MAX_CONNECTIONS
from bnw.transport.p2p.cures.negotiation import bound_lines
from bnw.transport.p2p.cures.tcp import OwnPortListener, OwnPortTcp
from bnw.transport.p2p.cures.yamux import CuredYamux
from bnw.transport.tasks import log

if TYPE_CHECKING:
    from libp2p.crypto.keys import PrivateKey

HANDSHAKE_TIMEOUT = 10.0
"""Seconds from TCP to Yamux, for inbound connections."""

MAX_HALF_OPEN = 64
"""Inbound connections that have not shaken hands yet. One more displaces the oldest of the busiest source address."""

MAX_INBOUND = MAX_CONNECTIONS * 3 // 4
"""Inbound connections, so that strangers cannot use up the slots that we need in order to dial."""

MAX_PER_PEER = 3
"""One that each side dialled; and, for a moment, one that replaces another."""


class NoAutomaticDials(AutoConnector):
    async def maybe_connect(self) -> None:
        return

    def record_disconnect(self, peer_id: ID) -> None:
        return


class Upgrader(TransportUpgrader):
    """Noise and `CuredYamux`, and nothing else."""

    def __init__(self, key_pair: KeyPair, noise_key: PrivateKey) -> None:
        super().__init__({NOISE: Noise(key_pair, noise_key)}, {TProtocol(YAMUX): CuredYamux})
        bound_lines(self.security_multistream._selector)
        bound_lines(self.muxer_multistream._selector)

    async def upgrade_connection(self, conn: ISecureConn, peer_id: ID) -> IMuxedConn:
        try:
            await self.muxer_multistream._selector.select(conn, conn.is_initiator, int(HANDSHAKE_TIMEOUT))
        except (MultiselectError, MultiselectClientError) as error:
            raise MuxerUpgradeFailure("the peer does not speak Yamux") from error
        return CuredYamux(conn, peer_id, is_initiator=conn.is_initiator)


class ContainedSwarm(Swarm):
    def __init__(self, peer_id: ID, peerstore: IPeerStore, upgrader: Upgrader) -> None:
        limits = ConnectionConfig(
            max_connections=MAX_CONNECTIONS,
            min_connections=0,
            low_watermark=0,
            high_watermark=MAX_CONNECTIONS,
            max_connections_per_peer=MAX_PER_PEER,
            inbound_upgrade_timeout=HANDSHAKE_TIMEOUT,
        )
        super().__init__(
            peer_id,
            peerstore,
            upgrader,
            [OwnPortTcp()],
            retry_config=RetryConfig(max_retries=0),
            connection_config=limits,
        )
        self.auto_connector = NoAutomaticDials(self)
        self._half_open: OrderedDict[anyio.CancelScope, str] = OrderedDict()

    async def listen(self, *multiaddrs: Multiaddr) -> bool:
        """Listen at all addresses. Raises `LocalError`."""
        await self.event_background_nursery_created.wait()
        for address in multiaddrs:
            assert self.background_nursery is not None
            listener = OwnPortListener(self._accepted, self.background_nursery)
            await listener.listen(address)
            self.listeners[str(listener.get_addrs()[0])] = listener
        return True

    async def close(self) -> None:
        async with anyio.create_task_group() as tasks:
            for connection in self.get_connections():
                tasks.start_soon(self._close_connection_async, connection)
        await super().close()

    async def add_conn(self, muxed_conn: IMuxedConn, direction: str = "unknown") -> SwarmConn:
        peer = muxed_conn.peer_id
        if peer == self.self_id:
            await muxed_conn.close()
            raise SwarmException("this endpoint has connected to itself")
        added = await super().add_conn(muxed_conn, direction)
        connections = self.get_connections(peer)
        # Two nodes that dial each other at once must not each close the one that the other keeps; so one of each
        # direction stays. An older one of the same direction has been lost without our noticing.
        for older in connections[: connections.index(added)] if added in connections else []:
            if is_inbound(older) == is_inbound(added):
                self.manager.run_task(self._close_connection_async, older)
        return added

    async def _accepted(self, stream: ReadWriteCloser) -> None:
        await self._handle_inbound_connection(stream, Multiaddr("/ip4/0.0.0.0"))

    async def _handle_inbound_connection(self, read_write_closer: ReadWriteCloser, maddr: Multiaddr) -> None:
        remote = read_write_closer.get_remote_address()
        inbound = sum(is_inbound(c) for c in self.get_connections())
        if remote is None or inbound >= MAX_INBOUND:
            # Before the handshake, so that the other side cannot believe that it is connected.
            return
        slot = self._half_open_slot(remote[0], MAX_INBOUND - inbound)
        connection: IMuxedConn | None = None
        try:
            with slot, anyio.move_on_after(HANDSHAKE_TIMEOUT):
                connection = await self.upgrade_inbound_raw_conn(RawConnection(read_write_closer, False), maddr)
        except Exception as error:  # noqa: BLE001 - the layers below raise anything on a bad connection
            log.debug("an inbound connection from %s came to nothing: %r", remote[0], error)
        finally:
            self._half_open.pop(slot, None)
        if isinstance(connection, CuredYamux):
            # Returning closes the socket.
            await connection.event_closed.wait()

    def _half_open_slot(self, host: str, free: int) -> anyio.CancelScope:
        """A slot for a handshake, which is also the scope that ends it. `free` connections have room altogether."""
        if len(self._half_open) >= min(MAX_HALF_OPEN, free):
            busiest, _ = Counter(self._half_open.values()).most_common(1)[0]
            oldest = next(scope for scope, source in self._half_open.items() if source == busiest)
            del self._half_open[oldest]
            oldest.cancel()
        scope = anyio.CancelScope()
        self._half_open[scope] = host
        return scope

    def _select_connection(self, connections: list[INetConn], peer_id: ID) -> INetConn:
        return connections[-1]

    async def _open_stream_on_connection(
        self, connection: INetConn, connections: list[INetConn], peer_id: ID
    ) -> INetStream:
        assert isinstance(connection, SwarmConn)
        muxed = await connection.muxed_conn.open_stream()
        with anyio.CancelScope(shield=True):
            stream: INetStream = await connection._add_stream(muxed)
        return stream


def is_inbound(connection: INetConn) -> bool:
    """Whether the peer dialled."""
    return isinstance(connection, SwarmConn) and connection.direction is Direction.INBOUND
