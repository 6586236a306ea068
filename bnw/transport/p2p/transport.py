"""The libp2p endpoint: host, gossip and connections behind the transport contract."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from types import TracebackType
from typing import Self

import anyio
import anyio.lowlevel
from libp2p.abc import INetStream
from libp2p.custom_types import TProtocol
from libp2p.network.stream.net_stream import NetStream
from libp2p.peer.id import ID
from libp2p.peer.peerstore import PeerStore
from multiaddr import Multiaddr

from bnw.transport.interface import (
    MessageHandler,
    PeerId,
    PeerInfo,
    Stream,
    StreamHandler,
    TransportEvent,
    Validator,
)
from bnw.transport.p2p.addresses import dialable, endpoint_of, parse_announced_address, parse_listen_address
from bnw.transport.p2p.connections import Connections
from bnw.transport.p2p.cures.host import ContainedHost, ProtocolRefused
from bnw.transport.p2p.cures.swarm import ContainedSwarm, Upgrader
from bnw.transport.p2p.gossip import Gossip
from bnw.transport.p2p.keys import key_pair_from_seed, noise_key, peer_id_of, to_libp2p
from bnw.transport.p2p.stream import HostStream
from bnw.transport.tasks import background_tasks, serve_stream
from bnw.wire.environment import Environment
from bnw.wire.errors import RemoteError


class P2PTransport:
    """Implements `bnw.transport.interface.Transport` with TCP, Noise, Yamux and gossipsub 1.1.

        async with P2PTransport(seed=seed, listen=["/ip4/0.0.0.0/tcp/4001"], environment=environment) as transport:
            ...

    `seed` is the 32-byte seed of the Ed25519 transport key. `listen` may be empty: such an endpoint dials and is not
    dialled. `announce` replaces the addresses that we tell others, for a node behind a port forwarding. Entering raises
    `LocalError`: `port-in-use`, `address` or `key`. Needs the trio backend.
    """

    def __init__(
        self, *, seed: bytes, listen: Sequence[str], environment: Environment, announce: Sequence[str] = ()
    ) -> None:
        self._key_pair = key_pair_from_seed(seed)
        self._peer_id = peer_id_of(self._key_pair)
        self._listen = tuple(listen)
        self._announce = tuple(announce)
        self._environment = environment
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> Self:
        listen = [Multiaddr(parse_listen_address(address).multiaddr()) for address in self._listen]
        announce = [parse_announced_address(address) for address in self._announce]
        peerstore = PeerStore()
        own_id = to_libp2p(self._peer_id)
        peerstore.add_key_pair(own_id, self._key_pair)
        upgrader = Upgrader(self._key_pair, noise_key(self._environment.random_bytes(32)))
        self._swarm = ContainedSwarm(own_id, peerstore, upgrader)
        self._host = ContainedHost(self._swarm, announce or None)
        self._connections = Connections(self._swarm)
        async with AsyncExitStack() as stack:
            self._tasks = await stack.enter_async_context(background_tasks())
            await stack.enter_async_context(self._host.run(listen))
            stack.push_async_callback(self._leave)
            self._gossip = await stack.enter_async_context(Gossip.running(self._host, self._hang_up))
            self._stack = stack.pop_all()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if error is None:
            await self._gossip.drain()
        # Without the error: an exception of the body must not come back as a group from the task groups below.
        await self._stack.aclose()

    @property
    def peer_id(self) -> PeerId:
        return self._peer_id

    @property
    def addresses(self) -> tuple[str, ...]:
        if self._announce:
            plain = [address.removesuffix(f"/p2p/{self._peer_id}") for address in self._announce]
        else:
            listening = [endpoint_of(address) for address in self._host.get_transport_addrs()]
            plain = [endpoint.multiaddr() for each in listening for endpoint in dialable(each)]
        return tuple(f"{address}/p2p/{self._peer_id}" for address in plain)

    def peers(self) -> tuple[PeerInfo, ...]:
        return self._connections.peers()

    async def dial(self, address: str, *, timeout: float = 10.0) -> PeerId:
        await anyio.lowlevel.checkpoint()
        return await self._connections.dial(address, timeout)

    async def disconnect(self, peer: PeerId) -> None:
        await anyio.lowlevel.checkpoint()
        await self._connections.disconnect(to_libp2p(peer))

    async def open_stream(self, peer: PeerId, protocol: str, *, timeout: float = 10.0) -> Stream:
        await anyio.lowlevel.checkpoint()
        place = f"peer {peer}"
        if not self._connections.is_connected(peer):
            raise RemoteError("not-connected", "this peer is not connected", place=place)
        try:
            with anyio.move_on_after(timeout):
                stream = await self._host.new_stream(to_libp2p(peer), [TProtocol(protocol)])
                assert isinstance(stream, NetStream)
                return HostStream(stream)
        except ProtocolRefused:
            raise RemoteError("protocol", f"the peer does not speak {protocol}", place=place) from None
        except Exception:  # noqa: BLE001 - libp2p raises whatever the layer raises that broke
            raise RemoteError("stream-closed", "the peer closed the stream", place=place) from None
        if self._connections.has_free_stream(peer):
            raise RemoteError("stream-stalled", f"no answer within {timeout:g} s", place=place)
        raise RemoteError("busy", f"no stream became free within {timeout:g} s", place=place)

    def serve(self, protocol: str, handler: StreamHandler) -> None:
        async def handle(stream: INetStream) -> None:
            assert isinstance(stream, NetStream)
            await serve_stream(HostStream(stream), handler)

        self._host.set_stream_handler(TProtocol(protocol), handle)

    async def publish(self, topic: str, data: bytes) -> None:
        await self._gossip.publish(topic, data)

    async def subscribe(self, topic: str, validator: Validator, handler: MessageHandler) -> None:
        await self._gossip.subscribe(topic, validator, handler)

    def events(self) -> AbstractAsyncContextManager[AsyncIterator[TransportEvent]]:
        return self._connections.feed.open()

    def _hang_up(self, peer: ID) -> None:
        self._tasks.start_soon(self._connections.disconnect, peer)

    async def _leave(self) -> None:
        """Close the host before its context ends, or libp2p leaves the port and the connections open."""
        self._connections.feed.close()
        with anyio.CancelScope(shield=True):
            await self._host.close()
