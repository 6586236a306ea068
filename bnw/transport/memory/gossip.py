"""Gossip by flooding: each endpoint forwards what its validator accepts to all its other peers in the topic.

Simpler than gossipsub's mesh, and the same to the layers above: each message is judged once per node, rejected and
ignored ones go no further, and some may be lost. Message id and seen cache are those of the libp2p implementation.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import partial
from typing import Protocol

import anyio
import anyio.lowlevel
import trio
from anyio.abc import TaskGroup

from bnw.transport.bounds import GOSSIP_QUEUE, PUBLISH_PATIENCE, check_message
from bnw.transport.interface import MessageHandler, PeerId, Validator, Verdict
from bnw.transport.memory.peering import Peering
from bnw.transport.memory.traffic import NodeTraffic
from bnw.transport.seen import Seen
from bnw.transport.tasks import hand_over, judge
from bnw.wire.content_id import ContentId, content_id
from bnw.wire.errors import LocalError

MAX_GOSSIP_IN_FLIGHT = 256
"""Gossip messages on the way to one peer. A publish waits for room; a forwarded message is dropped."""

ENVELOPE_SIZE = 150
"""What gossipsub's envelope, with key and signature, adds to a message, roughly."""


class Owner(Protocol):
    """The endpoint, as its gossip sees it."""

    tasks: TaskGroup
    traffic: NodeTraffic

    def peerings(self) -> Iterable[Peering]:
        """In the order of peer ids."""
        ...

    def loses_gossip_to(self, peer: PeerId) -> bool: ...

    def count_lost_gossip(self) -> None: ...

    def count_marked_gossip(self, id: ContentId) -> None: ...

    def record(self, *what: object) -> None: ...


@dataclass(frozen=True, slots=True)
class Message:
    topic: str
    data: bytes
    id: ContentId

    def __str__(self) -> str:
        return f"{self.topic} {self.id.hex()[:32]} {len(self.data)}"


@dataclass(slots=True)
class _Subscription:
    validator: Validator
    handler: MessageHandler
    waiting: deque[tuple[PeerId, Message]] = field(default_factory=deque)
    arrived: trio.Event = field(default_factory=trio.Event)


class Gossip:
    def __init__(self, owner: Owner) -> None:
        self._owner = owner
        self._subscriptions: dict[str, _Subscription] = {}
        self._seen = Seen()
        self._room: anyio.Event | None = None
        """Set when there may be room again; there only while a publish waits for it."""

    async def subscribe(self, topic: str, validator: Validator, handler: MessageHandler) -> None:
        if topic in self._subscriptions:
            raise LocalError("subscribed", "this topic has been subscribed to already", place=topic)
        self._subscriptions[topic] = _Subscription(validator, handler)
        self._owner.tasks.start_soon(self._work, self._subscriptions[topic])
        for peering in self._owner.peerings():
            self._announce(topic, peering)
        await anyio.lowlevel.checkpoint()

    def greet(self, peering: Peering) -> None:
        """Tell a newly connected peer our topics."""
        for topic in self._subscriptions:
            self._announce(topic, peering)

    async def publish(self, topic: str, data: bytes) -> None:
        check_message(topic, data)
        message = Message(topic, data, content_id(data))
        with anyio.move_on_after(PUBLISH_PATIENCE):
            while any(p.gossip_in_flight >= MAX_GOSSIP_IN_FLIGHT for p in self._interested(topic)):
                if self._room is None:
                    self._room = anyio.Event()
                await self._room.wait()
        if self._seen.add((topic, message.id), trio.current_time()):
            self._owner.record("publish", message)
            self._spread(message, None)
        await anyio.lowlevel.checkpoint()

    def force(self, topic: str, data: bytes, peers: Iterable[PeerId]) -> int:
        """Send `data` to some peers, whether it was sent before or not, as only an adversary does.

        Returns to how many there was room to send it.
        """
        message = Message(topic, data, content_id(data))
        chosen = frozenset(peers)
        sent = 0
        for peering in self._interested(topic):
            if peering.peer in chosen and peering.gossip_in_flight < MAX_GOSSIP_IN_FLIGHT:
                self._send(message, peering)
                sent += 1
        return sent

    def on_message(self, message: Message, source: PeerId) -> None:
        self._owner.traffic.gossip_received += 1
        subscription = self._subscriptions.get(message.topic)
        if subscription is None or not self._seen.add((message.topic, message.id), trio.current_time()):
            return
        self._owner.traffic.gossip_new += 1
        if len(subscription.waiting) >= GOSSIP_QUEUE:
            self._owner.record("overrun", message, "from", source)
            return
        subscription.waiting.append((source, message))
        subscription.arrived.set()

    def _announce(self, topic: str, peering: Peering) -> None:
        def arrive() -> None:
            peering.far.topics[topic] = None

        peering.answer(arrive, "subscribe", topic)

    def _interested(self, topic: str) -> list[Peering]:
        return [peering for peering in self._owner.peerings() if topic in peering.topics]

    def _spread(self, message: Message, source: PeerId | None) -> None:
        for peering in self._interested(message.topic):
            if peering.peer == source:
                continue
            if peering.gossip_in_flight >= MAX_GOSSIP_IN_FLIGHT or self._owner.loses_gossip_to(peering.peer):
                self._owner.record("lost", "to", peering.peer, message)
                self._owner.count_lost_gossip()
                continue
            self._send(message, peering)

    def _send(self, message: Message, peering: Peering) -> None:
        peering.gossip_in_flight += 1
        size = ENVELOPE_SIZE + len(message.data)
        peering.carry(size, partial(self._arrive, message, peering), "gossip", message)

    def _arrive(self, message: Message, peering: Peering) -> None:
        peering.gossip_in_flight -= 1
        if self._room is not None:
            self._room.set()
            self._room = None
        self._owner.count_marked_gossip(message.id)
        peering.far.owner.gossip.on_message(message, peering.far.peer)

    async def _work(self, subscription: _Subscription) -> None:
        while True:
            # A judge that waits for nothing is through with all of them before any other task gets its turn. That costs
            # less than a turn for each, and no time passes meanwhile.
            while subscription.waiting:
                source, message = subscription.waiting.popleft()
                verdict = await judge(subscription.validator, source, message.data)
                self._owner.record(verdict.value, message, "from", source)
                if verdict is Verdict.ACCEPT:
                    self._spread(message, source)
                    await hand_over(subscription.handler, source, message.data)
            subscription.arrived = trio.Event()
            await subscription.arrived.wait()
