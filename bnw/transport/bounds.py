"""Bounds on what a peer can make an endpoint hold, the same for both implementations.

Sizes are bytes, times seconds.
"""

from __future__ import annotations

from typing import Final

from bnw.wire.errors import LocalError
from bnw.wire.limits import KIB, MAX_SIGNED_OBJECT

MAX_CONNECTIONS: Final = 128
"""Connected peers."""

MAX_STREAMS: Final = 64
"""Streams that one peer may have open towards us, and we towards it. One more waits (ours) or is reset (theirs)."""

STREAM_WINDOW: Final = 256 * KIB
"""Bytes that a sender may have on the way, unread, within one stream. The initial window of Yamux."""

MAX_STREAM_WINDOW: Final = 2 * 1024 * KIB
"""How far the window of a stream whose reader keeps up may grow: 80 MiB a second at a round trip of 25 ms."""

MAX_UNREAD: Final = 1024 * KIB
"""Received bytes, over all streams with one peer, that no reader has taken. More, and nothing is received from that
peer until its readers catch up. Together with `MAX_CONNECTIONS` this bounds what peers can make us buffer."""

MAX_PIECE: Final = 65_507
"""Bytes sent at once. With its 12-byte header and 16-byte tag, a Yamux frame of this size fills exactly one Noise
message of 65,535 bytes, which is measurably the fastest."""

STALL_TIMEOUT: Final = 60.0
"""How long a sender waits for a reader that grants no window before it calls the stream stalled."""

MAX_GOSSIP_MESSAGE: Final = MAX_SIGNED_OBJECT
"""A gossiped message; nothing but signed objects is gossiped (design section 10)."""

MAX_TOPICS: Final = 64
"""Topics that a peer may subscribe to as far as we keep count."""

MAX_TOPIC_LENGTH: Final = 128

GOSSIP_QUEUE: Final = 1024
"""Messages of one topic that wait for the validator. More are dropped; reconciliation repairs that."""

MAX_PENDING: Final = 256
MAX_PENDING_SIZE: Final = 1024 * KIB
"""Messages, and bytes of messages, from one peer that wait for the validator before nothing more is read from it."""

MAX_SEEN: Final = 8192
SEEN_SECONDS: Final = 120.0
"""Messages that are remembered, by content id, so as to handle each once. As long as gossipsub's usual seen cache."""

PUBLISH_PATIENCE: Final = 5.0
"""How long a publish waits for room in the queues of slow peers before it goes ahead without them."""


def check_message(topic: str, data: bytes) -> None:
    """Raise `LocalError` (`too-large`, `topic`) for a message that no peer would take."""
    if len(data) > MAX_GOSSIP_MESSAGE:
        raise LocalError(
            "too-large",
            f"a gossip message of {len(data):,} bytes exceeds the limit of {MAX_GOSSIP_MESSAGE:,}",
            cure="announce its content id and serve the bytes as a blob",
        )
    if not 0 < len(topic.encode()) <= MAX_TOPIC_LENGTH:
        raise LocalError("topic", f"a topic has 1 to {MAX_TOPIC_LENGTH} bytes", place=topic)
