"""Puts delegations in order, from the root down. Pure, and bounded whatever the delegations say of each other.

Anybody may sign delegations for anybody, so a set may hold many that lead nowhere. Each is walked through once: what is
known of a link is remembered, and only those that lead to a root whose word counts are made into chains.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from functools import reduce

from bnw.identity.keys import IdentityId
from bnw.invoke.authority.bounds import Bounds
from bnw.invoke.authority.question import Question
from bnw.objects.authority import Delegation
from bnw.objects.signed import SignedObject
from bnw.wire.content_id import ContentId
from bnw.wire.limits import MAX_DELEGATION_CHAIN

MAX_CHAINS_TRIED = 256
"""Chains that are judged for one question; the likeliest come first."""

Chain = tuple[SignedObject, ...]


class ChainSource:
    """A set of delegations, in any order. Other objects in it are passed over."""

    def __init__(self, objects: Iterable[SignedObject]) -> None:
        self._bodies: dict[ContentId, Delegation] = {}
        self._objects: dict[ContentId, SignedObject] = {}
        for obj in objects:
            if isinstance(obj.body, Delegation):
                self._bodies[obj.id] = obj.body
                self._objects[obj.id] = obj
        self._known: dict[ContentId, tuple[int, IdentityId] | None] = {}

    def chain_to(self, leaf: ContentId) -> tuple[SignedObject | ContentId, ...]:
        """The chain that ends at `leaf`, the root first. Where a link is missing, its id stands first.

        Walks at most one link further than a chain may have, and stops where it comes back to a link, which then stands
        in the chain twice: `explain` gives the verdict on both.
        """
        chain: list[SignedObject | ContentId] = []
        seen: set[ContentId] = set()
        id: ContentId | None = leaf
        while id is not None and len(chain) <= MAX_DELEGATION_CHAIN:
            chain.append(self._objects.get(id, id))
            if id in seen or id not in self._bodies:
                break
            seen.add(id)
            id = self._bodies[id].parent
        return tuple(reversed(chain))

    def chains_for(self, question: Question) -> list[Chain]:
        """Chains from a root of `question` to its actor with its right, the likeliest to hold first; bounded.

        First those without counted caveats, which nobody can have used up; then the shorter, then the longer lived.
        """
        found = [
            self._whole_chain(id)
            for id, body in self._bodies.items()
            if body.audience == question.actor and question.right in body.rights and self._leads_to(question.roots, id)
        ]
        return sorted(found, key=_preference)[:MAX_CHAINS_TRIED]

    def _whole_chain(self, leaf: ContentId) -> Chain:
        return tuple(link for link in self.chain_to(leaf) if isinstance(link, SignedObject))

    def _leads_to(self, roots: Collection[IdentityId], id: ContentId) -> bool:
        standing = self._standing(id)
        return standing is not None and standing[0] <= MAX_DELEGATION_CHAIN and standing[1] in roots

    def _standing(self, id: ContentId) -> tuple[int, IdentityId] | None:
        """How many links lead to `id`, and who signed the first; None if they lead nowhere."""
        path: dict[ContentId, None] = {}
        at: ContentId | None = id
        while at is not None and at not in self._known and at in self._bodies and at not in path:
            path[at] = None
            at = self._bodies[at].parent
        above = None if at is None or at in path else self._known.get(at)
        for link in reversed(path):
            parent = self._bodies[link].parent
            signer = self._objects[link].signer
            if parent is None:
                above = (1, signer)
            elif above is not None:
                above = (above[0] + 1, above[1]) if self._bodies[parent].audience == signer else None
            self._known[link] = above
        return self._known.get(id)


def _preference(chain: Chain) -> tuple[bool, int, int, ContentId]:
    bounds = reduce(Bounds.narrowed_by, (Bounds.of(link.body) for link in chain if isinstance(link.body, Delegation)))
    is_counted = bounds.max_calls is not None or bounds.max_calls_per_hour is not None
    return is_counted, len(chain), -bounds.expires, chain[-1].id
