"""Hostile peers, made of py-libp2p's own parts: real handshakes up to the layer that an attack is about, then junk.

Each attack is a coroutine function that takes the victim's address. It may find its connection closed at any time;
that is the victim's good right.
"""

from __future__ import annotations

import os
import random
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress

import anyio
import trio
from libp2p.crypto.ed25519 import create_new_key_pair
from libp2p.crypto.x25519 import create_new_key_pair as create_noise_key_pair
from libp2p.custom_types import TProtocol
from libp2p.io.abc import ReadWriteCloser
from libp2p.io.trio import TrioTCPStream
from libp2p.io.utils import read_exactly
from libp2p.network.connection.raw_connection import RawConnection
from libp2p.peer.id import ID
from libp2p.peer.peerinfo import info_from_p2p_addr
from libp2p.protocol_muxer.multiselect_client import MultiselectClient
from libp2p.protocol_muxer.multiselect_communicator import MultiselectCommunicator
from libp2p.pubsub.pb.rpc_pb2 import (
    RPC,
    ControlGraft,
    ControlIHave,
    ControlIWant,
    ControlMessage,
    ControlPrune,
    Message,
    PeerInfo,
)
from libp2p.pubsub.validators import PUBSUB_SIGNING_PREFIX
from libp2p.security.noise.transport import Transport as Noise
from libp2p.utils import encode_delim, encode_varint_prefixed
from multiaddr import Multiaddr
from stock_host import stock_host
from victim import HOLD, STUMBLE
from worlds import TOPIC

MESHSUB = "/meshsub/1.1.0"
DATA, WINDOW_UPDATE, PING, GO_AWAY = range(4)
SYN, ACK, FIN, RST = 1, 2, 4, 8
WINDOW = 256 * 1024 - 100
"""The initial window, less the lines that negotiate the protocol."""

Attack = Callable[[str], Awaitable[None]]

# What a victim that defends itself does to the connection of an attacker.
HANG_UPS = (OSError, trio.BrokenResourceError, trio.ClosedResourceError)


class RawPeer:
    """A peer that has done everything right up to Yamux, and from there on sends what it is told to."""

    def __init__(self, connection: ReadWriteCloser) -> None:
        self._connection = connection
        self._next_stream = 1
        self._granted: dict[int, int] = {}

    async def send(self, kind: int, flags: int, stream: int, length: int, body: bytes = b"", version: int = 0) -> None:
        head = bytes([version, kind]) + flags.to_bytes(2) + stream.to_bytes(4) + length.to_bytes(4)
        await self._connection.write(head + body)

    async def send_raw(self, data: bytes) -> None:
        await self._connection.write(data)

    async def open(self, protocol: str | bytes) -> int:
        """Open a stream for `protocol` without waiting for any answer."""
        stream = self._next_stream
        self._next_stream += 2
        name = protocol.encode() if isinstance(protocol, str) else protocol
        lines = encode_delim(b"/multistream/1.0.0") + encode_delim(name)
        await self.send(WINDOW_UPDATE, SYN, stream, 0)
        await self.send(DATA, 0, stream, len(lines), lines)
        return stream

    async def send_on(self, stream: int, data: bytes) -> None:
        for start in range(0, len(data), 65_000):
            piece = data[start : start + 65_000]
            await self.send(DATA, 0, stream, len(piece), piece)

    async def send_within_window(self, stream: int, data: bytes) -> None:
        """Send as an honest peer would: no more than the victim has granted. Only while `drain` runs."""
        sent = 0
        while sent < len(data):
            size = min(65_000, len(data) - sent, WINDOW + self._granted.get(stream, 0) - sent)
            if size > 0:
                await self.send(DATA, 0, stream, size, data[sent : sent + size])
                sent += size
            else:
                await anyio.sleep(0.005)

    async def drain(self) -> None:
        """Read whatever comes, for as long as it comes, and note what windows are granted."""
        with suppress(Exception):
            while True:
                head = await read_exactly(self._connection, 12)
                kind, stream, length = head[1], int.from_bytes(head[4:8]), int.from_bytes(head[8:])
                if kind == WINDOW_UPDATE:
                    self._granted[stream] = self._granted.get(stream, 0) + length
                elif kind == DATA and length:
                    await read_exactly(self._connection, length)


