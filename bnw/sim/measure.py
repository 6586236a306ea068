"""What is seen of a simulated world while it runs: who published what, and who got it when.

Measured are the catalog objects that honest nodes publish on purpose: manifests, offers, withdrawals, delegations and
revocations. Identity records are left out; they would outnumber everything else. An object counts until a newer one of
its slot is published or it expires; a node counts while it runs. Nothing here changes what nodes do.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

from bnw.identity.keys import IdentityId
from bnw.objects.catalog import IdentityRecord
from bnw.objects.rules import is_catalog_object, slot_of
from bnw.objects.signed import SignedObject
from bnw.store.interface import PutOutcome
from bnw.wire.content_id import ContentId

_NEVER: Final = 0
_HELD: Final = 1
_LOST: Final = 2
"""Had it before a crash took it away: getting it back is no first arrival."""

HEAL: Final = "heal"
RETURN: Final = "return"
START: Final = "start"


@dataclass(slots=True)
class Published:
    """One measured object."""

    number: int
    id: ContentId
    kind: str
    name: str
    size: int
    publisher: int
    at: float
    expires: float
    """In virtual time."""
    state: bytearray
    """Per node."""
    current: bool = True


@dataclass(slots=True)
class Watched:
    """One honest node."""

    name: str
    running: bool = False
    since: float = 0.0
    held: int = 0
    """Current objects that it holds."""
    starts: int = 0
    crashes: int = 0
    first: int = 0
    slowest: float = 0.0
    slowest_object: int = -1


@dataclass(slots=True)
class Repair:
    """From the end of a trouble until nothing is missing, at the nodes concerned, that was published before it."""

    cause: str
    who: str
    began: float
    below: int
    """Objects with lower numbers count."""
    nodes: frozenset[int]
    missing: int
    ended: float | None = None


@dataclass(slots=True)
class Sample:
    """The world at one moment."""

    at: float
    running: int
    current: int
    missing: int
    bytes: int
    entries: int
    published: int


@dataclass(slots=True)
class Recorder:
    """`now` is virtual time in seconds, `true_ms` what a right clock shows."""

    now: Callable[[], float]
    true_ms: Callable[[], int]
    nodes: list[Watched] = field(default_factory=list)
    objects: list[Published] = field(default_factory=list)
    repairs: list[Repair] = field(default_factory=list)
    samples: list[Sample] = field(default_factory=list)
    delays: array[float] = field(default_factory=lambda: array("f"))
    new_bytes: int = 0
    """Of objects that were new to the node that stored them, identity records included."""
    new_copies: int = 0
    known_copies: int = 0
    """Copies that reached a store and were known or outdated there."""
    signers: dict[IdentityId, int] = field(default_factory=dict)
    current: int = 0
    missing: int = 0
    """Pairs of a running node and a current object that it lacks."""
    _by_id: dict[ContentId, Published] = field(default_factory=dict)
    _by_slot: dict[bytes, Published] = field(default_factory=dict)
    _open: list[Repair] = field(default_factory=list)

    def add_node(self, name: str, identity: IdentityId) -> int:
        """Register an honest node; returns its number. All nodes come before all objects."""
        assert not self.objects, "nodes are registered before anything is published"
        self.nodes.append(Watched(name))
        self.signers[identity] = len(self.nodes) - 1
        return len(self.nodes) - 1

    def on_put(self, number: int, obj: SignedObject, outcome: PutOutcome) -> None:
        """An object was put into the store of node `number`."""
        if not is_catalog_object(obj.body):
            return
        if outcome not in (PutOutcome.ADDED, PutOutcome.EQUIVOCATION):
            self.known_copies += 1
            return
        publisher = self.signers.get(obj.signer)
        if publisher == number:
            if not isinstance(obj.body, IdentityRecord):
                self._publish(number, obj)
            return
        self.new_copies += 1
        self.new_bytes += len(obj.data)
        if (published := self._by_id.get(obj.id)) is not None:
            self._arrive(number, published)

    def node_started(self, number: int) -> None:
        """The node runs; what it lacks of what is there already is to be repaired."""
        node, now = self.nodes[number], self.now()
        node.running, node.since = True, now
        node.starts += 1
        lacks = self.current - node.held
        self.missing += lacks
        if lacks:
            self._begin_repair(START if node.starts == 1 else RETURN, node.name, frozenset({number}), lacks)

    def node_stopped(self, number: int, *, crashed: bool) -> None:
        node = self.nodes[number]
        if not node.running:
            return
        node.running = False
        node.crashes += crashed
        self.missing -= self.current - node.held
        for repair in list(self._open):
            if number in repair.nodes:
                lacked = sum(obj.current and obj.state[number] != _HELD for obj in self.objects[: repair.below])
                # From now on its arrivals are none of this repair's; its return begins another one.
                repair.nodes -= {number}
                self._pay(repair, lacked)

    def forget(self, number: int, held: Sequence[ContentId]) -> None:
        """A crash has taken objects from a node that does not run; `held` are all that it still has."""
        left = set(held)
        for obj in self.objects:
            if obj.state[number] == _HELD and obj.id not in left:
                obj.state[number] = _LOST
                if obj.current:
                    self.nodes[number].held -= 1

    def healed(self, who: str) -> None:
        """A partition is over."""
        self.retire_expired()
        running = frozenset(number for number, node in enumerate(self.nodes) if node.running)
        self._begin_repair(HEAL, who, running, self.missing)

    def retire_expired(self) -> None:
        now = self.now()
        for obj in self.objects:
            if obj.current and obj.expires <= now:
                self._retire(obj)

    def sample(self, bytes: int, entries: int) -> None:
        self.retire_expired()
        running = sum(node.running for node in self.nodes)
        self.samples.append(Sample(self.now(), running, self.current, self.missing, bytes, entries, len(self.objects)))

    @property
    def pairs(self) -> int:
        """Pairs of a running node and a current object."""
        return self.current * sum(node.running for node in self.nodes)

    def lacking(self, number: int) -> list[Published]:
        """Current objects that a node lacks."""
        return [obj for obj in self.objects if obj.current and obj.state[number] != _HELD]

    def _publish(self, number: int, obj: SignedObject) -> None:
        now = self.now()
        slot = slot_of(obj)
        if slot is not None and (old := self._by_slot.get(slot)) is not None and old.current:
            self._retire(old)
        published = Published(
            number=len(self.objects),
            id=obj.id,
            kind=obj.kind,
            name=str(getattr(obj.body, "name", "")),
            size=len(obj.data),
            publisher=number,
            at=now,
            expires=now + (obj.body.expires - self.true_ms()) / 1000,
            state=bytearray(len(self.nodes)),
        )
        published.state[number] = _HELD
        self.objects.append(published)
        self._by_id[obj.id] = published
        if slot is not None:
            self._by_slot[slot] = published
        self.current += 1
        self.missing += sum(node.running for node in self.nodes)
        self.nodes[number].held += 1
        if self.nodes[number].running:
            self.missing -= 1

    def _arrive(self, number: int, obj: Published) -> None:
        node = self.nodes[number]
        was = obj.state[number]
        if was == _HELD:
            return
        obj.state[number] = _HELD
        if was == _NEVER:
            delay = self.now() - max(obj.at, node.since)
            self.delays.append(delay)
            node.first += 1
            if delay > node.slowest:
                node.slowest, node.slowest_object = delay, obj.number
        if obj.current:
            node.held += 1
            if node.running:
                self.missing -= 1
                for repair in list(self._open):
                    if obj.number < repair.below and number in repair.nodes:
                        self._pay(repair, 1)

    def _retire(self, obj: Published) -> None:
        """The object no longer counts: there is a newer one, or it has expired."""
        for number, node in enumerate(self.nodes):
            if obj.state[number] == _HELD:
                node.held -= 1
            elif node.running:
                self.missing -= 1
        for repair in list(self._open):
            if obj.number < repair.below:
                lacked = sum(self.nodes[at].running and obj.state[at] != _HELD for at in repair.nodes)
                self._pay(repair, lacked)
        obj.current = False
        self.current -= 1

    def _begin_repair(self, cause: str, who: str, nodes: frozenset[int], missing: int) -> None:
        repair = Repair(cause, who, self.now(), len(self.objects), nodes, missing)
        self.repairs.append(repair)
        if missing:
            self._open.append(repair)
        else:
            repair.ended = repair.began

    def _pay(self, repair: Repair, pairs: int) -> None:
        repair.missing -= pairs
        if repair.missing <= 0:
            repair.ended = self.now()
            self._open.remove(repair)


def percentile(values: Sequence[float], share: float) -> float:
    """The value that so many of `values`, which are in ascending order, do not exceed; 0 of none."""
    if not values:
        return 0.0
    return values[min(len(values) - 1, max(0, -(-int(share * 1000) * len(values) // 1000) - 1))]
