"""From a scenario and a seed to a plan: every node with its name, place, neighbours, clock and link. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from bnw.node.configuration import MAX_PEERS
from bnw.sim.regions import round_trip
from bnw.sim.scenario.schema import ALL, Nodes, Scenario
from bnw.sim.topology import edges_of, shuffled
from bnw.transport.memory import Link
from bnw.transport.memory.chance import chance
from bnw.wire.environment import Environment, random_below

EVIL: Final = "evil-"
"""Names of adversaries begin with it."""


@dataclass(slots=True)
class Place:
    """One node. `group` is its table if it is honest; `table` the number of the adversary table if not."""

    name: str
    role: str
    group: Nodes | None
    table: int | None = None
    region: str = ""
    peers: list[str] = field(default_factory=list)
    """Whom it dials."""
    neighbours: list[str] = field(default_factory=list)
    """All that it is to be connected with, whoever dials."""
    mailboxes: list[str] = field(default_factory=list)
    """Who holds its mail."""
    start: float = 0.0
    clock_offset_ms: int = 0
    clock_drift: float = 0.0
    latency: float = 0.0
    bandwidth: float | None = None
    has_record: bool = True

    @property
    def is_honest(self) -> bool:
        return self.group is not None


@dataclass(frozen=True, slots=True)
class Plan:
    places: dict[str, Place]
    edges: list[tuple[str, str]]

    def of(self, role: str) -> list[Place]:
        """The honest nodes of a role, in order."""
        return [place for place in self.places.values() if place.is_honest and place.role == role]

    @property
    def honest(self) -> list[Place]:
        return [place for place in self.places.values() if place.is_honest]


def make_plan(scenario: Scenario, environment: Environment) -> Plan:
    """Who is where, and who dials whom."""
    places = _places(scenario, environment)
    plan = Plan({place.name: place for place in places}, [])
    network = scenario.network
    victims = {table.victim for table in scenario.adversary if table.victim is not None}
    first_victims = {plan.of(role)[0].name for role in victims}
    placed = [
        place
        for place in places
        if place.name not in first_victims
        and (place.group.connected if place.group is not None else scenario.adversary[place.table or 0].victim is None)
    ]
    order = shuffled(len(placed), environment)
    spots = [placed[at] for at in order]
    if network.regions:
        for at, place in enumerate(places):
            place.region = network.regions[at % len(network.regions)]
    for one, other in edges_of(network, len(spots), [place.region for place in spots], environment):
        _join(plan, spots[one], spots[other], environment)
    for place in places:
        if place.group is not None and place.name not in first_victims:
            for role in place.group.to:
                others = [other for other in plan.of(role) if other.name not in (place.name, *place.neighbours)]
                if others:
                    _connect(plan, place, others[random_below(environment, len(others))])
    for place in plan.honest:
        assert place.group is not None
        place.mailboxes += [box.name for role in place.group.mailboxes for box in plan.of(role) if box is not place]
    for number, table in enumerate(scenario.adversary):
        if table.victim is not None:
            victim = plan.of(table.victim)[0]
            attackers = [place for place in places if place.table == number]
            for attacker in attackers:
                _connect(plan, attacker, victim)
                # Attackers know the rest of the network; that is where they get what they show.
                honest = [place for place in spots if place.is_honest]
                if honest:
                    _connect(plan, attacker, honest[random_below(environment, len(honest))])
            free = [place for place in spots if place.is_honest and place.name not in victim.neighbours]
            for chosen in shuffled(len(free), environment)[: table.spared]:
                _connect(plan, victim, free[chosen])
    return plan


def link_between(scenario: Scenario, one: Place, other: Place) -> Link:
    """What lies between two nodes."""
    network = scenario.network
    latency = network.latency + one.latency + other.latency
    if network.regions and one.region and other.region:
        latency += round_trip(one.region, other.region) / 2
    speeds = [speed for speed in (network.bandwidth, one.bandwidth, other.bandwidth) if speed is not None]
    return Link(
        latency=latency,
        jitter=network.jitter,
        jitter_shape=network.jitter_shape,
        bandwidth=min(speeds, default=None),
        loss=network.loss,
        gossip_loss=network.gossip_loss,
        message_cost=network.message_cost,
    )


def _places(scenario: Scenario, environment: Environment) -> list[Place]:
    places: list[Place] = []
    active = {table.by for table in scenario.provide} | {table.by for table in scenario.invoke}
    for group in scenario.nodes:
        for number in range(group.count):
            skew = group.clock_skew * (2 * chance(environment) - 1) if group.clock_skew else 0.0
            drift = group.clock_drift * (2 * chance(environment) - 1) if group.clock_drift else 0.0
            places.append(
                Place(
                    name=f"{group.role}-{number}",
                    role=group.role,
                    group=group,
                    start=group.start + group.spread * number / group.count,
                    clock_offset_ms=round(1000 * (skew + group.clock_offset)),
                    clock_drift=drift,
                    latency=group.latency,
                    bandwidth=group.bandwidth,
                    has_record=scenario.network.identity_records == ALL or group.role in active,
                )
            )
    for at, table in enumerate(scenario.adversary):
        for number in range(table.count):
            places.append(Place(name=f"{EVIL}{table.kind}-{at}-{number}", role=EVIL + table.kind, group=None, table=at))
    return places


def _join(plan: Plan, one: Place, other: Place, environment: Environment) -> None:
    if random_below(environment, 2):
        one, other = other, one
    if len(one.peers) >= MAX_PEERS:
        one, other = other, one
    _connect(plan, one, other)


def _connect(plan: Plan, dialler: Place, target: Place) -> None:
    if target.name in dialler.neighbours or dialler is target:
        return
    dialler.peers.append(target.name)
    dialler.neighbours.append(target.name)
    target.neighbours.append(dialler.name)
    plan.edges.append((dialler.name, target.name))
