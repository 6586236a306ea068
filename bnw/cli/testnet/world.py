"""A scenario's world of real nodes: homes, relays between them, and what the workload asks of a world."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Final

import anyio
from anyio.abc import TaskGroup

from bnw.cli.testnet.answering import AnswerDesk
from bnw.cli.testnet.net import Net
from bnw.cli.testnet.real_node import MAX_THREADS, RealNode
from bnw.cli.testnet.relay import Relay, Relays
from bnw.cli.testnet.watching import Watch
from bnw.identity.keystore import Keystore, load_keystore
from bnw.node.configuration import Configuration, write_configuration
from bnw.node.environment import SystemEnvironment
from bnw.sim.environment import SeededEnvironment
from bnw.sim.plan import Place, Plan, link_between
from bnw.sim.scenario.schema import Scenario
from bnw.sim.world import NETWORK
from bnw.transport.tasks import background_tasks
from bnw.wire.content_id import ContentId

LOOK_EVERY: Final = 0.5
"""Seconds between two looks whether all are connected."""
SETTLING_TIME: Final = 30.0
"""Seconds at the beginning for neighbours to connect with each other."""


@dataclass(slots=True)
class RealWorld:
    """What `bnw.sim.workload.Workload` asks of a `World`, and more."""

    seed: int
    net: Net
    plan: Plan
    relays: Relays
    tasks: TaskGroup
    threads: anyio.CapacityLimiter
    origin: float = 0.0
    """When the scenario's time began, on the clock of anyio."""
    nodes: dict[str, RealNode] = field(default_factory=dict)
    environment: SystemEnvironment = field(default_factory=SystemEnvironment)
    """A clock that is right."""
    watch: Watch = field(init=False)

    @property
    def now(self) -> float:
        """Seconds since the scenario began."""
        return anyio.current_time() - self.origin

    def record(self, *what: object) -> None:
        """A simulated world keeps a trace. Nothing of it could be the same again here."""

    @property
    def network(self) -> Relays:
        return self.relays

    async def wait_until_connected(self) -> int:
        """Wait until all neighbours that run are connected; how many connections are still missing."""
        missing = 0
        for _ in range(int(SETTLING_TIME / LOOK_EVERY)):
            missing = await self._missing_connections()
            if not missing:
                break
            await anyio.sleep(LOOK_EVERY)
        return missing

    async def _missing_connections(self) -> int:
        missing = 0
        for place in self.plan.honest:
            node = self.nodes[place.name]
            if node.is_running:
                wanted = sum(self.nodes[other].is_running for other in place.neighbours)
                missing += max(0, wanted - await node.count_peers())
        return missing


@asynccontextmanager
async def real_world(scenario: Scenario, plan: Plan, seed: int, net: Net, desk: AnswerDesk) -> AsyncIterator[RealWorld]:
    """Homes are there, in `net`; here come relays and configurations. No node runs yet."""
    keystores = {name: load_keystore(net.directory.home(name).keystore, passphrase=None) for name in plan.places}
    async with background_tasks() as tasks:
        world = RealWorld(seed, net, plan, Relays(), tasks, anyio.CapacityLimiter(MAX_THREADS))
        for number, place in enumerate(plan.honest):

            def on_own(id: str, number: int = number) -> None:
                tasks.start_soon(world.watch.own, number, ContentId(bytes.fromhex(id)))

            def on_start(number: int = number) -> None:
                tasks.start_soon(world.watch.follow, number)

            identity = keystores[place.name].signing_key.identity
            clock = SystemEnvironment(clock_offset=place.clock_offset_ms)
            node = RealNode(place.name, identity, clock, net, desk, world.threads, on_own)
            node.on_start = on_start
            world.nodes[place.name] = node
        world.watch = Watch(list(world.nodes.values()), lambda: world.now, world.environment.now_ms)
        _add_relays(world, scenario)
        await world.relays.start(tasks)
        _configure(plan, net, world.relays, keystores)
        await tasks.start(desk.run)
        try:
            yield world
        finally:
            tasks.cancel_scope.cancel()


def _add_relays(world: RealWorld, scenario: Scenario) -> None:
    def relay(dialler: Place, target: Place) -> Relay:
        node = world.nodes[target.name]
        link = link_between(scenario, dialler, target)
        return Relay(link, SeededEnvironment(world.seed, "real-link", dialler.name, target.name), lambda: node.port)

    places = world.plan.places
    for one, other in world.plan.edges:
        world.relays.between[one, other] = relay(places[one], places[other])
    anyone = Place(name="", role="", group=None)
    for place in world.plan.honest:
        world.relays.public[place.name] = relay(anyone, place)


def _configure(plan: Plan, net: Net, relays: Relays, keystores: Mapping[str, Keystore]) -> None:
    # Takes most of a second, and only scenarios need it.
    from bnw.transport.p2p.keys import key_pair_from_seed, peer_id_of

    peers = {name: peer_id_of(key_pair_from_seed(keystore.transport_seed)) for name, keystore in keystores.items()}
    for place in plan.honest:
        addresses = tuple(
            f"{_address(relays.between[place.name, other].port)}/p2p/{peers[other]}" for other in place.peers
        )
        announce = (_address(relays.public[place.name].port),)
        path = net.directory.home(place.name).configuration
        write_configuration(path, Configuration(network=NETWORK, peers=addresses, announce=announce))
        with path.open("a") as file:
            file.write(f"\nclock_offset_ms = {place.clock_offset_ms}\n")


def _address(port: int) -> str:
    return f"/ip4/127.0.0.1/tcp/{port}"