@asynccontextmanager
async def tcp(address: str) -> AsyncIterator[trio.SocketStream]:
    multiaddr = Multiaddr(address)
    port = int(multiaddr.value_for_protocol("tcp"))
    stream = await trio.open_tcp_stream(multiaddr.value_for_protocol("ip4"), port)
    try:
        yield stream
    finally:
        await trio.aclose_forcefully(stream)


@asynccontextmanager
async def raw_peer(address: str, *, reading: bool = True, multiplexer: bool = True) -> AsyncIterator[RawPeer]:
    """A connection up to Yamux, with a fresh identity each time; hang-ups by the victim end the body quietly."""
    keys = create_new_key_pair(os.urandom(32))
    with suppress(*HANG_UPS):
        async with tcp(address) as stream:
            raw = RawConnection(TrioTCPStream(stream), True)
            await _select(raw, "/noise")
            noise = Noise(keys, create_noise_key_pair().private_key)
            secure = await noise.secure_outbound(raw, _peer_of(address))
            await _select(secure, "/yamux/1.0.0" if multiplexer else None)
            peer = RawPeer(secure)
            async with trio.open_nursery() as nursery:
                if reading:
                    nursery.start_soon(peer.drain)
                try:
                    yield peer
                except Exception as error:
                    if not _is_hang_up(error):
                        raise
                nursery.cancel_scope.cancel()


def _is_hang_up(error: BaseException) -> bool:
    """libp2p wraps a broken connection in exceptions of several layers."""
    chain: BaseException | None = error
    while chain is not None:
        if isinstance(chain, HANG_UPS) or "closed" in str(chain).lower() or "reset" in str(chain).lower():
            return True
        chain = chain.__cause__
    return False


async def _select(connection: ReadWriteCloser, protocol: str | None) -> None:
    """Negotiate `protocol`, or only greet."""
    client, communicator = MultiselectClient(), MultiselectCommunicator(connection)
    if protocol is None:
        await client.handshake(communicator)
    else:
        await client.select_one_of([TProtocol(protocol)], communicator)


def _peer_of(address: str) -> ID:
    return info_from_p2p_addr(Multiaddr(address)).peer_id


async def _linger() -> None:
    """Stay connected long enough for the victim to read what it was sent."""
    await anyio.sleep(0.03)


def _on_stream(protocol: str | bytes, data: bytes) -> Attack:
    async def attack(address: str) -> None:
        async with raw_peer(address) as peer:
            await peer.send_on(await peer.open(protocol), data)
            await _linger()

    return attack


def _rpc(rpc: RPC) -> Attack:
    return _on_stream(MESHSUB, encode_varint_prefixed(rpc.SerializeToString()))


def _on_yamux(*frames: tuple[int, int, int, int, bytes]) -> Attack:
    async def attack(address: str) -> None:
        async with raw_peer(address) as peer:
            for frame in frames:
                await peer.send(*frame)
            await _linger()

    return attack


def _on_tcp(data: bytes) -> Attack:
    async def attack(address: str) -> None:
        with suppress(*HANG_UPS):
            async with tcp(address) as stream:
                await stream.send_all(data)
                await _linger()

    return attack


# Gossip.
not_protobuf = _on_stream(MESHSUB, encode_varint_prefixed(b"\xff" * 40))
junk_key = _rpc(
    RPC(
        publish=[
            Message(
                from_id=b"\x12\x20" + bytes(32), data=b"x", seqno=b"1", topicIDs=[TOPIC], key=b"junk", signature=b"junk"
            )
        ]
    )
)
endless_length = _on_stream(MESHSUB, b"\xff" * 64)
oversize_rpc = _on_stream(MESHSUB, encode_varint_prefixed(bytes(2 * 1024 * 1024)))
half_an_rpc = _on_stream(MESHSUB, encode_varint_prefixed(bytes(1000))[:500])
message_without_topic = _rpc(RPC(publish=[Message(data=b"x")]))
huge_message = _rpc(RPC(publish=[Message(data=bytes(500_000), topicIDs=[TOPIC])]))
wild_control = _rpc(
    RPC(
        control=ControlMessage(
            graft=[ControlGraft(topicID=f"t{n}") for n in range(200)] + [ControlGraft(topicID=TOPIC)] * 50,
            prune=[ControlPrune(topicID=TOPIC, backoff=2**64 - 1, peers=[PeerInfo(peerID=b"?")])],
            ihave=[ControlIHave(topicID=TOPIC, messageIDs=[os.urandom(32) for _ in range(4000)])],
            iwant=[ControlIWant(messageIDs=[b"", b"short", bytes(32)])],
        )
    )
)
many_topics = _rpc(RPC(subscriptions=[RPC.SubOpts(subscribe=True, topicid="t" * 1000 + str(n)) for n in range(900)]))
junk_record = _rpc(RPC(senderRecord=b"\xff" * 100))

