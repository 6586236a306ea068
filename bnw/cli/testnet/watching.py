"""Sees who published what and who got it when, in a testnet of real nodes, for the recorder of the simulator.

A simulated store reports each object that is put into it. A real node says over its API when something is new to it,
which gives the time; what it is stands in its database, which may be read beside it. When something was published
stands in the object itself: its sequence is the publisher's clock, and all clocks here are this machine's, wrong by
what the scenario says. What a node took in before it could be listened to is found in its database at the next look.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final

import anyio

from bnw.cli.testnet.real_node import RealNode
from bnw.objects.catalog import IdentityRecord
from bnw.objects.rules import CATALOG, sequence_of
from bnw.objects.signed import SignedObject
from bnw.sim.measure import Recorder
from bnw.store.interface import PutOutcome
from bnw.wire.content_id import ContentId

LOOK_EVERY: Final = 1.0
"""Seconds between looks into the databases."""

MAX_NEWS: Final = 100_000
"""Ids heard from one node that wait to be looked at; more are found at the next look."""


@dataclass(slots=True)
class Watch:
    """`clock` is seconds since the scenario began, `true_ms` this machine's clock."""

    nodes: list[RealNode]
    """In the order of their numbers in the recorder."""
    clock: Callable[[], float]
    true_ms: Callable[[], int]
    recorder: Recorder = field(init=False)
    held: list[set[ContentId]] = field(init=False)
    """What each node is known to hold or to have held."""
    foreign: set[ContentId] = field(default_factory=set)
    """Objects that no honest node has signed."""
    _objects: dict[ContentId, SignedObject] = field(default_factory=dict)
    _published: set[ContentId] = field(default_factory=set)
    _moment: float | None = None
    """When what the recorder is being told about has happened, if not now."""

    def __post_init__(self) -> None:
        self.recorder = Recorder(now=self._now, true_ms=self.true_ms)
        for node in self.nodes:
            self.recorder.add_node(node.name, node.identity)
        self.held = [set() for _ in self.nodes]

    def _now(self) -> float:
        return self.clock() if self._moment is None else self._moment

    async def follow(self, number: int) -> None:
        """Tell the recorder what a node that has just started hears, until it ends."""
        node = self.nodes[number]
        # A crash may have taken something away.
        self.held[number] &= set(await self.ids(number))
        enter, leave = anyio.create_memory_object_stream[tuple[ContentId | None, float]](MAX_NEWS)

        def ready() -> None:
            enter.send_nowait((None, self.clock()))

        def heard(id: str) -> None:
            with suppress(anyio.WouldBlock):
                enter.send_nowait((ContentId(bytes.fromhex(id)), self.clock()))

        async def listen() -> None:
            with enter:
                await node.listen(heard, ready=ready)

        async with anyio.create_task_group() as group:
            group.start_soon(listen)
            with leave:
                async for id, at in leave:
                    if id is None:
                        await self.look(number)
                    elif id not in self.held[number]:
                        await self._take(number, id, at)

    async def own(self, number: int, id: ContentId) -> None:
        """A node was asked to publish, and this came of it."""
        await self._take(number, id, self.clock())

    async def look(self, number: int) -> None:
        """Find out what a node holds, from its database."""
        before = self.clock()
        there = await self.ids(number)
        for id in there:
            if id not in self.held[number]:
                await self._take(number, id, before)
        self.nodes[number].store.foreign = len(self.foreign.intersection(there))

    async def ids(self, number: int) -> list[ContentId]:
        """The catalog objects that stand in a node's database."""
        return await self.nodes[number].store.scope_ids(CATALOG, now=self.true_ms(), limit=MAX_NEWS)

    async def _take(self, number: int, id: ContentId, at: float) -> None:
        obj = self._objects.get(id) or await self.nodes[number].store.get_object(id)
        if obj is None or id in self.held[number]:
            # Replaced before it could be looked at, or taken by somebody else while it was.
            return
        self._objects[id] = obj
        self.held[number].add(id)
        publisher = self.recorder.signers.get(obj.signer)
        if publisher is None:
            self.foreign.add(id)
            return
        if id not in self._published:
            self._published.add(id)
            if not isinstance(obj.body, IdentityRecord):
                self.held[publisher].add(id)
                self._put(publisher, obj, min(at, self._signed(publisher, obj)))
        if number != publisher:
            self._put(number, obj, at)

    def _put(self, number: int, obj: SignedObject, at: float) -> None:
        self._moment = at
        self.recorder.on_put(number, obj, PutOutcome.ADDED)
        self._moment = None

    def _signed(self, publisher: int, obj: SignedObject) -> float:
        """When an object was signed, in seconds since the start, by the publisher's clock, which was a little wrong."""
        ago = self.nodes[publisher].environment.now_ms() - sequence_of(obj.body)
        return self.clock() - max(0, ago) / 1000
