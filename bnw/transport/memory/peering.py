"""A connection between two endpoints: one `Peering` on each side, with the streams and the peer's topics."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import anyio

from bnw.transport.bounds import MAX_STREAMS
from bnw.transport.interface import PeerId
from bnw.transport.memory.stream import CONTROL_SIZE, MemoryStream
from bnw.wire.errors import RemoteError

if TYPE_CHECKING:
    from bnw.transport.memory.endpoint import MemoryEndpoint


class Peering:
    """One side of a connection. `up` while this side believes in it; entries that arrive later are dropped."""

    far: Peering

    def __init__(self, owner: MemoryEndpoint, peer: PeerId, *, inbound: bool) -> None:
        self.owner = owner
        self.peer = peer
        self.inbound = inbound
        self.up = False
        self.topics: dict[str, None] = {}
        self.gossip_in_flight = 0
        self._outbound: dict[MemoryStream, None] = {}
        self._inbound: dict[MemoryStream, None] = {}
        self._slot_freed = anyio.Event()
        self._streams_opened = 0

    @classmethod
    def pair(cls, dialler: MemoryEndpoint, target: MemoryEndpoint) -> tuple[Peering, Peering]:
        """Both sides of a new connection, neither of them up yet."""
        one = cls(dialler, target.peer_id, inbound=False)
        other = cls(target, dialler.peer_id, inbound=True)
        one.far, other.far = other, one
        return one, other

    def carry(self, size: int, call: Callable[[], None], *what: object) -> None:
        """Make `call` at the far side, after everything carried before; not if the far side has gone down by then."""
        far = self.far
        if self.owner.vanished:
            return
        self.owner.traffic.sent_bytes += size
        received = far.owner.traffic

        def arrive() -> None:
            if far.up:
                received.received_entries += 1
                received.received_bytes += size
                call()
            else:
                far.owner.record("drops it")

        self.owner.network.carry(self.owner.name, far.owner.name, size, arrive, *what)

    async def open(self, protocol: str) -> MemoryStream:
        """A new half for a stream opened here, once there is a slot for it.

        Raises `RemoteError` (`stream-closed`) if the connection goes down in the meantime.
        """
        while len(self._outbound) >= MAX_STREAMS:
            await self._slot_freed.wait()
        if not self.up:
            raise RemoteError("stream-closed", "the connection went away", place=f"peer {self.peer}")
        self._streams_opened += 1
        stream = MemoryStream(self, protocol, f"{self.owner.name}#{self._streams_opened}")
        self._outbound[stream] = None
        return stream

    def accept(self, opener: MemoryStream) -> MemoryStream | None:
        """The near half of a stream that the peer opens; None if it has too many."""
        if len(self._inbound) >= MAX_STREAMS:
            return None
        stream = MemoryStream(self, opener.protocol, opener.name, far=opener)
        self._inbound[stream] = None
        return stream

    def forget(self, stream: MemoryStream) -> None:
        self._inbound.pop(stream, None)
        if stream in self._outbound:
            del self._outbound[stream]
            self._slot_freed.set()
            self._slot_freed = anyio.Event()

    def go_down(self) -> None:
        """Fail every stream and drop whatever still arrives."""
        self.up = False
        for stream in [*self._outbound, *self._inbound]:
            stream.on_reset()
        self._slot_freed.set()

    def answer(self, call: Callable[[], None], *what: object) -> None:
        """Carry an entry that holds no data."""
        self.carry(CONTROL_SIZE, call, *what)
