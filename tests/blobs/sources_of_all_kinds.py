"""A small network in virtual time: one endpoint that fetches, and sources of all kinds, honest and not."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager

import anyio

from bnw.blobs.fetcher import BlobFetcher
from bnw.blobs.protocol import BLOB_PROTOCOL, BlobAbsent, BlobBusy, BlobFollows, GetBlob
from bnw.blobs.server import BlobServer
from bnw.objects.message import read_message
from bnw.sim.environment import SeededEnvironment
from bnw.sim.run import run_virtual
from bnw.store.memory import MemoryStore
from bnw.transport.interface import PeerId, Stream, Transport
from bnw.transport.memory import Link, MemoryNetwork
from bnw.transport.message_stream import MessageStream
from bnw.wire.content_id import ContentId

Answer = Callable[[MessageStream, Stream, ContentId], Awaitable[None]]
"""Answers one request."""

HOME = Link(latency=0.002, bandwidth=10_000_000)


class CountingStore(MemoryStore):
    """Counts what is read from it and what is put."""

    def __init__(self) -> None:
        super().__init__()
        self.reads: Counter[ContentId] = Counter()
        self.puts: Counter[ContentId] = Counter()

    async def get_blob(self, id: ContentId) -> bytes | None:
        self.reads[id] += 1
        return await super().get_blob(id)

    async def put_blob(self, data: bytes) -> ContentId:
        id = await super().put_blob(data)
        self.puts[id] += 1
        return id


class Scene:
    """`fetcher` belongs to the endpoint `me`. Sources are made with `honest` and `with_answer`, and are connected."""

    def __init__(self, network: MemoryNetwork, me: Transport, stack: AsyncExitStack) -> None:
        self.network = network
        self.me = me
        self.store = CountingStore()
        self.fetcher = BlobFetcher(me, self.store)
        self._stack = stack

    async def honest(self, name: str, *blobs: bytes, connected: bool = True) -> CountingStore:
        """A node that serves `blobs` from the store that this returns."""
        store = CountingStore()
        for data in blobs:
            await store.put_blob(data)
        store.puts.clear()
        transport = await self._stack.enter_async_context(self.network.endpoint(name))
        BlobServer(transport, store)
        if connected:
            await self.me.dial(f"mem:{name}")
        return store

    async def with_answer(self, name: str, answer: Answer) -> Counter[ContentId]:
        """A peer that answers requests as `answer` does; returns the counts of what it was asked for."""
        asked: Counter[ContentId] = Counter()

        async def serve(stream: Stream) -> None:
            messages = MessageStream(stream)
            while (value := await messages.receive()) is not None:
                id = read_message(value, GetBlob).id
                asked[id] += 1
                await answer(messages, stream, id)

        transport = await self._stack.enter_async_context(self.network.endpoint(name))
        transport.serve(BLOB_PROTOCOL, serve)
        await self.me.dial(f"mem:{name}")
        return asked


def in_virtual_time(act: Callable[[Scene], Awaitable[None]], *, link: Link = HOME) -> float:
    """Let `act` play, and return how many virtual seconds that took."""

    async def play() -> float:
        async with scene(link) as opened:
            begin = anyio.current_time()
            await act(opened)
            return anyio.current_time() - begin

    return run_virtual(1, play)


@asynccontextmanager
async def scene(link: Link) -> AsyncIterator[Scene]:
    async with (
        MemoryNetwork(SeededEnvironment(1, "links"), link=link) as network,
        network.endpoint("me") as me,
        AsyncExitStack() as stack,
    ):
        yield Scene(network, me, stack)


def sends(data: bytes, *, announced: int | None = None) -> Answer:
    """Sends these bytes, whatever it is asked for."""

    async def answer(messages: MessageStream, _: Stream, id: ContentId) -> None:
        await messages.send(BlobFollows(len(data) if announced is None else announced).to_wire())
        await messages.send_bytes(data)

    return answer


def trickles(data: bytes, seconds: float) -> Answer:
    """Sends the right bytes, one at a time."""

    async def answer(messages: MessageStream, stream: Stream, id: ContentId) -> None:
        await messages.send(BlobFollows(len(data)).to_wire())
        for number in range(len(data)):
            await anyio.sleep(seconds)
            await stream.send(data[number : number + 1])

    return answer


async def stalls(messages: MessageStream, stream: Stream, id: ContentId) -> None:
    await anyio.sleep_forever()


async def is_always_busy(messages: MessageStream, stream: Stream, id: ContentId) -> None:
    await messages.send(BlobBusy().to_wire())


async def has_nothing(messages: MessageStream, stream: Stream, id: ContentId) -> None:
    await messages.send(BlobAbsent().to_wire())


async def resets(messages: MessageStream, stream: Stream, id: ContentId) -> None:
    await stream.reset()


async def babbles(messages: MessageStream, stream: Stream, id: ContentId) -> None:
    await messages.send({"type": "hello"})


def peer(name: str) -> PeerId:
    return PeerId(name)
