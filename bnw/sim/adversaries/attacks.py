"""Attacks that run beside an adversary's node: floods, spam, contradictions, replays, offers of nobody."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Final

import anyio

from bnw.gossip.catalog_gossip import catalog_topic
from bnw.identity.inbox_keys import new_inbox_key
from bnw.identity.keys import SigningKey
from bnw.objects.body import Body
from bnw.objects.catalog import (
    PROVIDE_ANYONE,
    PROVIDE_PUBLISHER,
    CapabilityManifest,
    IdentityRecord,
    ProviderOffer,
    PublicInboxKey,
)
from bnw.objects.signed import SignedObject, sign_object
from bnw.sim.calls import CallLog
from bnw.sim.node import SimulatedNode
from bnw.sim.scenario.schema import EQUIVOCATE, INVALID_FLOOD, REPLAY, SPAM, SYBIL_OFFERS, Adversary
from bnw.sim.world import NETWORK, World
from bnw.store.interface import PutOutcome
from bnw.transport.interface import PeerId
from bnw.transport.memory.endpoint import MemoryEndpoint
from bnw.wire.content_id import ContentId, content_id
from bnw.wire.environment import random_below
from bnw.wire.limits import DAY, HOUR

TOPIC: Final = catalog_topic(NETWORK)
MAX_HEARD: Final = 5000
"""Objects that a replayer keeps."""


@dataclass(slots=True)
class Attacker:
    """One adversary's means. `heard` are the bytes of objects that came by, for replays."""

    world: World
    node: SimulatedNode
    log: CallLog
    key: SigningKey
    heard: list[bytes] = field(default_factory=list)
    number: int = 0

    @property
    def endpoint(self) -> MemoryEndpoint | None:
        return self.world.network.endpoint_named(self.node.name)

    def send(self, data: bytes, *, half: int | None = None) -> None:
        """Gossip bytes to all neighbours, or to every other one of them."""
        if self.endpoint is None:
            return
        peers = [info.peer for info in self.endpoint.peers()]
        chosen: list[PeerId] = peers if half is None else peers[half::2]
        self.log.attacks += self.endpoint.gossip.force(TOPIC, data, chosen)

    def manifest(self, name: str, *, sequence: int, key: SigningKey | None = None) -> SignedObject:
        now = self.node.environment.now_ms()
        return sign_object(
            CapabilityManifest(
                created=now,
                expires=now + 30 * DAY,
                descriptor=ContentId(self.node.environment.random_bytes(32)),
                name=name,
                provide=PROVIDE_PUBLISHER,
                sequence=sequence,
            ),
            key or self.key,
        )

    def hear(self, obj: SignedObject, outcome: PutOutcome) -> None:
        if outcome is PutOutcome.ADDED and len(self.heard) < MAX_HEARD:
            self.heard.append(obj.data)


async def _flood_invalid(attacker: Attacker) -> None:
    obj = attacker.manifest(f"flood/{attacker.number}", sequence=attacker.node.environment.now_ms())
    # Everything is well but the last byte of the signature, so that only the dearest check finds out.
    data = obj.data[:-1] + bytes([obj.data[-1] ^ 1])
    attacker.world.network.traffic.marked.add(content_id(data))
    attacker.send(data)


async def _spam(attacker: Attacker) -> None:
    attacker.send(attacker.manifest(f"spam/{attacker.number}", sequence=attacker.node.environment.now_ms()).data)


async def _equivocate(attacker: Attacker) -> None:
    sequence = attacker.node.environment.now_ms()
    for half in (0, 1):
        attacker.send(attacker.manifest(f"double/{attacker.number}", sequence=sequence).data, half=half)


async def _replay(attacker: Attacker) -> None:
    if attacker.heard:
        attacker.send(attacker.heard[random_below(attacker.node.environment, len(attacker.heard))])


async def _offer_as_many(attacker: Attacker) -> None:
    """As a new identity, offer a capability that anyone may provide; calls of it lead to this node, which refuses."""
    if not attacker.node.is_running:
        return
    environment = attacker.node.environment
    now = environment.now_ms()
    open_ones = [entry for entry in await attacker.node.node.entries() if entry.body.provide == PROVIDE_ANYONE]
    if not open_ones or attacker.endpoint is None:
        return
    key = SigningKey(environment.random_bytes(32))
    inbox = new_inbox_key(environment.random_bytes(32), now)
    capability = open_ones[random_below(environment, len(open_ones))].manifest.id
    bodies: list[Body] = [
        IdentityRecord(
            created=now,
            expires=now + DAY,
            inbox_keys=(PublicInboxKey(key=inbox.public, not_after=inbox.not_after, not_before=inbox.not_before),),
            mailboxes=(),
            sequence=now,
        ),
        ProviderOffer(
            created=now,
            expires=now + HOUR,
            available=True,
            capability=capability,
            endpoints=attacker.endpoint.addresses,
            sequence=now,
        ),
    ]
    for body in bodies:
        attacker.send(sign_object(body, key).data)


_ATTACKS: Final[dict[str, Callable[[Attacker], Awaitable[None]]]] = {
    INVALID_FLOOD: _flood_invalid,
    SPAM: _spam,
    EQUIVOCATE: _equivocate,
    REPLAY: _replay,
    SYBIL_OFFERS: _offer_as_many,
}


async def attack(attacker: Attacker, table: Adversary) -> None:
    """Attack from the table's start to its stop, in its rate; return at once for a kind that only has a shape."""
    step = _ATTACKS.get(table.kind)
    if step is None:
        return
    await anyio.sleep_until(table.start)
    while table.stop is None or anyio.current_time() < table.stop:
        attacker.number += 1
        await step(attacker)
        await anyio.sleep(1 / table.rate)
