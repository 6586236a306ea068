"""One node's endpoint on a memory network."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from functools import partial
from typing import TYPE_CHECKING

import anyio
import anyio.lowlevel
from anyio.abc import TaskGroup

from bnw.transport.bounds import MAX_CONNECTIONS
from bnw.transport.feed import EventFeed
from bnw.transport.interface import (
    MessageHandler,
    PeerConnected,
    PeerDisconnected,
    PeerId,
    PeerInfo,
    Stream,
    StreamHandler,
    TransportEvent,
    Validator,
)
from bnw.transport.memory.dialling import Dialling, parse_address, to_address
from bnw.transport.memory.gossip import Gossip
from bnw.transport.memory.peering import Peering
from bnw.transport.memory.stream import MemoryStream
from bnw.transport.tasks import serve_stream
from bnw.wire.content_id import ContentId
from bnw.wire.errors import LocalError, RemoteError

if TYPE_CHECKING:
    from bnw.transport.memory.network import MemoryNetwork


class MemoryEndpoint:
    """Implements `bnw.transport.interface.Transport`. Methods named `on_...` are what a peer makes happen here."""

    def __init__(self, network: MemoryNetwork, name: str, tasks: TaskGroup) -> None:
        self.network = network
        self.name = name
        self.tasks = tasks
        self.traffic = network.traffic.of(name)
        self.vanished = False
        """Whether nothing that this endpoint sends arrives any more, because it has crashed."""
        self.gossip = Gossip(self)
        self._feed: EventFeed[TransportEvent] = EventFeed()
        self._handlers: dict[str, StreamHandler] = {}
        self._peerings: dict[PeerId, Peering] = {}
        self._dialling: dict[PeerId, anyio.Lock] = {}

    @property
    def peer_id(self) -> PeerId:
        return PeerId(self.name)

    @property
    def addresses(self) -> tuple[str, ...]:
        return (to_address(self.peer_id),)

    def peers(self) -> tuple[PeerInfo, ...]:
        return tuple(PeerInfo(p.peer, (to_address(p.peer),), p.inbound) for p in self.peerings())

    def peerings(self) -> list[Peering]:
        """Connections in the order of peer ids."""
        return [self._peerings[peer] for peer in sorted(self._peerings)]

    def peering(self, peer: PeerId) -> Peering | None:
        return self._peerings.get(peer)

    async def dial(self, address: str, *, timeout: float = 10.0) -> PeerId:
        peer, expected = parse_address(address)
        if peer == self.peer_id:
            raise LocalError("address", "this is the address of this endpoint itself", place=address)
        await anyio.lowlevel.checkpoint()
        was_connected = peer in self._peerings
        if not was_connected:
            await self._connect(peer, address, timeout)
        if peer != expected:
            if not was_connected:
                await self.disconnect(peer)
            raise RemoteError("unreachable", f"the peer there is {peer}, not {expected}", place=address)
        return peer

    async def _connect(self, peer: PeerId, address: str, timeout: float) -> None:
        if len(self._peerings) >= MAX_CONNECTIONS:
            raise LocalError("busy", f"{MAX_CONNECTIONS} peers are connected, which is the limit of this endpoint")
        lock = self._dialling.setdefault(peer, anyio.Lock())
        try:
            with anyio.move_on_after(timeout):
                async with lock:
                    # Whoever waited here for another task's dial to the same peer finds the work done.
                    if peer not in self._peerings:
                        await Dialling(self, peer, address).run()
        finally:
            if not lock.locked():
                self._dialling.pop(peer, None)
        if peer not in self._peerings:
            raise RemoteError("unreachable", f"nobody answered within {timeout:g} s", place=address)

    async def disconnect(self, peer: PeerId) -> None:
        peering = self._peerings.get(peer)
        if peering is not None:
            self.hang_up(peering)
        await anyio.lowlevel.checkpoint()

    async def open_stream(self, peer: PeerId, protocol: str, *, timeout: float = 10.0) -> Stream:
        await anyio.lowlevel.checkpoint()
        peering = self._peerings.get(peer)
        if peering is None:
            raise RemoteError("not-connected", "this peer is not connected", place=f"peer {peer}")
        stream: MemoryStream | None = None
        accepted = False
        try:
            with anyio.move_on_after(timeout):
                stream = await peering.open(protocol)
                peering.answer(partial(peering.far.owner.on_open, peering.far, stream), stream.name, "open", protocol)
                await stream.opened()
                accepted = True
        finally:
            if stream is not None and not accepted:
                stream.drop()
        if stream is None:
            raise RemoteError("busy", f"no stream slot became free within {timeout:g} s", place=f"peer {peer}")
        if not accepted:
            raise RemoteError("stream-stalled", f"the peer did not answer within {timeout:g} s", place=f"peer {peer}")
        return stream

    def serve(self, protocol: str, handler: StreamHandler) -> None:
        self._handlers[protocol] = handler

    async def publish(self, topic: str, data: bytes) -> None:
        await self.gossip.publish(topic, data)

    async def subscribe(self, topic: str, validator: Validator, handler: MessageHandler) -> None:
        await self.gossip.subscribe(topic, validator, handler)

    def events(self) -> AbstractAsyncContextManager[AsyncIterator[TransportEvent]]:
        return self._feed.open()

    def on_dial(self, dialler: MemoryEndpoint) -> Peering | None:
        """Accept a connection. Returns the dialler's side of it, or None if there are too many here."""
        known = self._peerings.get(dialler.peer_id)
        if known is not None:
            if known.far.up and known.far.owner is dialler:
                return known.far
            # The dialler knows nothing of this connection: it gave up waiting for it, or was started anew.
            self.lose(known)
        # When two dial each other at once, the one that accepted first has made the connection for both.
        crossing = dialler.peering(self.peer_id)
        if crossing is not None and crossing.far.owner is self:
            self.come_up(crossing.far)
            return crossing
        if len(self._peerings) >= MAX_CONNECTIONS:
            return None
        theirs, mine = Peering.pair(dialler, self)
        self.come_up(mine)
        return theirs

    def on_open(self, peering: Peering, opener: MemoryStream) -> None:
        handler = self._handlers.get(opener.protocol)
        if handler is None:
            peering.answer(partial(opener.on_refused, "protocol"), opener.name, "refused")
            return
        stream = peering.accept(opener)
        if stream is None:
            peering.answer(partial(opener.on_refused, "busy"), opener.name, "refused")
            return
        peering.answer(partial(opener.on_accepted, stream), opener.name, "accepted")
        self.tasks.start_soon(serve_stream, stream, handler)

    def come_up(self, peering: Peering) -> None:
        """The connection exists from now on, as far as this side is concerned."""
        if self.vanished:
            # The answer to a dial from before the crash. Nobody is here any more to have the connection.
            self.network.lose_later(peering.far)
        elif not peering.up:
            if peering.peer in self._peerings:
                self.lose(self._peerings[peering.peer])
            peering.up = True
            self._peerings[peering.peer] = peering
            self.record("up", peering.peer)
            self._feed.put(PeerConnected(peering.peer))

    def hang_up(self, peering: Peering) -> None:
        """End the connection here and tell the other side."""
        peering.answer(partial(peering.far.owner.lose, peering.far), "hang up")
        self.lose(peering)

    def lose(self, peering: Peering) -> None:
        """The connection is over, as far as this side is concerned."""
        if peering.up:
            peering.go_down()
            del self._peerings[peering.peer]
            self.record("down", peering.peer)
            self._feed.put(PeerDisconnected(peering.peer))

    def vanish(self) -> list[Peering]:
        """Send nothing any more, and end all connections here. Returns them; the other sides know nothing yet."""
        peerings = self.peerings()
        self.vanished = True
        for peering in peerings:
            self.lose(peering)
        return peerings

    def close(self) -> None:
        for peering in self.peerings():
            self.hang_up(peering)
        self._feed.close()

    def count_lost_gossip(self) -> None:
        self.network.traffic.gossip_lost += 1

    def count_marked_gossip(self, id: ContentId) -> None:
        """Count a message that arrived from here if it is one of those to be watched."""
        traffic = self.network.traffic
        if id in traffic.marked:
            traffic.marked_from[self.name] = traffic.marked_from.get(self.name, 0) + 1

    def loses_gossip_to(self, peer: PeerId) -> bool:
        return self.network.loses_gossip(self.name, peer)

    def record(self, *what: object) -> None:
        self.network.record(self.name, *what)
