"""The gossip caches, keyed by content id and bounded.

Faults (libp2p 0.8.1): the message cache offers messages under sender and number whatever the message id is configured
to be, so that with content ids peers ask for everything again, once a second; neither cache is bounded in number or
size; the cache of seen messages starts a thread that outlives it.

On the stock library: tests/transport/test_gossip_cures.py.

Can go when the caches use the configured id and take a size.
"""

from __future__ import annotations

import anyio
from libp2p.pubsub.mcache import CacheEntry, MessageCache
from libp2p.pubsub.pb.rpc_pb2 import Message
from libp2p.tools.timed_cache.last_seen_cache import LastSeenCache

from bnw.transport.bounds import MAX_GOSSIP_MESSAGE
from bnw.transport.seen import Seen
from bnw.wire.content_id import content_id

GOSSIP_WINDOW = 3
GOSSIP_HISTORY = 5
"""Heartbeats for which a message is offered, and kept (the gossipsub specification's defaults)."""

MAX_CACHED_SIZE = 128 * MAX_GOSSIP_MESSAGE


def message_id(message: Message) -> bytes:
    """What makes two messages one: the content id of the data."""
    return content_id(message.data)


class ContentCache(MessageCache):
    def __init__(self) -> None:
        super().__init__(GOSSIP_WINDOW, GOSSIP_HISTORY)
        self._size = 0

    def put(self, msg: Message) -> None:
        key = message_id(msg)
        if key in self.msgs or self._size + len(msg.data) > MAX_CACHED_SIZE:
            # Not offered to those who missed it; reconciliation repairs that.
            return
        self.msgs[key] = msg
        self._size += len(msg.data)
        self.history[0].append(CacheEntry(key, msg.topicIDs))

    def shift(self) -> None:
        super().shift()
        self._size = sum(len(message.data) for message in self.msgs.values())


class SeenMessages(LastSeenCache):
    """Has the interface of its base, and nothing else of it: no thread, no wall clock."""

    def __init__(self) -> None:
        self._seen = Seen()

    def add(self, key: bytes) -> bool:
        """Whether `key` is new."""
        return self._seen.add(key, anyio.current_time())

    def has(self, key: bytes) -> bool:
        return self._seen.knows(key, anyio.current_time())

    def stop(self) -> None:
        return
