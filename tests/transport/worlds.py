"""The two implementations of the transport contract, behind one face, for tests that hold for both."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Protocol

import anyio

from bnw.transport.interface import PeerId, Stream, Transport, Verdict
from bnw.transport.memory import MemoryNetwork

ECHO = "/test/echo/1"
TOPIC = "/bnw/1/test/catalog"


class SeededEnvironment:
    """Random bytes from a seed; a clock that stands still."""

    def __init__(self, seed: int = 0) -> None:
        self._random = random.Random(seed)

    def now_ms(self) -> int:
        return 1_800_000_000_000

    def random_bytes(self, count: int) -> bytes:
        return self._random.randbytes(count)


class World(Protocol):
    """A place with endpoints."""

    def endpoint(self, name: str) -> AbstractAsyncContextManager[Transport]: ...

    def address_of_nobody(self, peer: PeerId) -> str: ...

    def with_other_peer(self, address: str, peer: PeerId) -> str:
        """The address, with `peer` expected there."""
        ...


class MemoryWorld:
    def __init__(self, network: MemoryNetwork) -> None:
        self._network = network

    def endpoint(self, name: str) -> AbstractAsyncContextManager[Transport]:
        return self._network.endpoint(name)

    def address_of_nobody(self, peer: PeerId) -> str:
        return "mem:nobody"

    def with_other_peer(self, address: str, peer: PeerId) -> str:
        return f"{address}/p2p/{peer}"


class P2PWorld:
    def endpoint(self, name: str) -> AbstractAsyncContextManager[Transport]:
        from bnw.transport.p2p import P2PTransport

        seed = name.encode().ljust(32, b".")
        return P2PTransport(seed=seed, listen=["/ip4/127.0.0.1/tcp/0"], environment=SeededEnvironment(seed[0]))

    def address_of_nobody(self, peer: PeerId) -> str:
        return f"/ip4/127.0.0.1/tcp/1/p2p/{peer}"

    def with_other_peer(self, address: str, peer: PeerId) -> str:
        return address.rpartition("/")[0] + f"/{peer}"


@asynccontextmanager
async def open_world(kind: str) -> AsyncIterator[World]:
    if kind == "memory":
        async with MemoryNetwork(SeededEnvironment()) as network:
            yield MemoryWorld(network)
    else:
        yield P2PWorld()


async def until(condition: Callable[[], bool], timeout: float = 10.0) -> None:
    """Wait for a condition that other tasks bring about."""
    with anyio.fail_after(timeout):
        while not condition():
            await anyio.sleep(0.005)


async def connect(one: Transport, other: Transport) -> None:
    """Connect two endpoints; both know of it afterwards."""
    await one.dial(other.addresses[0])
    await until(lambda: one.peer_id in {info.peer for info in other.peers()})


async def read_all(stream: Stream) -> bytes:
    received = bytearray()
    while piece := await stream.receive():
        received += piece
    return bytes(received)


async def echo(stream: Stream) -> None:
    while piece := await stream.receive():
        await stream.send(piece)


async def ask_echo(transport: Transport, peer: PeerId, data: bytes) -> bytes:
    """Open a stream, send `data`, and return what comes back."""
    stream = await transport.open_stream(peer, ECHO)
    await stream.send(data)
    await stream.send_eof()
    answer = await read_all(stream)
    await stream.aclose()
    return answer


class Listener:
    """Subscribes an endpoint and keeps what its validator and its handler were given."""

    def __init__(self, verdict: Verdict = Verdict.ACCEPT) -> None:
        self.verdict = verdict
        self.judged: list[bytes] = []
        self.delivered: list[bytes] = []
        self.forwarders: list[PeerId] = []
        self.when_judging: Callable[[bytes], None] = lambda data: None
        self.when_handling: Callable[[bytes], None] = lambda data: None

    @classmethod
    async def at(cls, transport: Transport, verdict: Verdict = Verdict.ACCEPT, topic: str = TOPIC) -> Listener:
        listener = cls(verdict)
        await transport.subscribe(topic, listener.validate, listener.handle)
        return listener

    async def validate(self, peer: PeerId, data: bytes) -> Verdict:
        self.judged.append(data)
        self.when_judging(data)
        return self.verdict

    async def handle(self, peer: PeerId, data: bytes) -> None:
        self.when_handling(data)
        self.delivered.append(data)
        self.forwarders.append(peer)
