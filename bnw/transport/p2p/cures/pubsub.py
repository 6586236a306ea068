"""Pubsub that survives any bytes, and hands messages to somebody who may take their time.

Faults (libp2p 0.8.1):

- an RPC that is not protobuf, or a message with a key that cannot be read, ends the program;
- each message is a task, and the thousand-and-first ends the program;
- a message waits for its validator outside every bound, and for its reader in a queue of 32 that drops the rest;
- a message refused for our own want of room stays refused for five minutes;
- the sender's signed record is verified twice for each RPC, and the addresses in it are stored;
- a peer that could not be reached at the first attempt is never tried again, and one that is reached twice at once
  leaves a task and a stream behind; so does every stream that fails;
- each time that a peer subscribes it is sent all recent messages, by a task of its own;
- after a failed stream we forget what a peer that is still connected subscribes to, and it will not say it again.

On the stock library: tests/transport/test_crash_frames.py.

Can go when these are cured upstream; bounds and waiting would remain, in a validator.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import anyio
import anyio.lowlevel
from google.protobuf.message import DecodeError
from libp2p.abc import INetStream
from libp2p.network.stream.exceptions import StreamEOF, StreamError
from libp2p.peer.id import ID
from libp2p.pubsub.pb.rpc_pb2 import RPC, Message
from libp2p.pubsub.pubsub import Pubsub
from libp2p.pubsub.rpc_queue import RpcQueue
from libp2p.pubsub.validators import signature_validator

from bnw.transport.bounds import MAX_TOPIC_LENGTH, MAX_TOPICS
from bnw.transport.p2p.cures.frames import MAX_RPC, FrameReader
from bnw.transport.p2p.cures.gossipsub import ContainedGossipSub
from bnw.transport.p2p.cures.host import ContainedHost, ProtocolRefused, abandon
from bnw.transport.p2p.cures.message_cache import SeenMessages, message_id
from bnw.transport.p2p.cures.outbox import Outbox
from bnw.transport.tasks import log
from bnw.wire.errors import InvalidError

READ_SIZE = 256 * 1024
MAX_MESSAGES = 4096
"""Messages in one RPC."""

RETRY_FIRST, RETRY_LAST = 0.5, 10.0
"""Seconds before another attempt at a gossip stream to a peer that is still connected: doubled up to the second."""


class Receiver(Protocol):
    """Who takes what arrives."""

    async def arrived(self, peer: ID, message: Message) -> None:
        """A new message in one of our topics, correctly signed. Waiting holds back this peer, and nobody else."""
        ...

    def misbehaved(self, peer: ID) -> None:
        """The peer sent what nobody sends in good faith."""
        ...

    def wants(self, peer: ID, message: Message) -> bool:
        """Whether to go on with a message that has one topic; cheap, and before its signature is verified."""
        ...


class ContainedPubsub(Pubsub):
    host: ContainedHost
    router: ContainedGossipSub
    seen_messages: SeenMessages

    def __init__(self, host: ContainedHost, receiver: Receiver, on_room: Callable[[], None]) -> None:
        super().__init__(
            host,
            ContainedGossipSub(),
            strict_signing=True,
            msg_id_constructor=message_id,
            max_subscriptions_per_rpc=2 * MAX_TOPICS,
            max_subscriptions_per_peer=MAX_TOPICS,
            max_inbound_rpc_size=MAX_RPC,
        )
        self.seen_messages.stop()
        self.seen_messages = SeenMessages()
        self._receiver = receiver
        self._on_room = on_room
        self._inbound: dict[ID, INetStream] = {}
        self._registering: set[ID] = set()
        self._replaying: set[tuple[ID, str]] = set()

    async def stream_handler(self, stream: INetStream) -> None:
        """Serve a gossip stream that a peer opened. It may have one; another replaces it."""
        peer = stream.muxed_conn.peer_id
        if peer in self._inbound:
            await abandon(self._inbound[peer])
        self._inbound[peer] = stream
        try:
            await self.continuously_read_stream(stream)
        except StreamEOF:
            return
        except StreamError as error:
            log.debug("the gossip stream of peer %s ended: %r", peer, error)
        except InvalidError:
            self._receiver.misbehaved(peer)
            raise
        finally:
            if self._inbound.get(peer) is stream:
                del self._inbound[peer]

    async def continuously_read_stream(self, stream: INetStream) -> None:
        peer = stream.muxed_conn.peer_id
        frames = FrameReader()
        skipped = 0
        while data := await stream.read(READ_SIZE):
            for body in frames.feed(data):
                try:
                    await self._take_in(peer, body)
                except InvalidError as error:
                    # The frame was sound, so the stream still is.
                    log.debug("peer %s: %s", peer, error)
                    self._receiver.misbehaved(peer)
            for _ in range(skipped, frames.skipped):
                self._receiver.misbehaved(peer)
            skipped = frames.skipped

    async def push_msg(self, msg_forwarder: ID, msg: Message) -> None:
        """Spread a message of our own. Those of others come through `arrived` and `accept`."""
        if self.seen_messages.add(message_id(msg)):
            await self.router.publish(msg_forwarder, msg)

    async def accept(self, peer: ID, message: Message) -> None:
        """Forward a message that `peer` has sent us."""
        await self.router.publish(peer, message)

    async def handle_sending_messages(self, peer_id: ID, stream: INetStream, queue: RpcQueue) -> None:
        # The queue makes its own inner queue, so it is replaced here, before anything can have filled it.
        queue._queue = Outbox(queue._queue, self._on_room)
        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(_until_reset, stream, tasks.cancel_scope)
                await super().handle_sending_messages(peer_id, stream, queue)
                tasks.cancel_scope.cancel()
        finally:
            await abandon(stream)
        if self.peers.get(peer_id) is stream:
            self._handle_dead_peer(peer_id)

    async def _take_in(self, peer: ID, body: bytes) -> None:
        rpc = RPC()
        try:
            rpc.ParseFromString(body)
        except DecodeError:
            raise InvalidError("rpc", "this is no gossipsub RPC") from None
        if len(rpc.publish) > MAX_MESSAGES or len(rpc.subscriptions) > self.max_subscriptions_per_rpc:
            raise InvalidError("rpc", f"{len(rpc.publish):,} messages and {len(rpc.subscriptions):,} subscriptions")
        rpc.ClearField("senderRecord")
        for message in rpc.publish:
            await self._take_in_message(peer, message)
        for subscription in rpc.subscriptions:
            if 0 < len(subscription.topicid.encode()) <= MAX_TOPIC_LENGTH:
                self.handle_subscription(peer, subscription)
        if rpc.HasField("control"):
            await self.router.handle_rpc(rpc, peer)

    async def _take_in_message(self, peer: ID, message: Message) -> None:
        if len(message.topicIDs) != 1 or not self._is_subscribed_to_msg(message):
            return
        key = message_id(message)
        if self.seen_messages.has(key) or not self._receiver.wants(peer, message):
            return
        if not _is_signed(message):
            raise InvalidError("rpc", "a message without a good signature")
        await anyio.lowlevel.checkpoint()  # verifying takes time, and an RPC may hold many messages
        if self.seen_messages.add(key):
            await self._receiver.arrived(peer, message)

    async def _handle_new_peer_with_retry(self, peer_id: ID, timeout: float | None = None) -> None:
        if peer_id in self._registering:
            return
        self._registering.add(peer_id)
        delay = RETRY_FIRST
        try:
            while self._peer_is_connected(peer_id):
                try:
                    await self._handle_new_peer(peer_id)
                    return
                except ProtocolRefused:
                    return
                except Exception as error:  # noqa: BLE001 - opening a stream raises anything
                    log.debug("no gossip stream to peer %s yet: %r", peer_id, error)
                await anyio.sleep(delay)
                delay = min(2 * delay, RETRY_LAST)
        finally:
            self._registering.discard(peer_id)

    async def _replay_recent_messages(self, peer_id: ID, topic: str) -> None:
        # A peer that subscribes and unsubscribes in turn is not given everything each time at once.
        if (peer_id, topic) not in self._replaying:
            self._replaying.add((peer_id, topic))
            try:
                await super()._replay_recent_messages(peer_id, topic)
            finally:
                self._replaying.discard((peer_id, topic))

    def _forget_all_subscriptions(self, peer_id: ID) -> None:
        if not self._peer_is_connected(peer_id):
            super()._forget_all_subscriptions(peer_id)


def _is_signed(message: Message) -> bool:
    try:
        return signature_validator(message)
    except Exception:  # noqa: BLE001 - a key that cannot be read raises anything
        return False


async def _until_reset(stream: INetStream, scope: anyio.CancelScope) -> None:
    """Cancel `scope` when the peer resets the stream; nothing else tells before the next message is lost."""
    try:
        while await stream.read(READ_SIZE):
            log.debug("peer %s says something on our gossip stream", stream.muxed_conn.peer_id)
    except StreamEOF:
        return
    except StreamError:
        scope.cancel()
