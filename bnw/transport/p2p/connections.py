"""Connections behind the transport contract: dialling, peers, and events."""

from __future__ import annotations

import anyio
from libp2p.abc import INetConn, INetStream, INetwork, INotifee
from libp2p.peer.id import ID
from multiaddr import Multiaddr

from bnw.transport.bounds import MAX_CONNECTIONS
from bnw.transport.feed import EventFeed
from bnw.transport.interface import PeerConnected, PeerDisconnected, PeerId, PeerInfo, TransportEvent
from bnw.transport.p2p.addresses import parse_dial_address
from bnw.transport.p2p.cures.swarm import ContainedSwarm, is_inbound
from bnw.transport.p2p.cures.yamux import CuredYamux
from bnw.transport.p2p.keys import to_libp2p
from bnw.transport.tasks import log
from bnw.wire.errors import ExitStatus, LocalError, RemoteError


class Connections(INotifee):
    """The swarm calls the methods of `INotifee`; events are fed from there."""

    def __init__(self, swarm: ContainedSwarm) -> None:
        self.feed: EventFeed[TransportEvent] = EventFeed()
        self._swarm = swarm
        self._own_id = PeerId(swarm.get_peer_id().to_base58())
        self._announced: set[ID] = set()
        self._dialling: dict[PeerId, anyio.Lock] = {}
        swarm.register_notifee(self)

    def peers(self) -> tuple[PeerInfo, ...]:
        infos = []
        for peer in self._swarm.connections:
            if connections := self._of(peer):
                addresses = [f"{a}/p2p/{peer}" for c in connections for a in c.get_transport_addresses()]
                inbound = is_inbound(connections[-1])
                infos.append(PeerInfo(PeerId(peer.to_base58()), tuple(addresses), inbound))
        return tuple(sorted(infos, key=lambda info: info.peer))

    def is_connected(self, peer: PeerId) -> bool:
        return bool(self._of(to_libp2p(peer)))

    def has_free_stream(self, peer: PeerId) -> bool:
        """Whether the connection in use could open a stream at once."""
        *_, muxed = [None, *(connection.muxed_conn for connection in self._of(to_libp2p(peer)))]
        return isinstance(muxed, CuredYamux) and muxed.stream_backlog_semaphore.value > 0

    async def dial(self, address: str, timeout: float) -> PeerId:
        """See `Transport.dial`."""
        _, expected = parse_dial_address(address)
        if expected == self._own_id:
            raise LocalError("address", "this is the address of this endpoint itself", place=address)
        if self.is_connected(expected):
            return expected
        if len(self._swarm.connections) >= MAX_CONNECTIONS:
            raise LocalError("busy", f"{MAX_CONNECTIONS} peers are connected, which is the limit of this endpoint")
        reason = f"nobody answered within {timeout:g} s"
        lock = self._dialling.setdefault(expected, anyio.Lock())
        try:
            with anyio.move_on_after(timeout):
                async with lock:
                    # Whoever waited here for another task's dial to the same peer finds the work done.
                    if not self.is_connected(expected):
                        await self._swarm.dial_addr(Multiaddr(address), to_libp2p(expected))
        except Exception as error:  # noqa: BLE001 - libp2p raises anything on a bad connection
            reason = _explain(error)
            log.debug("dialling %s: %r", address, error)
        finally:
            if not lock.locked() and self._dialling.get(expected) is lock:
                del self._dialling[expected]
        if not self.is_connected(expected):
            raise RemoteError("unreachable", reason, place=address, exit_status=ExitStatus.UNREACHABLE)
        return expected

    async def disconnect(self, peer: ID) -> None:
        async with anyio.create_task_group() as tasks:
            for connection in self._of(peer):
                tasks.start_soon(self._swarm._close_connection_async, connection)

    async def connected(self, network: INetwork, conn: INetConn) -> None:
        peer = conn.muxed_conn.peer_id
        if peer not in self._announced:
            self._announced.add(peer)
            self.feed.put(PeerConnected(PeerId(peer.to_base58())))

    async def disconnected(self, network: INetwork, conn: INetConn) -> None:
        peer = conn.muxed_conn.peer_id
        if peer in self._announced and not self._of(peer):
            self._announced.discard(peer)
            self.feed.put(PeerDisconnected(PeerId(peer.to_base58())))

    async def opened_stream(self, network: INetwork, stream: INetStream) -> None:
        return

    async def closed_stream(self, network: INetwork, stream: INetStream) -> None:
        return

    async def listen(self, network: INetwork, multiaddr: Multiaddr) -> None:
        return

    async def listen_close(self, network: INetwork, multiaddr: Multiaddr) -> None:
        return

    def _of(self, peer: ID) -> list[INetConn]:
        return [connection for connection in self._swarm.get_connections(peer) if not connection.is_closed]


def _explain(error: BaseException) -> str:
    """A sentence about why connecting failed: the innermost cause that has a text."""
    text = ""
    current: BaseException | None = error
    while current is not None:
        if isinstance(current, BaseExceptionGroup):
            current = current.exceptions[0]
            continue
        text = str(current) or text
        current = current.__cause__
    return text or type(error).__name__
