"""RPCs that wait to be sent to one peer: enough for a burst, bounded in bytes, with room to wait for.

Fault (libp2p 0.8.1): a peer's queue holds 32 RPCs of any size, and drops what comes on top without a word. Together
with the queue of a subscription, also of 32, 200 messages published at once were 32 delivered.

On the stock library: tests/transport/test_crash_frames.py.

Can go when the size of the queue is a parameter and `publish` can wait for room.
"""

from __future__ import annotations

from collections.abc import Callable

from libp2p.pubsub.pb.rpc_pb2 import RPC
from libp2p.pubsub.rpc_queue import PriorityQueue

from bnw.transport.bounds import MAX_GOSSIP_MESSAGE

MAX_RPCS = 1024
MAX_SIZE = 32 * MAX_GOSSIP_MESSAGE


class Outbox(PriorityQueue):
    def __init__(self, taken_over: PriorityQueue, on_room: Callable[[], None]) -> None:
        super().__init__(MAX_RPCS)
        self._size = 0
        self._on_room = on_room
        self.idle = False
        """Whether everything pushed has also been written."""
        while (rpc := taken_over.pop()) is not None:
            self.push(rpc)

    @property
    def crowded(self) -> bool:
        """Whether a publish should wait: half is left for what we forward, which cannot wait."""
        return len(self) >= MAX_RPCS // 2 or self._size >= MAX_SIZE // 2

    def push(self, rpc: RPC, priority: bool = False) -> bool:
        size = rpc.ByteSize()
        if self._size + size > MAX_SIZE or not super().push(rpc, priority):
            return False
        self._size += size
        self.idle = False
        return True

    def pop(self) -> RPC | None:
        rpc = super().pop()
        if rpc is None:
            # Who asks for more has written what it was given before.
            self.idle = True
        else:
            self._size -= rpc.ByteSize()
        self._on_room()
        return rpc
