"""Memory does not grow with the payload. Real figures, between processes, are in scripts/bench_payload.py."""

from __future__ import annotations

import tracemalloc
from collections.abc import AsyncIterator, Awaitable, Callable

from payload_parts import ALICE, BOB, SeededEnvironment, keys_of

from bnw.inbox.chunks import seal_chunk
from bnw.inbox.opening import opened_payload
from bnw.inbox.sealing import Outgoing, seal_to_store
from bnw.objects.signed import SignedObject
from bnw.sim.run import run_virtual
from bnw.store.memory import MemoryStore
from bnw.wire.content_id import ContentId, content_id
from bnw.wire.limits import MIB

FEW, MANY = 16, 64
"""Mebibytes."""
SLACK = 3 * MIB


class Plain:
    def __init__(self, count: int) -> None:
        self._left = count

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        if not self._left:
            raise StopAsyncIteration
        self._left -= 1
        return bytes(MIB)


class ForgetfulStore(MemoryStore):
    """Knows how chunks of zeros are sealed, and makes them again when asked for them."""

    def __init__(self, key: bytes) -> None:
        super().__init__()
        self._key = key
        self._ids: list[ContentId] = []

    async def put_blob(self, data: bytes) -> ContentId:
        self._ids.append(content_id(data))
        return self._ids[-1]

    async def get_blob(self, id: ContentId) -> bytes | None:
        number = self._ids.index(id)
        return seal_chunk(bytes(MIB), self._key, number, is_last=number == len(self._ids) - 1)


def peak(act: Callable[[], Awaitable[None]]) -> int:
    tracemalloc.start()
    try:
        run_virtual(1, act)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def peaks(count: int) -> tuple[int, int]:
    """Bytes of memory at their most, while sealing and while opening so many mebibytes."""
    store = ForgetfulStore(SeededEnvironment().random_bytes(32))
    manifests: list[SignedObject] = []

    async def seal() -> None:
        outgoing = Outgoing(Plain(count), "a/b")
        recipients = keys_of(BOB)
        manifests.append(
            await seal_to_store(
                outgoing, store, sender=ALICE.key, recipients=recipients, environment=SeededEnvironment()
            )
        )

    async def open_again() -> None:
        async with opened_payload(store, manifests[0], BOB.read(manifests[0])) as pieces:
            async for _ in pieces:
                pass

    return peak(seal), peak(open_again)


def test_sealing_and_opening_four_times_as_much_takes_no_more_memory() -> None:
    for few, many in zip(peaks(FEW), peaks(MANY), strict=True):
        assert many < few + SLACK
        assert many < 20 * MIB
