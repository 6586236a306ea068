"""A provider and a requester as whole nodes over the memory network; the test holds their clocks and disks."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from copy import deepcopy
from dataclasses import dataclass, field
from pathlib import Path

import anyio
from blake3 import blake3

from bnw.blobs.offload import inline, worker_threads
from bnw.identity.keys import SigningKey
from bnw.identity.keystore import Keystore, new_keystore
from bnw.inbox.delivery import Mail
from bnw.inbox.payload import Payload
from bnw.invoke.handlers import Answer, Call
from bnw.invoke.policy import CallPolicy
from bnw.invoke.workspace import Workspace
from bnw.node.configuration import Configuration
from bnw.node.keyring import KeyRing
from bnw.node.node import Node
from bnw.objects.calls import Invocation
from bnw.objects.signed import SignedObject
from bnw.store.memory import MemoryStore
from bnw.transport.interface import PeerId
from bnw.transport.memory import MemoryNetwork

START = 1_800_000_000_000
NAME = "test/echo"
ANYONE = CallPolicy(anyone=True)
QUESTION = Payload(b"question", "text/plain")


class HeldEnvironment:
    """A clock that runs, and that a test may set; random bytes from a seed."""

    def __init__(self, seed: str) -> None:
        self._stream = blake3(seed.encode())
        self._used = 0
        self._origin = anyio.current_time()
        self.offset = 0

    def now_ms(self) -> int:
        return START + int((anyio.current_time() - self._origin) * 1000) + self.offset

    def random_bytes(self, count: int) -> bytes:
        data = self._stream.digest(length=count, seek=self._used)
        self._used += count
        return data


def copy_of(store: MemoryStore) -> MemoryStore:
    """What a disk holds at this moment."""
    copy = MemoryStore()
    copy._index = deepcopy(store._index)
    copy._blobs = dict(store._blobs)
    copy._blob_bytes = store._blob_bytes
    copy._records = deepcopy(store._records)
    return copy


@dataclass
class Home:
    """What outlasts a node: keys, clock and disk."""

    name: str
    environment: HeldEnvironment
    keys: KeyRing
    store: MemoryStore = field(default_factory=MemoryStore)

    @property
    def key(self) -> SigningKey:
        return self.keys.signing_key


async def _save(keystore: Keystore) -> None:
    return None


def new_home(name: str) -> Home:
    environment = HeldEnvironment(name)
    return Home(name, environment, KeyRing(new_keystore(environment), environment, save=_save))


class Stage:
    def __init__(self, network: MemoryNetwork) -> None:
        self.network = network
        self.homes = {name: new_home(name) for name in ("provider", "requester")}
        self.runs: list[Call] = []
        self.gate = anyio.Event()
        self.gate.set()
        self.manifest: SignedObject | None = None
        self.disk: Path | None = None
        """Where nodes may put the files of calls; without it they carry only what fits in memory."""

    async def echo(self, call: Call) -> Answer:
        """Counts its runs, and waits as long as the gate is closed."""
        self.runs.append(call)
        await self.gate.wait()
        return Answer(call.data.upper(), "text/plain")

    def close_gate(self) -> None:
        self.gate = anyio.Event()

    @asynccontextmanager
    async def node(self, name: str, *, peers: tuple[str, ...] = (), plugins=None) -> AsyncIterator[Node]:
        home = self.homes[name]
        offload = inline if self.disk is None else worker_threads()
        async with (
            self.network.endpoint(name) as transport,
            Node(
                keys=home.keys,
                store=home.store,
                transport=transport,
                environment=home.environment,
                configuration=Configuration(peers=peers),
                plugins=plugins,
                offload=offload,
                workspace=None if self.disk is None else Workspace(self.disk / name, offload),
            ).running() as node,
        ):
            yield node

    @asynccontextmanager
    async def providing(
        self, policy: CallPolicy | Callable[[], CallPolicy] = ANYONE, *, idempotent: bool = False, handler=None
    ) -> AsyncIterator[Node]:
        async with self.node("provider") as provider:
            self.manifest = await provider.publish(NAME, b"opaque descriptor")
            await provider.provide(NAME, handler or self.echo, policy=policy, idempotent=idempotent)
            yield provider

    @asynccontextmanager
    async def both(
        self, policy: CallPolicy | Callable[[], CallPolicy] = ANYONE, *, idempotent: bool = False, handler=None
    ) -> AsyncIterator[tuple[Node, Node]]:
        async with (
            self.providing(policy, idempotent=idempotent, handler=handler) as provider,
            self.node("requester", peers=("mem:provider",)) as requester,
        ):
            yield provider, requester

    async def sent(self) -> list[SignedObject]:
        """The one call that the requester has made, as it goes over the wire."""
        [(id, _record)] = await AskedOf(self.homes["requester"]).all()
        store = self.homes["requester"].store
        invocation = await store.get_object(id)
        assert invocation is not None and isinstance(invocation.body, Invocation)
        manifest = await store.get_object(invocation.body.input)
        assert manifest is not None
        return [manifest, invocation]

    async def deliver_again(self, provider: Node, objects: list[SignedObject], peer: str = "requester") -> None:
        blobs = dict(self.homes["requester"].store._blobs)
        await provider._desk.take(PeerId(peer), Mail((), tuple(objects), blobs))


def AskedOf(home: Home):
    from bnw.invoke.asked import AskedCalls

    return AskedCalls(home.store)


@asynccontextmanager
async def stage() -> AsyncIterator[Stage]:
    async with MemoryNetwork(HeldEnvironment("links")) as network:
        with anyio.fail_after(40):
            yield Stage(network)


async def until(condition: Callable[[], bool]) -> None:
    """For what happens in the background, without a guess of how long it takes."""
    while not condition():
        await anyio.sleep(0.005)