# Streams and negotiation.
stumbling_handler = _on_stream(STUMBLE, b"x")
name_that_is_no_text = _on_stream(b"\xff", b"")
endless_line = _on_stream("/test/unheard-of/1", b"\xff" * 9 + b"\x01" + bytes(100_000))
junk_on_identify = _on_stream("/ipfs/id/1.0.0", b"\xff" * 1000)
junk_on_push = _on_stream("/ipfs/id/push/1.0.0", encode_varint_prefixed(b"\xff" * 100))

# Yamux.
wrong_version = _on_yamux((DATA, 0, 1, 4, b"junk"), (255, 65535, 2**32 - 1, 2**32 - 1, b""))
endless_frame = _on_yamux((WINDOW_UPDATE, SYN, 1, 0, b""), (DATA, 0, 1, 2**32 - 1, bytes(1000)))
streams_of_the_other_side = _on_yamux((WINDOW_UPDATE, SYN, 2, 0, b""), (WINDOW_UPDATE, SYN, 0, 0, b""))
stream_opened_twice = _on_yamux((WINDOW_UPDATE, SYN, 1, 0, b""), (WINDOW_UPDATE, SYN, 1, 0, b""))
everything_at_once = _on_yamux((DATA, SYN | ACK | FIN | RST, 1, 3, b"abc"), (DATA, SYN | FIN, 3, 3, b"abc"))
unknown_streams = _on_yamux(*[(DATA, 0, n, 100, bytes(100)) for n in range(1, 400, 2)])
windows_without_end = _on_yamux((WINDOW_UPDATE, SYN, 1, 2**32 - 1, b""), *[(WINDOW_UPDATE, 0, 1, 2**32 - 1, b"")] * 9)
going_away = _on_yamux((GO_AWAY, 0, 0, 0, b""), (WINDOW_UPDATE, SYN, 1, 0, b""), (GO_AWAY, 0, 0, 77, b""))

# Before the handshake.
junk_on_tcp = _on_tcp(b"\xff" * 1000)
endless_greeting = _on_tcp(b"\xff" * 9 + b"\x01" + bytes(100_000))
junk_instead_of_noise = _on_tcp(encode_delim(b"/multistream/1.0.0") + encode_delim(b"/noise") + b"\xff" * 70_000)
empty_noise_message = _on_tcp(encode_delim(b"/multistream/1.0.0") + encode_delim(b"/noise") + bytes(2))
http = _on_tcp(b"GET / HTTP/1.1\r\n\r\n")


async def junk_inside_noise(address: str) -> None:
    async with raw_peer(address) as peer:
        await peer.send_raw(random.Random(1).randbytes(5000))
        await _linger()


async def ignore_the_window(address: str, size: int = 32 * 1024 * 1024, stay: float = 0.05) -> None:
    """Send on a stream that nobody reads, far beyond its window."""
    async with raw_peer(address) as peer:
        stream = await peer.open(HOLD)
        await peer.send_on(stream, bytes(size))
        await anyio.sleep(stay)


async def flood_with_streams(address: str, count: int = 20_000, stay: float = 0.05) -> None:
    async with raw_peer(address) as peer:
        for stream in range(1, 2 * count, 2):
            await peer.send(WINDOW_UPDATE, SYN, stream, 0)
        await anyio.sleep(stay)


async def open_and_reset(address: str, count: int = 3_000) -> None:
    async with raw_peer(address) as peer:
        for _ in range(count):
            await peer.send(WINDOW_UPDATE, RST, await peer.open(HOLD), 0)


