"""Which blob to ask of which source: the core of a transfer. Sans-I/O: time comes in, orders go out.

    plan = FetchPlan(wanted, Claims())
    plan.add_source(peer)
    for order in plan.assign(now): ...       ask order.peer for order.wanted, on one stream, in this order
    plan.gave / plan.absent / plan.busy      the answer that was due from a peer, and then
    plan.kept                                a given blob is durable
    plan.failed / plan.left                  a peer lied, stalled, broke off or went away

Every blob that is wanted is in exactly one place: to do, asked of a source, being stored, or kept. A source that fails
gives back what it was asked; what is kept stays kept, so nothing that ends a transfer costs more than what was on its
way. Sources are asked in the order in which they were added, up to `MAX_SOURCES` at once, blobs in the order wanted.

Transfers in one process share `Claims`: what one of them has asked for the others do not ask for, and what one keeps
all of them have.
"""

from __future__ import annotations

import math
from bisect import insort
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from bnw.blobs.sources import GRACE, Source, Wanted
from bnw.transport.interface import PeerId
from bnw.wire.content_id import ContentId

MAX_SOURCES: Final = 4
"""Sources that have something to do at once."""
MAX_KNOWN_SOURCES: Final = 128
"""Sources that a transfer knows of. Peers that connect beyond that are not asked."""

STALLED: Final = "stream-stalled"
PASSING_FAULTS: Final = frozenset({STALLED, "stream-closed", "not-connected", "busy"})
"""What may be over when the source is asked again. Anything else is a source that lies or cannot speak with us."""


@dataclass(frozen=True, slots=True)
class Order:
    """Ask `peer` for `wanted`."""

    peer: PeerId
    wanted: Wanted


class Claims:
    """Who in this process is fetching which blob."""

    def __init__(self) -> None:
        self._plans: list[FetchPlan] = []
        self._owners: dict[ContentId, FetchPlan] = {}

    def join(self, plan: FetchPlan) -> None:
        self._plans.append(plan)

    def leave(self, plan: FetchPlan) -> None:
        self._plans.remove(plan)
        for id in [id for id, owner in self._owners.items() if owner is plan]:
            del self._owners[id]

    def take(self, id: ContentId, plan: FetchPlan) -> bool:
        """Claim a blob for `plan`; False if another plan has it."""
        return self._owners.setdefault(id, plan) is plan

    def release(self, id: ContentId) -> None:
        del self._owners[id]

    def wanted(self) -> frozenset[ContentId]:
        """What all plans want or have just got."""
        return frozenset(each.id for plan in self._plans for each in plan.wanted)

    def owner(self, id: ContentId) -> FetchPlan | None:
        return self._owners.get(id)

    def kept(self, id: ContentId) -> None:
        """A blob is durable: tell everybody who wants it."""
        self._owners.pop(id, None)
        for plan in self._plans:
            plan.found(id)


