"""Connections: what py-libp2p 0.8.1 gets wrong without anybody meaning harm, and we do not."""

from __future__ import annotations

import socket

import anyio
import pytest
from libp2p.abc import INetStream
from libp2p.custom_types import TProtocol
from libp2p.network.exceptions import SwarmException
from libp2p.peer.peerinfo import info_from_p2p_addr
from libp2p.stream_muxer.yamux.yamux import PROTOCOL_ID, Yamux
from multiaddr import Multiaddr
from stock_host import stock_host
from worlds import ECHO, P2PWorld, ask_echo, connect, echo, until

from bnw.transport.interface import PeerDisconnected, Stream
from bnw.transport.p2p.cures.swarm import Upgrader
from bnw.transport.p2p.keys import key_pair_from_seed, noise_key
from bnw.transport.p2p.transport import P2PTransport
from bnw.wire.errors import RemoteError

pytestmark = pytest.mark.anyio

WHO = "/test/who/1"


async def test_two_stock_nodes_listen_at_one_port_without_noticing() -> None:
    """Cured by p2p/cures/tcp.py; that our second node says so is shown in test_closing.py."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        address = Multiaddr(f"/ip4/127.0.0.1/tcp/{probe.getsockname()[1]}")
    (one, _), (other, _) = stock_host(), stock_host()
    async with one.run(listen_addrs=[address]), other.run(listen_addrs=[address]):
        assert one.get_addrs()[0].decapsulate_code(421) == other.get_addrs()[0].decapsulate_code(421)
        await one.close()
        await other.close()


async def test_a_peer_that_has_connected_again_is_reached_over_its_new_connection() -> None:
    """The peer has lost the older connection, as after a loss of power; we have not noticed. (p2p/cures/swarm.py)"""
    world = P2PWorld()

    async def old(stream: Stream) -> None:
        await stream.send(b"old")

    async def new(stream: Stream) -> None:
        await stream.send(b"new")

    async with world.endpoint("a") as a, world.endpoint("b") as before:
        before.serve(WHO, old)
        await connect(before, a)
        async with a.events() as events:
            async with world.endpoint("b") as after:
                after.serve(WHO, new)
                await after.dial(a.addresses[0])
                await until(lambda: not before.peers())
                stream = await a.open_stream(after.peer_id, WHO)
                assert await stream.receive() == b"new"
                assert len(a.peers()) == 1
            assert await anext(events) == PeerDisconnected(before.peer_id), "and it was never away"


async def test_the_multiplexer_that_we_give_is_the_one_that_is_used() -> None:
    """On the stock library it is not, which is why `Upgrader` makes it. (p2p/cures/swarm.py)"""

    class Ours(Yamux):
        pass

    host, listen = stock_host()
    host.get_network().upgrader.muxer_multistream.add_transport(TProtocol(PROTOCOL_ID), Ours)  # type: ignore[attr-defined]  # reaches into libp2p's host
    async with host.run(listen_addrs=listen), P2PWorld().endpoint("a") as a:
        await host.connect(info_from_p2p_addr(Multiaddr(a.addresses[0])))
        (connection,) = host.get_network().get_connections()
        assert type(connection.muxed_conn) is Yamux
        await host.close()


async def test_only_noise_and_yamux_are_offered() -> None:
    upgrader = Upgrader(key_pair_from_seed(bytes(32)), noise_key(bytes(range(32))))
    assert list(upgrader.security_multistream.transports) == ["/noise"]
    assert list(upgrader.muxer_multistream.transports) == ["/yamux/1.0.0"]


async def test_only_the_stock_swarm_dials_whom_it_happens_to_know_an_address_of() -> None:
    """Cured by p2p/cures/swarm.py."""
    host, listen = stock_host()
    async with host.run(listen_addrs=listen), P2PWorld().endpoint("a") as a, P2PWorld().endpoint("b") as b:
        assert isinstance(a, P2PTransport)
        assert isinstance(b, P2PTransport)
        for swarm, dials in ((a._swarm, False), (host.get_network(), True)):
            swarm.peerstore.add_addrs(b._swarm.get_peer_id(), b._host.get_transport_addrs(), 1000)
            await swarm.auto_connector.maybe_connect()  # type: ignore[attr-defined]  # reaches into libp2p's host
            assert bool(b.peers()) == dials
        await host.close()


async def test_what_peers_say_of_themselves_is_neither_asked_for_nor_kept() -> None:
    """The stock host asks each peer and keeps its addresses for two hours. (p2p/cures/host.py)"""
    host, listen = stock_host()
    async with host.run(listen_addrs=listen), P2PWorld().endpoint("a") as a:
        assert isinstance(a, P2PTransport)
        a.serve(ECHO, echo)
        await a.dial(str(host.get_addrs()[0]))
        stock_knows = host.get_peerstore()
        await until(lambda: bool(_addresses(stock_knows, a)))
        assert a._host.get_peerstore().peer_ids() == [a._host.get_id()]
        await host.close()


def _addresses(peerstore: object, node: P2PTransport) -> list[object]:
    try:
        return list(peerstore.addrs(node._host.get_id()))  # type: ignore[attr-defined]  # reaches into libp2p's host
    except Exception:
        return []


async def test_a_stream_to_a_peer_that_went_away_is_refused_and_not_dialled_for() -> None:
    async with P2PWorld().endpoint("a") as a, P2PWorld().endpoint("b") as b:
        assert isinstance(a, P2PTransport)
        b.serve(ECHO, echo)
        await a.dial(b.addresses[0])
        assert await ask_echo(a, b.peer_id, b"x") == b"x"
        await a.disconnect(b.peer_id)
        with pytest.raises(SwarmException):
            await a._host.new_stream(b._host.get_id(), [TProtocol(ECHO)])  # type: ignore[attr-defined]  # reaches into libp2p's host


async def test_a_peer_that_does_not_answer_a_proposal_is_stalled_and_not_busy() -> None:
    async with P2PWorld().endpoint("a") as a, P2PWorld().endpoint("b") as b:
        assert isinstance(b, P2PTransport)
        await a.dial(b.addresses[0])

        async def say_nothing(stream: INetStream) -> None:
            await anyio.sleep_forever()

        b._swarm.set_stream_handler(say_nothing)
        with pytest.raises(RemoteError) as caught:
            await a.open_stream(b.peer_id, ECHO, timeout=0.2)
        assert caught.value.code == "stream-stalled"


async def test_streams_are_closed_when_their_handler_returns() -> None:
    """Left open, they would use up the 256 slots of the peer. (p2p/cures/host.py)"""
    async with P2PWorld().endpoint("a") as a:
        assert isinstance(a, P2PTransport)

        async def return_at_once(stream: INetStream) -> None:
            return

        a._host.set_stream_handler(TProtocol("/test/return/1"), return_at_once)
        async with P2PWorld().endpoint("b") as b:
            await b.dial(a.addresses[0])
            stream = await b.open_stream(a.peer_id, "/test/return/1")
            assert await stream.receive() == b""