async def endless_line_inside_noise(address: str, size: int = 32 * 1024 * 1024, stay: float = 0.05) -> None:
    """Instead of the name of a multiplexer, a line that claims 2^55 bytes, and as much of it as the victim takes."""
    async with raw_peer(address, multiplexer=False) as peer:
        await peer.send_raw(b"\xff" * 7 + b"\x7f")
        for _ in range(size // 65_000):
            await peer.send_raw(bytes(65_000))
        await anyio.sleep(stay)


async def oversize_then_sound(address: str, data: bytes, stay: float = 1.0) -> None:
    """An RPC that is too large, and after it, on the same stream, a message that is all right."""
    keys = create_new_key_pair(os.urandom(32))
    message = Message(data=data, topicIDs=[TOPIC], from_id=ID.from_pubkey(keys.public_key).to_bytes(), seqno=bytes(8))
    message.signature = keys.private_key.sign(PUBSUB_SIGNING_PREFIX.encode() + message.SerializeToString())
    message.key = keys.public_key.serialize()
    async with raw_peer(address) as peer:
        stream = await peer.open(MESHSUB)
        sound = encode_varint_prefixed(RPC(publish=[message]).SerializeToString())
        await peer.send_within_window(stream, encode_varint_prefixed(bytes(1_100_000)) + sound)
        await anyio.sleep(stay)


async def ask_and_not_listen(address: str) -> None:
    """Provoke answers by the million and read none."""
    async with raw_peer(address, reading=False) as peer:
        with anyio.move_on_after(3):
            while True:
                await peer.send_raw((bytes([0, PING, 0, SYN]) + bytes(8)) * 5000)


async def hold_many_connections(address: str, count: int = 300) -> None:
    """Connect and say nothing; see `silent_connections`."""
    async with silent_connections(address, count):
        pass


@asynccontextmanager
async def silent_connections(address: str, count: int) -> AsyncIterator[list[trio.SocketStream]]:
    streams: list[trio.SocketStream] = []
    multiaddr = Multiaddr(address)
    port = int(multiaddr.value_for_protocol("tcp"))
    try:
        for _ in range(count):
            streams.append(await trio.open_tcp_stream(multiaddr.value_for_protocol("ip4"), port))
        yield streams
    finally:
        for stream in streams:
            await trio.aclose_forcefully(stream)


async def junk_from_a_stock_host(address: str) -> None:
    """A whole py-libp2p host opens a gossip stream as it would, and writes junk on it."""
    host, listen = stock_host()
    async with host.run(listen_addrs=listen):
        await host.connect(info_from_p2p_addr(Multiaddr(address)))
        stream = await host.new_stream(_peer_of(address), [TProtocol(MESHSUB)])
        with suppress(Exception):
            for _ in range(10):
                await stream.write(encode_varint_prefixed(os.urandom(200)))
            await _linger()
        await host.close()


ATTACKS: dict[str, Attack] = {
    "not_protobuf": not_protobuf,
    "junk_key": junk_key,
    "endless_length": endless_length,
    "oversize_rpc": oversize_rpc,
    "half_an_rpc": half_an_rpc,
    "message_without_topic": message_without_topic,
    "huge_message": huge_message,
    "wild_control": wild_control,
    "many_topics": many_topics,
    "junk_record": junk_record,
    "stumbling_handler": stumbling_handler,
    "name_that_is_no_text": name_that_is_no_text,
    "endless_line": endless_line,
    "junk_on_identify": junk_on_identify,
    "junk_on_push": junk_on_push,
    "wrong_version": wrong_version,
    "endless_frame": endless_frame,
    "streams_of_the_other_side": streams_of_the_other_side,
    "stream_opened_twice": stream_opened_twice,
    "everything_at_once": everything_at_once,
    "unknown_streams": unknown_streams,
    "windows_without_end": windows_without_end,
    "going_away": going_away,
    "junk_on_tcp": junk_on_tcp,
    "endless_greeting": endless_greeting,
    "junk_instead_of_noise": junk_instead_of_noise,
    "empty_noise_message": empty_noise_message,
    "http": http,
    "junk_inside_noise": junk_inside_noise,
    "ignore_the_window": ignore_the_window,
    "flood_with_streams": flood_with_streams,
    "open_and_reset": open_and_reset,
    "ask_and_not_listen": ask_and_not_listen,
    "hold_many_connections": hold_many_connections,
    "junk_from_a_stock_host": junk_from_a_stock_host,
    "endless_line_inside_noise": endless_line_inside_noise,
}
