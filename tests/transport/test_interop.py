"""Our endpoint and a stock py-libp2p host understand each other: handshakes, streams, identify, ping, gossip."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

import anyio
import pytest
from libp2p.abc import IHost, INetStream
from libp2p.custom_types import TProtocol
from libp2p.host.ping import PingService
from libp2p.identity.identify.pb.identify_pb2 import Identify
from libp2p.network.stream.exceptions import StreamEOF
from libp2p.peer.id import ID
from libp2p.peer.peerinfo import info_from_p2p_addr
from libp2p.pubsub.pubsub import Pubsub
from libp2p.tools.anyio_service import background_trio_service
from libp2p.utils.varint import read_varint_prefixed_bytes
from multiaddr import Multiaddr
from stock_host import stock_host, stock_pubsub
from worlds import ECHO, TOPIC, Listener, P2PWorld, ask_echo, echo, until

from bnw.transport.interface import PeerId, Transport

pytestmark = pytest.mark.anyio

ECHO_SIZE = 3 * 1024 * 1024


@dataclass
class Stock:
    host: IHost
    pubsub: Pubsub

    @property
    def peer(self) -> PeerId:
        return PeerId(str(self.host.get_id()))

    @property
    def address(self) -> str:
        return str(self.host.get_addrs()[0])

    async def connect(self, ours: Transport) -> ID:
        info = info_from_p2p_addr(Multiaddr(ours.addresses[0]))
        await self.host.connect(info)
        return info.peer_id


@pytest.fixture
async def stock() -> AsyncIterator[Stock]:
    async with running_stock() as running:
        yield running


@asynccontextmanager
async def running_stock() -> AsyncIterator[Stock]:
    host, listen = stock_host()
    pubsub, gossip = stock_pubsub(host)
    async with host.run(listen_addrs=listen), background_trio_service(pubsub), background_trio_service(gossip):
        await pubsub.wait_until_ready()
        yield Stock(host, pubsub)
        await host.close()


@pytest.fixture
async def ours() -> AsyncIterator[Transport]:
    async with P2PWorld().endpoint("ours") as endpoint:
        endpoint.serve(ECHO, echo)
        yield endpoint


async def test_we_dial_it_and_open_a_stream(ours: Transport, stock: Stock) -> None:
    async def serve_echo(stream: INetStream) -> None:
        try:
            while data := await stream.read(65_536):
                await stream.write(data)
        except StreamEOF:
            await stream.close()

    stock.host.set_stream_handler(TProtocol(ECHO), serve_echo)
    assert await ours.dial(stock.address) == stock.peer
    assert await ask_echo(ours, stock.peer, b"hello") == b"hello"
    stream = await ours.open_stream(stock.peer, ECHO)
    received = 0

    async def send() -> None:
        await stream.send(bytes(ECHO_SIZE))
        await stream.send_eof()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(send)
        while piece := await stream.receive():
            received += len(piece)
    assert received == ECHO_SIZE


async def test_it_dials_us_and_opens_a_stream(ours: Transport, stock: Stock) -> None:
    peer = await stock.connect(ours)
    stream = await stock.host.new_stream(peer, [TProtocol(ECHO)])
    await stream.write(b"hello")
    assert await stream.read(5) == b"hello"
    await stream.close()
    assert {info.peer for info in ours.peers()} == {stock.peer}


async def test_it_learns_our_protocols_and_addresses_by_identify(ours: Transport, stock: Stock) -> None:
    peer = await stock.connect(ours)
    stream = await stock.host.new_stream(peer, [TProtocol("/ipfs/id/1.0.0")])
    answer = Identify()
    answer.ParseFromString(await read_varint_prefixed_bytes(stream))
    assert {ECHO, "/meshsub/1.1.0", "/ipfs/ping/1.0.0"} <= set(answer.protocols)
    assert [f"{Multiaddr(raw)}/p2p/{ours.peer_id}" for raw in answer.listen_addrs] == list(ours.addresses)


async def test_it_pings_us(ours: Transport, stock: Stock) -> None:
    peer = await stock.connect(ours)
    assert len(await PingService(stock.host).ping(peer, 3)) == 3


async def test_gossip_goes_both_ways(ours: Transport, stock: Stock) -> None:
    ours_heard = await Listener.at(ours)
    subscription = await stock.pubsub.subscribe(TOPIC)
    await ours.dial(stock.address)
    await stock.pubsub.wait_for_subscription(ID.from_base58(ours.peer_id), TOPIC)
    await until(lambda: bool(ours._gossip._pubsub.router.targets(TOPIC)))  # type: ignore[attr-defined]  # reaches into libp2p's host
    attempt = 0
    # Its mesh may take a heartbeat longer than ours.
    while not ours_heard.delivered:
        await stock.pubsub.publish(TOPIC, b"from stock %d" % attempt)
        attempt += 1
        await anyio.sleep(0.05)
    await ours.publish(TOPIC, b"from us")
    with anyio.fail_after(5):
        while (await subscription.get()).data != b"from us":
            pass


async def test_we_pass_on_its_gossip_to_one_of_our_own(ours: Transport, stock: Stock) -> None:
    await Listener.at(ours)
    async with P2PWorld().endpoint("third") as third:
        at_third = await Listener.at(third)
        await third.dial(ours.addresses[0])
        await stock.pubsub.subscribe(TOPIC)
        await ours.dial(stock.address)
        await stock.pubsub.wait_for_subscription(ID.from_base58(ours.peer_id), TOPIC)
        attempt = 0
        while not at_third.delivered:
            await stock.pubsub.publish(TOPIC, b"onwards %d" % attempt)
            attempt += 1
            await anyio.sleep(0.05)