class FetchPlan:
    """Fetches `wanted`, of which equal ids count once. Call `close` when the transfer ends, however it does."""

    def __init__(self, wanted: Iterable[Wanted], claims: Claims) -> None:
        self._wanted = list({each.id: each for each in wanted}.values())
        self._numbers = {each.id: number for number, each in enumerate(self._wanted)}
        self._todo = list(range(len(self._wanted)))
        """Ascending."""
        self._storing: dict[ContentId, Source] = {}
        self._missing = set(self._numbers)
        self._sources: dict[PeerId, Source] = {}
        self._claims = claims
        self.total_bytes = sum(each.most for each in self._wanted)
        self.kept_bytes = 0
        claims.join(self)

    def close(self) -> None:
        self._claims.leave(self)

    @property
    def wanted(self) -> tuple[Wanted, ...]:
        return tuple(self._wanted)

    @property
    def is_complete(self) -> bool:
        return not self._missing

    def is_missing(self, id: ContentId) -> bool:
        return id in self._missing

    @property
    def is_hopeless(self) -> bool:
        """Whether nothing is on its way, and no source is left that might give anything that is missing."""
        if self._storing or any(source.asked for source in self._sources.values()):
            return False
        hopeful = [source for source in self._sources.values() if not source.is_hopeless]
        return not any(
            self._is_claimed_elsewhere(number) or any(number not in source.absent for source in hopeful)
            for number in self._todo
        )

    def story(self) -> str:
        """What has become of the sources, for people: `a (absent), b (wrong-bytes)`."""
        return ", ".join(f"{source.peer} ({_state(source)})" for source in self._sources.values()) or "nobody"

    def add_source(self, peer: PeerId) -> None:
        """A peer is connected. One that was dropped stays so."""
        source = self._sources.get(peer)
        if source is None and len(self._sources) < MAX_KNOWN_SOURCES:
            self._sources[peer] = Source(peer)
        elif source is not None and source.is_away:
            source.returned()

    def left(self, peer: PeerId) -> None:
        """A peer is not connected any more; it may come back."""
        source = self._sources.get(peer)
        if source is not None:
            source.is_away = True
            self._give_back(source.give_up_asked())

    def assign(self, now: float) -> list[Order]:
        """What to ask of whom, beyond what they have been asked already."""
        orders: list[Order] = []
        active = 0
        for source in self._sources.values():
            if active == MAX_SOURCES or not self._todo:
                break
            if source.is_ready(now):
                self._assign_to(source, now, orders)
            active += source.in_flight > 0
        if not self._todo:
            self._ask_others(now, active, orders)
        return orders

    def _ask_others(self, now: float, active: int, orders: list[Order]) -> None:
        """Ask another source as well for what one is silent about. Whoever is first gives it."""
        silent = [source for source in self._sources.values() if now >= source.silent_from()]
        for number in [number for source in silent for number in source.asked]:
            wanted = self._wanted[number]
            if active == MAX_SOURCES or wanted.id not in self._missing or len(self._askers(number)) > 1:
                continue
            for source in self._sources.values():
                idle = not source.in_flight and source.is_ready(now)
                if idle and number not in source.absent:
                    source.ask(number, wanted.most, now)
                    orders.append(Order(source.peer, wanted))
                    active += 1
                    break

    def _askers(self, number: int) -> list[Source]:
        return [source for source in self._sources.values() if number in source.asked]

    def _assign_to(self, source: Source, now: float, orders: list[Order]) -> None:
        position = 0
        while position < len(self._todo):
            number = self._todo[position]
            wanted = self._wanted[number]
            if not source.has_room(wanted.most):
                return
            if number in source.absent or not self._claims.take(wanted.id, self):
                position += 1
                continue
            del self._todo[position]
            source.ask(number, wanted.most, now)
            orders.append(Order(source.peer, wanted))

    def next_time(self, now: float) -> float:
        """When `assign` is worth calling again although nothing has happened: the end of a rest, or of a silence."""
        times = [time for s in self._sources.values() for time in (s.rest_until, s.silent_from()) if time > now]
        return min(times, default=math.inf)

    def due(self, peer: PeerId) -> Wanted | None:
        """What `peer` has to answer next."""
        source = self._sources[peer]
        return self._wanted[source.asked[0]] if source.asked else None

    def deadline(self, peer: PeerId) -> float:
        """When a `peer` that sends nothing further counts as stalled."""
        return self._sources[peer].deadline

    def opened(self, peer: PeerId, now: float) -> None:
        """A stream to `peer` is open; what that took is not held against it."""
        self._sources[peer].deadline = now + GRACE

    def progressed(self, peer: PeerId, size: int, now: float) -> None:
        """`size` bytes of the answer that is due have come."""
        self._sources[peer].progressed(size, now)

    def gave(self, peer: PeerId, now: float) -> None:
        """The blob that was due from `peer` has come and is the right one; it is being stored."""
        source = self._sources[peer]
        wanted = self._answered(source, now)
        source.gave(wanted.most)
        self._storing[wanted.id] = source

    def kept(self, id: ContentId) -> None:
        """A given blob is durable."""
        self._claims.kept(id)

    def found(self, id: ContentId) -> None:
        """A blob is in the store, whoever put it there."""
        number = self._numbers.get(id)
        if number is None:
            return
        size = self._wanted[number].most
        source = self._storing.pop(id, None)
        if source is not None:
            source.stored(size)
        if id in self._missing:
            self._missing.remove(id)
            self.kept_bytes += size
            if number in self._todo:
                self._todo.remove(number)

    def absent(self, peer: PeerId, now: float) -> None:
        """`peer` does not have what was due."""
        source = self._sources[peer]
        number = self._numbers[self._answered(source, now).id]
        source.absent.add(number)
        self._give_back([number])

    def busy(self, peer: PeerId, now: float) -> None:
        """`peer` has no time for what was due."""
        source = self._sources[peer]
        number = self._numbers[self._answered(source, now).id]
        source.rest(now, longest=False)
        self._give_back([number])

    def failed(self, peer: PeerId, code: str, now: float) -> None:
        """The conversation with `peer` ended with an error. What it gave already stays."""
        source = self._sources[peer]
        self._give_back(source.give_up_asked())
        if code in PASSING_FAULTS:
            source.rest(now, longest=code == STALLED)
        else:
            source.dropped = code

    def _answered(self, source: Source, now: float) -> Wanted:
        wanted = self._wanted[source.asked[0]]
        source.answered(wanted.most, now)
        return wanted

    def _give_back(self, numbers: Iterable[int]) -> None:
        for number in numbers:
            id = self._wanted[number].id
            # Else somebody has put it into the store meanwhile, or another source is asked for it as well.
            if id in self._missing and id not in self._storing and not self._askers(number):
                self._claims.release(id)
                insort(self._todo, number)

    def _is_claimed_elsewhere(self, number: int) -> bool:
        return self._claims.owner(self._wanted[number].id) not in {None, self}


def _state(source: Source) -> str:
    if source.dropped is not None:
        return source.dropped
    if source.is_away:
        return "gone"
    if source.rest_until:
        return "failed or busy"
    return "absent" if source.absent else "not asked"
