"""Gossip for the transport: topics, validators, and pacing, over pubsub and its router.

Messages of a topic wait for their validator in the order of arrival. While too many of one peer wait, nothing more is
read from its gossip stream, so that a flood stays in the peer's own queues and costs others only their turn.
"""

from __future__ import annotations

import math
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Self

import anyio
import anyio.lowlevel
from anyio.abc import TaskGroup
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from libp2p.peer.id import ID
from libp2p.pubsub.pb.rpc_pb2 import Message

from bnw.transport.bounds import (
    MAX_GOSSIP_MESSAGE,
    MAX_PENDING,
    MAX_PENDING_SIZE,
    PUBLISH_PATIENCE,
    check_message,
)
from bnw.transport.interface import MessageHandler, PeerId, Validator, Verdict
from bnw.transport.p2p.cures.host import ContainedHost
from bnw.transport.p2p.cures.outbox import Outbox
from bnw.transport.p2p.cures.pubsub import ContainedPubsub
from bnw.transport.p2p.cures.service import contained_service
from bnw.transport.p2p.faults import Faults
from bnw.transport.tasks import background_tasks, hand_over, judge, log
from bnw.wire.errors import LocalError

REJECTED = 1.0
MALFORMED = 5.0
"""Points (see `faults`) for a message that its validator rejects, and for what nobody sends in good faith."""


FAREWELL = 1.0
"""Seconds that closing waits for what has been published."""


@dataclass(slots=True)
class _Pending:
    """Messages of one peer that wait for a validator."""

    count: int = 0
    size: int = 0

    @property
    def full(self) -> bool:
        return self.count >= MAX_PENDING or self.size >= MAX_PENDING_SIZE


@dataclass(frozen=True, slots=True)
class _Subscription:
    validator: Validator
    handler: MessageHandler
    arrivals: MemoryObjectSendStream[tuple[ID, Message]]


class Gossip:
    """`hang_up` is called with a peer that sent too much that is invalid."""

    def __init__(self, host: ContainedHost, tasks: TaskGroup, hang_up: Callable[[ID], None]) -> None:
        self._pubsub = ContainedPubsub(host, self, self._made_progress)
        self._tasks = tasks
        self._hang_up = hang_up
        self._subscriptions: dict[str, _Subscription] = {}
        self._pending: dict[ID, _Pending] = {}
        self._faults = Faults()
        self._progress = anyio.Event()

    @classmethod
    @asynccontextmanager
    async def running(cls, host: ContainedHost, hang_up: Callable[[ID], None]) -> AsyncIterator[Self]:
        async with background_tasks() as tasks:
            gossip = cls(host, tasks, hang_up)
            pubsub = gossip._pubsub
            async with contained_service(pubsub.router), contained_service(pubsub):
                await pubsub.wait_until_ready()
                yield gossip

    async def subscribe(self, topic: str, validator: Validator, handler: MessageHandler) -> None:
        check_message(topic, b"")
        if topic in self._subscriptions:
            raise LocalError("subscribed", "this topic has been subscribed to already", place=topic)
        # Unbounded here, because what each peer may add to it is bounded (`_Pending`).
        send, receive = anyio.create_memory_object_stream[tuple[ID, Message]](math.inf)
        self._subscriptions[topic] = _Subscription(validator, handler, send)
        self._tasks.start_soon(self._work, self._subscriptions[topic], receive)
        await self._pubsub.subscribe(topic)

    async def publish(self, topic: str, data: bytes) -> None:
        check_message(topic, data)
        with anyio.move_on_after(PUBLISH_PATIENCE):
            while any(self._crowded(peer) for peer in self._pubsub.router.targets(topic)):
                await self._progress.wait()
        await self._pubsub.publish(topic, data)
        await anyio.lowlevel.checkpoint()

    async def drain(self) -> None:
        """Wait for a moment until what has been published has left this machine."""
        with anyio.move_on_after(FAREWELL):
            while not all(outbox is None or outbox.idle for outbox in map(self._outbox, self._pubsub.peer_queues)):
                await self._progress.wait()

    def wants(self, peer: ID, message: Message) -> bool:
        if len(message.data) > MAX_GOSSIP_MESSAGE:
            self._blame(peer, REJECTED)
            return False
        return message.topicIDs[0] in self._subscriptions

    async def arrived(self, peer: ID, message: Message) -> None:
        while (pending := self._pending.setdefault(peer, _Pending())).full:
            await self._progress.wait()
        pending.count += 1
        pending.size += len(message.data)
        self._subscriptions[message.topicIDs[0]].arrivals.send_nowait((peer, message))

    def misbehaved(self, peer: ID) -> None:
        self._blame(peer, MALFORMED)

    def _crowded(self, peer: ID) -> bool:
        outbox = self._outbox(peer)
        return outbox is not None and outbox.crowded

    def _outbox(self, peer: ID) -> Outbox | None:
        queue = self._pubsub.peer_queues.get(peer)
        return queue._queue if queue is not None and isinstance(queue._queue, Outbox) else None

    def _made_progress(self) -> None:
        self._progress.set()
        self._progress = anyio.Event()

    def _settled(self, peer: ID, message: Message) -> None:
        pending = self._pending[peer]
        pending.count -= 1
        pending.size -= len(message.data)
        if not pending.count:
            del self._pending[peer]
        self._made_progress()

    async def _work(self, subscription: _Subscription, arrivals: MemoryObjectReceiveStream[tuple[ID, Message]]) -> None:
        async with subscription.arrivals, arrivals:
            async for peer, message in arrivals:
                try:
                    await self._judge(subscription, peer, message)
                except Exception:  # noqa: BLE001 - libp2p raises anything
                    # What libp2p raises while it forwards must cost this message, and not the subscription.
                    log.exception("a gossip message of peer %s could not be passed on", peer)
                finally:
                    self._settled(peer, message)

    async def _judge(self, subscription: _Subscription, peer: ID, message: Message) -> None:
        forwarder = PeerId(peer.to_base58())
        verdict = await judge(subscription.validator, forwarder, message.data)
        if verdict is Verdict.ACCEPT:
            await self._pubsub.accept(peer, message)
            await hand_over(subscription.handler, forwarder, message.data)
        elif verdict is Verdict.REJECT:
            self._blame(peer, REJECTED)

    def _blame(self, peer: ID, points: float) -> None:
        name = PeerId(peer.to_base58())
        if self._faults.add(name, points, anyio.current_time()):
            log.info("hanging up on peer %s: it sent too much that is invalid", name)
            self._hang_up(peer)
