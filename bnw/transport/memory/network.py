"""The memory network: its endpoints, the links between them, and what the experimenter can do to these."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from types import TracebackType
from typing import Self

import anyio
import trio

from bnw.transport.interface import PeerId
from bnw.transport.memory.endpoint import MemoryEndpoint
from bnw.transport.memory.links import Direction, Link
from bnw.transport.memory.peering import Peering
from bnw.transport.memory.queue import Call, EventQueue
from bnw.transport.memory.traffic import Traffic
from bnw.transport.tasks import background_tasks
from bnw.wire.content_id import content_id
from bnw.wire.environment import Environment
from bnw.wire.errors import LocalError

CUT_NOTICED = 10.0
"""Seconds after which both sides of a cut link give their connection up, as keepalives would have it."""

Trace = Callable[[str], None]


class MemoryNetwork:
    """Endpoints by name within one process.

        async with MemoryNetwork(environment) as network, network.endpoint("a") as a, network.endpoint("b") as b:
            await a.dial("mem:b")

    `environment` gives the randomness of links. `link` is what lies between any two endpoints unless `set_link` says
    otherwise. `trace` gets a line for everything that arrives and everything that happens, with its virtual time in
    seconds: `1.005000 a>b gossip <topic> <hash> <size> sent 1.000000`. Bytes show as size and first half of their hash.
    With a `tick`, entries arrive at its multiples only (seconds), which makes large networks cheaper.
    """

    def __init__(
        self, environment: Environment, *, link: Link | None = None, tick: float = 0.0, trace: Trace | None = None
    ) -> None:
        self.traffic = Traffic()
        self._environment = environment
        self._link = link or Link()
        self.link_maker: Callable[[str, str], Link] | None = None
        """Says what lies between two names when they first have to do with each other, unless `set_link` does."""
        self._links: dict[tuple[str, str], Link] = {}
        self._trace = trace
        self._queue = EventQueue(tick)
        self._endpoints: dict[str, MemoryEndpoint] = {}
        self._directions: dict[tuple[str, str], Direction] = {}
        self._cuts: dict[tuple[str, str], float] = {}
        self._divisions: dict[frozenset[str], float] = {}
        self._tasks = background_tasks()

    async def __aenter__(self) -> Self:
        tasks = await self._tasks.__aenter__()
        tasks.start_soon(self._queue.run)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> bool | None:
        return await self._tasks.__aexit__(kind, error, traceback)

    @asynccontextmanager
    async def endpoint(self, name: str) -> AsyncIterator[MemoryEndpoint]:
        """A running endpoint; leaving the context closes it. Its name is free again afterwards."""
        if name in self._endpoints:
            raise LocalError("port-in-use", "this name is taken on the memory network", place=name)
        async with background_tasks() as tasks:
            endpoint = MemoryEndpoint(self, name, tasks)
            self._endpoints[name] = endpoint
            try:
                yield endpoint
            finally:
                if self._endpoints.get(name) is endpoint:
                    del self._endpoints[name]
                endpoint.close()

    def endpoint_named(self, name: str) -> MemoryEndpoint | None:
        return self._endpoints.get(name)

    def set_link(self, a: str, b: str, link: Link) -> None:
        """Let `link` lie between `a` and `b`, also for what they are connected with already."""
        self._links[_pair(a, b)] = link
        for ends in ((a, b), (b, a)):
            if ends in self._directions:
                self._directions[ends].link = link

    def disconnect(self, a: str, b: str) -> None:
        """Break the connection between `a` and `b`, if there is one; both notice at once and may dial again."""
        self.record("disconnect", a, b)
        one, other = self._endpoints.get(a), self._endpoints.get(b)
        for here, there in ((one, b), (other, a)):
            if here is not None and (peering := here.peering(PeerId(there))) is not None:
                here.lose(peering)

    def crash(self, name: str) -> None:
        """Let the endpoint `name` vanish without a word; its name is free at once. Nothing that it still sends arrives.

        Its peers notice after `CUT_NOTICED` seconds, or when it dials them anew.
        """
        endpoint = self._endpoints.pop(name, None)
        if endpoint is not None:
            self.record(name, "crash")
            for peering in endpoint.vanish():
                self.lose_later(peering.far)

    def lose_later(self, peering: Peering) -> None:
        """The other side of `peering` has crashed, which this side notices after `CUT_NOTICED` seconds."""
        self._queue.call_at(anyio.current_time() + CUT_NOTICED, partial(peering.owner.lose, peering))

    def cut(self, a: str, b: str) -> None:
        """Let nothing pass between `a` and `b`. What they send waits for `heal`, until after `CUT_NOTICED` seconds both
        give their connection up; dialling is in vain."""
        pair = _pair(a, b)
        if pair not in self._cuts:
            now = anyio.current_time()
            self.record("cut", a, b)
            self._cuts[pair] = now
            self._queue.call_at(now + CUT_NOTICED, lambda: self._notice(pair, now))

    def heal(self, a: str, b: str) -> None:
        """Undo `cut`; what waited arrives now."""
        if self._cuts.pop(_pair(a, b), None) is not None:
            self.record("heal", a, b)
            for ends in ((a, b), (b, a)):
                held = self._direction(*ends).held
                while held:
                    held.popleft()()

    def divide(self, side: frozenset[str]) -> None:
        """Like `cut` between every name in `side` and every other, also ones that come later."""
        if side not in self._divisions:
            now = anyio.current_time()
            self.record("divide", len(side))
            self._divisions[side] = now
            self._queue.call_at(now + CUT_NOTICED, lambda: self._notice_division(side, now))

    def unite(self, side: frozenset[str]) -> None:
        """Undo `divide`; what waited arrives now."""
        if self._divisions.pop(side, None) is not None:
            self.record("unite", len(side))
            for (source, target), direction in self._directions.items():
                if direction.held and not self._is_cut(source, target):
                    while direction.held:
                        direction.held.popleft()()

    def _is_cut(self, a: str, b: str) -> bool:
        return _pair(a, b) in self._cuts or any((a in side) != (b in side) for side in self._divisions)

    def carry(self, source: str, target: str, size: int, call: Call, *what: object, lossy: bool = False) -> None:
        """Make `call` when an entry of `size` bytes has crossed the link; a cut loses it if `lossy`, else holds it.

        `what` says for the trace what the entry is.
        """
        direction = self._direction(source, target)
        now = trio.current_time()
        entry = _Entry(self, direction, source, target, call, what, lossy, now)
        self._queue.call_at(direction.arrival(now, size), entry)

    def arrive(self, entry: _Entry) -> None:
        """An entry has crossed its link, or waited out a cut."""
        source, target = entry.source, entry.target
        if (self._cuts or self._divisions) and self._is_cut(source, target):
            self.record(source, "lost" if entry.lossy else "held", "to", target, *entry.what)
            if not entry.lossy:
                entry.direction.held.append(entry)
        else:
            if self._trace is not None:
                self.record(f"{source}>{target}", *entry.what, f"sent {entry.sent:.6f}")
            entry.call()

    def loses_gossip(self, source: str, target: str) -> bool:
        return self._direction(source, target).loses_gossip()

    def record(self, *what: object) -> None:
        """Put a line into the trace, if there is one. The text is made only then, as it costs more than a delivery."""
        if self._trace is not None:
            self._trace(f"{anyio.current_time():.6f} {' '.join(map(_shown, what))}")

    def _direction(self, source: str, target: str) -> Direction:
        ends = (source, target)
        direction = self._directions.get(ends)
        if direction is None:
            direction = self._directions[ends] = Direction(self._link_between(source, target), self._environment)
        return direction

    def _link_between(self, source: str, target: str) -> Link:
        link = self._links.get(_pair(source, target))
        if link is None:
            link = self._link if self.link_maker is None else self.link_maker(source, target)
        return link

    def go_dark(self) -> None:
        """Let nothing more arrive anywhere, nor into the trace. Nobody notices: nodes that end next see no errors."""
        self._trace = None
        for endpoint in list(self._endpoints.values()):
            endpoint.vanished = True

    def _notice(self, pair: tuple[str, str], since: float) -> None:
        if self._cuts.get(pair) == since:
            a, b = pair
            self._direction(a, b).held.clear()
            self._direction(b, a).held.clear()
            self.disconnect(a, b)

    def _notice_division(self, side: frozenset[str], since: float) -> None:
        if self._divisions.get(side) == since:
            for (source, target), direction in self._directions.items():
                if (source in side) != (target in side):
                    direction.held.clear()
            for name in sorted(side & self._endpoints.keys()):
                for peering in self._endpoints[name].peerings():
                    if peering.peer not in side:
                        self.disconnect(name, peering.peer)


@dataclass(slots=True, eq=False)
class _Entry:
    """Something on its way. A function with itself in its closure would do, and be garbage of the kind that only the
    collector of cycles can take away: a million of them cost more than all the rest."""

    network: MemoryNetwork
    direction: Direction
    source: str
    target: str
    call: Call
    what: tuple[object, ...]
    lossy: bool
    sent: float

    def __call__(self) -> None:
        self.network.arrive(self)


def _shown(part: object) -> str:
    return f"{content_id(part).hex()[:32]} {len(part)}" if isinstance(part, bytes) else str(part)


def _pair(a: str, b: str) -> tuple[str, str]:
    return (a, b) if a <= b else (b, a)
