"""The transport contract: dial, listen, streams by protocol name, publish, subscribe with a validator, peers, events.

Peer ids and addresses are opaque text above this layer (with libp2p: a base58 peer id and a multiaddr). A transport
authenticates peers: the id of a connected peer is backed by a key. It promises nothing about delivery beyond ordered
bytes within a stream; gossip may lose messages, and reconciliation repairs that.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from enum import Enum
from typing import NewType, Protocol

PeerId = NewType("PeerId", str)


class Verdict(Enum):
    """What a validator says of a gossiped message (design section 10)."""

    ACCEPT = "accept"
    """Deliver and forward."""
    IGNORE = "ignore"
    """Neither deliver nor forward; nobody is blamed."""
    REJECT = "reject"
    """Neither deliver nor forward; the peer that forwarded it must have known better."""


@dataclass(frozen=True, slots=True)
class PeerConnected:
    peer: PeerId


@dataclass(frozen=True, slots=True)
class PeerDisconnected:
    peer: PeerId


TransportEvent = PeerConnected | PeerDisconnected


@dataclass(frozen=True, slots=True)
class PeerInfo:
    """A connected peer. `inbound` tells who dialled; `addresses` are those that the connection uses."""

    peer: PeerId
    addresses: tuple[str, ...]
    inbound: bool


class Stream(Protocol):
    """An ordered, two-way byte stream to one peer.

    Errors are `RemoteError` with code `stream-closed` (the peer ended or reset it, or went away) or `stream-stalled`
    (it has read nothing for a minute), and `LocalError` with code `stream-ended` for using a stream after closing it,
    or sending after `send_eof`. A reset discards what the other side has not read yet; closing does not. One task at a
    time may receive, and one send.
    """

    @property
    def peer(self) -> PeerId: ...

    @property
    def protocol(self) -> str: ...

    async def receive(self, max_bytes: int = 65536) -> bytes:
        """At least one byte, or b"" once the peer has finished sending."""
        ...

    async def send(self, data: bytes) -> None:
        """Send all of `data`, waiting for room in the peer's window."""
        ...

    async def send_eof(self) -> None:
        """Say that nothing more will be sent; receiving goes on."""
        ...

    async def aclose(self) -> None:
        """Close both directions. Safe to call twice. Never raises."""
        ...

    async def reset(self) -> None:
        """Give the stream up at once and tell the peer so. Never raises."""
        ...


StreamHandler = Callable[[Stream], Awaitable[None]]
"""Serves one inbound stream. The transport closes the stream when it returns and resets it when it raises."""

Validator = Callable[[PeerId, bytes], Awaitable[Verdict]]
"""Judges one gossiped message before it is delivered or forwarded; gets the forwarding peer and the message."""

MessageHandler = Callable[[PeerId, bytes], Awaitable[None]]
"""Receives each accepted message once, with the peer that forwarded it."""


class Transport(Protocol):
    """A running endpoint on the network. Use it as the value of the implementation's async context manager."""

    @property
    def peer_id(self) -> PeerId: ...

    @property
    def addresses(self) -> tuple[str, ...]:
        """Addresses, with the peer id, at which others can dial this endpoint."""
        ...

    def peers(self) -> tuple[PeerInfo, ...]:
        """Connected peers, ordered by peer id."""
        ...

    async def dial(self, address: str, *, timeout: float = 10.0) -> PeerId:
        """Connect to `address` (or do nothing if connected) and return the peer found there.

        Raises `LocalError` (`address`) for an address that cannot be read or is our own, `LocalError` (`busy`) when too
        many peers are connected, and `RemoteError` (`unreachable`) when nobody answers within `timeout` seconds or the
        peer there is another than the address says.
        """
        ...

    async def disconnect(self, peer: PeerId) -> None: ...

    async def open_stream(self, peer: PeerId, protocol: str, *, timeout: float = 10.0) -> Stream:
        """Open a stream to a connected peer.

        Raises `RemoteError`: `not-connected`, `protocol` (the peer does not speak it), `busy` (no stream slot became
        free within `timeout` seconds), `stream-stalled` (no answer within `timeout` seconds) or `stream-closed`.
        """
        ...

    def serve(self, protocol: str, handler: StreamHandler) -> None:
        """Answer inbound streams of `protocol` with `handler`. Call before peers connect."""
        ...

    async def publish(self, topic: str, data: bytes) -> None:
        """Gossip `data` to the topic. The own subscription does not see it.

        Waits while the queues of the peers it goes to are full, for five seconds at most. Bytes that were gossiped
        within the last two minutes, by whomever, are not sent again. Raises `LocalError` (`too-large`, `topic`).
        """
        ...

    async def subscribe(self, topic: str, validator: Validator, handler: MessageHandler) -> None:
        """Join `topic`; each message passes `validator`, and `handler` if accepted.

        Both are awaited for one message of the topic at a time, in the order of arrival, so they should be quick. One
        that raises loses its message and nothing else. Raises `LocalError` (`subscribed`) for a topic joined already.
        """
        ...

    def events(self) -> AbstractAsyncContextManager[AsyncIterator[TransportEvent]]:
        """Connections and disconnections from now on. A consumer that falls behind loses the oldest, not the newest."""
        ...
