"""Peers for the tests of synchronisation: honest ones, and a place for hostile ones."""

from __future__ import annotations

import functools
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import anyio
from blake3 import blake3

from bnw.identity.keys import IdentityId, SigningKey
from bnw.objects.authority import Caveats, Delegation
from bnw.objects.calls import Cancellation
from bnw.objects.catalog import ProviderOffer
from bnw.objects.rules import CATALOG
from bnw.objects.signed import SignedObject, sign_object
from bnw.store.interface import Quota, Store
from bnw.store.memory import MemoryStore
from bnw.sync.checking import Verify, verify_here
from bnw.sync.protocol import SYNC_PROTOCOL
from bnw.sync.puller import Puller, PullReport
from bnw.sync.scope_index import ScopeIndex
from bnw.sync.server import SyncServer
from bnw.transport.interface import PeerId, Stream, Transport
from bnw.transport.memory import MemoryNetwork
from bnw.transport.message_stream import MessageStream
from bnw.wire.content_id import content_id
from bnw.wire.limits import DAY, HOUR, MIB

NOW = 1_800_000_000_000
ALICE, BOB = (SigningKey(bytes([number]) * 32) for number in (1, 2))
ROOMY = Quota(objects=1_000_000, bytes=1000 * MIB)


class TestEnvironment:
    """Time that passes with the (virtual) clock from `NOW` on, and random bytes from a seed."""

    __test__ = False

    def __init__(self, seed: str = "test", *, ahead: int = 0) -> None:
        self._stream = blake3(seed.encode())
        self._used = 0
        self._origin = anyio.current_time()
        self.ahead = ahead
        """Milliseconds that this clock is ahead of others."""

    def now_ms(self) -> int:
        return NOW + self.ahead + int((anyio.current_time() - self._origin) * 1000)

    def random_bytes(self, count: int) -> bytes:
        data = self._stream.digest(length=count, seek=self._used)
        self._used += count
        return data


@functools.cache
def delegation(
    number: int = 1, *, key: SigningKey = ALICE, created: int = NOW - HOUR, expires: int = NOW + DAY
) -> SignedObject:
    """A catalog object without a slot; another `number` makes another one."""
    body = Delegation(
        created=created,
        expires=expires,
        audience=IdentityId(content_id(str(number).encode())),
        caveats=Caveats(None, None, None, None, None),
        not_before=created,
        parent=None,
        rights=("invoke",),
    )
    return sign_object(body, key)


def delegations(count: int, *, first: int = 0) -> list[SignedObject]:
    """Different objects, each with a time of its own."""
    return [delegation(number, created=NOW - HOUR - number * 1000) for number in range(first, first + count)]


def offer(sequence: int, *, text: str = "a", key: SigningKey = ALICE) -> SignedObject:
    body = ProviderOffer(
        created=NOW - HOUR,
        expires=NOW + HOUR,
        available=True,
        capability=content_id(b"capability"),
        endpoints=(text,),
        sequence=sequence,
    )
    return sign_object(body, key)


def cancellation(number: int = 1) -> SignedObject:
    """An object for Bob's inbox, which is no business of the catalog."""
    body = Cancellation(
        created=NOW - HOUR,
        expires=NOW + HOUR,
        invocation=content_id(str(number).encode()),
        reason=None,
        recipient=BOB.identity,
    )
    return sign_object(body, ALICE)


def spoiled(obj: SignedObject) -> bytes:
    """The bytes of an object whose signature is wrong."""
    return obj.data[:-1] + bytes([obj.data[-1] ^ 1])


@dataclass
class Side:
    """An honest peer without a scheduler: it answers, and pulls when told to."""

    transport: Transport
    store: Store
    environment: TestEnvironment
    index: ScopeIndex
    puller: Puller
    news: list[SignedObject] = field(default_factory=list)
    hints: list[Any] = field(default_factory=list)

    @property
    def peer(self) -> PeerId:
        return self.transport.peer_id

    async def pull(self, other: PeerId) -> PullReport:
        return await self.puller.pull(other)

    async def holds(self, objects: Sequence[SignedObject]) -> bool:
        """Whether the catalog consists of exactly these objects."""
        summary = await self.store.scope_summary(CATALOG, now=self.environment.now_ms())
        held = [await self.store.get_object(obj.id) for obj in objects]
        return summary.count == len(objects) and None not in held


def make_side(
    transport: Transport,
    store: Store,
    environment: TestEnvironment,
    *,
    verify: Verify = verify_here,
    serves: bool = True,
) -> Side:
    index = ScopeIndex(store, CATALOG)
    news: list[SignedObject] = []
    hints: list[Any] = []
    if serves:
        SyncServer(transport, store, environment, {CATALOG: index}, on_hint=lambda *hint: hints.append(hint))
    puller = Puller(transport, store, environment, index, verify=verify, on_news=news.append)
    return Side(transport, store, environment, index, puller, news, hints)


@dataclass
class World:
    network: MemoryNetwork

    @asynccontextmanager
    async def side(
        self,
        name: str,
        objects: Sequence[SignedObject] = (),
        *,
        quota: Quota = ROOMY,
        store: Store | None = None,
        ahead: int = 0,
    ) -> AsyncIterator[Side]:
        store = store or MemoryStore(quota)
        await store.put_objects(objects, now=NOW)
        async with self.network.endpoint(name) as transport:
            yield make_side(transport, store, TestEnvironment(name, ahead=ahead))

    @asynccontextmanager
    async def hostile(
        self, handler: Callable[[Stream], Awaitable[None]], name: str = "hostile"
    ) -> AsyncIterator[PeerId]:
        """A peer that answers pulls with `handler`."""
        async with self.network.endpoint(name) as transport:
            transport.serve(SYNC_PROTOCOL, handler)
            yield transport.peer_id


@asynccontextmanager
async def open_world() -> AsyncIterator[World]:
    async with MemoryNetwork(TestEnvironment("links")) as network:
        yield World(network)


async def connect(side: Side, *names: str) -> None:
    for name in names:
        await side.transport.dial(f"mem:{name}")


@asynccontextmanager
async def raw_session(side: Side, other: str) -> AsyncIterator[MessageStream]:
    """A stream to `other` on which a test says what it likes."""
    peer = await side.transport.dial(f"mem:{other}")
    stream = await side.transport.open_stream(peer, SYNC_PROTOCOL)
    messages = MessageStream(stream)
    try:
        yield messages
    finally:
        await stream.aclose()
