"""What becomes of an object that is put: the decision that every store makes alike.

A store brings an `ObjectIndex`, which only looks up and changes single entries; which of those changes to make is
decided here. The rules, in the order in which they are asked:

1. An object that is here is `KNOWN`; one that is remembered as superseded stays `SUPERSEDED`.
2. An object that has expired counts for nothing, so it neither keeps its slot nor uses up its signer's share. Whether
   the store has got round to removing it makes no difference to any outcome.
3. In an occupied slot, precedence decides (`bnw.objects.rules.precedence`). A contradiction is kept as proof.
4. Whatever would add to the signer's share of the catalog must fit its quota. A replacement that is no larger than what
   it replaces always fits, so a signer can renew and withdraw at the quota.

Ids of objects that lost their slot are remembered until those objects expire, so that reconciliation does not fetch the
same loser again from every peer that still offers it. Proofs and remembered ids are bounded per signer, like objects,
so that nobody can push out what a store knows of others.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from bnw.identity.keys import IdentityId
from bnw.objects.authority import Revocation
from bnw.objects.catalog import Withdrawal
from bnw.objects.rules import Precedence, is_catalog_object, precedence, sequence_of, slot_of
from bnw.objects.signed import SignedObject
from bnw.store.interface import PutOutcome, Quota
from bnw.store.limits import MAX_PROOFS_PER_SIGNER, MAX_SUPERSEDED_PER_SIGNER, RESERVED_BYTES, RESERVED_OBJECTS
from bnw.wire.content_id import ContentId


@dataclass(frozen=True, slots=True)
class Held:
    """What holds a slot."""

    id: ContentId
    sequence: int
    expires: int
    size: int


@dataclass(frozen=True, slots=True)
class Usage:
    """What one signer holds in the catalog, expired objects that have not been removed included."""

    objects: int
    bytes: int


class ObjectIndex(Protocol):
    """The single steps that a store offers to `put_object`. All see the changes made before them."""

    def is_known(self, id: ContentId) -> bool:
        """Whether the object is here, holding its slot or as proof."""
        ...

    def is_superseded(self, id: ContentId) -> bool: ...

    def holder(self, slot: bytes) -> Held | None: ...

    def usage(self, signer: IdentityId) -> Usage: ...

    def add(self, obj: SignedObject, slot: bytes | None) -> None: ...

    def remove(self, id: ContentId) -> None: ...

    def remove_expired_of(self, signer: IdentityId, now: int) -> None:
        """Drop the signer's expired objects, proofs and remembered ids."""
        ...

    def superseded_count(self, signer: IdentityId) -> int: ...

    def remember_superseded(self, id: ContentId, signer: IdentityId, expires: int) -> None: ...

    def forget_oldest_superseded(self, signer: IdentityId) -> None: ...

    def proof_count(self, signer: IdentityId) -> int: ...

    def has_proof(self, signer: IdentityId, slot: bytes, sequence: int) -> bool: ...

    def add_proof(self, slot: bytes, held: Held, new: SignedObject, *, new_wins: bool) -> None:
        """Keep both objects as proof until both have expired."""
        ...


def put_object(index: ObjectIndex, obj: SignedObject, *, now: int, quota: Quota) -> PutOutcome:
    """Decide about one unexpired object, and change the index accordingly."""
    if index.is_known(obj.id):
        return PutOutcome.KNOWN
    if index.is_superseded(obj.id):
        return PutOutcome.SUPERSEDED
    slot = slot_of(obj)
    held = None if slot is None else index.holder(slot)
    if held is not None and now >= held.expires:
        index.remove(held.id)
        held = None
    if slot is None or held is None:
        if not _has_room(index, obj, held, now, quota):
            return PutOutcome.OVER_QUOTA
        index.add(obj, slot)
        return PutOutcome.ADDED
    return _contend(index, obj, slot, held, now, quota)


def _contend(index: ObjectIndex, obj: SignedObject, slot: bytes, held: Held, now: int, quota: Quota) -> PutOutcome:
    """Decide about an object whose slot is taken."""
    verdict = precedence((sequence_of(obj.body), obj.id), (held.sequence, held.id))
    if verdict is Precedence.SUPERSEDED:
        _remember(index, obj.id, obj.signer, obj.body.expires, now)
        return PutOutcome.SUPERSEDED
    if verdict is Precedence.EQUIVOCATION_LOSES:
        if not _prove(index, obj, slot, held, now, new_wins=False):
            _remember(index, obj.id, obj.signer, obj.body.expires, now)
        return PutOutcome.EQUIVOCATION
    if not _has_room(index, obj, held, now, quota):
        return PutOutcome.OVER_QUOTA
    contradicts = verdict is Precedence.EQUIVOCATION_WINS
    if not (contradicts and _prove(index, obj, slot, held, now, new_wins=True)):
        _remember(index, held.id, obj.signer, held.expires, now)
    index.remove(held.id)
    index.add(obj, slot)
    return PutOutcome.EQUIVOCATION if contradicts else PutOutcome.ADDED


def _remember(index: ObjectIndex, id: ContentId, signer: IdentityId, expires: int, now: int) -> None:
    """Remember that an object lost its slot."""
    if index.superseded_count(signer) >= MAX_SUPERSEDED_PER_SIGNER:
        index.remove_expired_of(signer, now)
    if index.superseded_count(signer) >= MAX_SUPERSEDED_PER_SIGNER:
        index.forget_oldest_superseded(signer)
    index.remember_superseded(id, signer, expires)


def _prove(index: ObjectIndex, obj: SignedObject, slot: bytes, held: Held, now: int, *, new_wins: bool) -> bool:
    """Keep the pair as proof, unless it would prove nothing new or the signer has used up its share of proofs."""
    index.remove_expired_of(obj.signer, now)
    if index.has_proof(obj.signer, slot, held.sequence) or index.proof_count(obj.signer) >= MAX_PROOFS_PER_SIGNER:
        return False
    index.add_proof(slot, held, obj, new_wins=new_wins)
    return True


def _has_room(index: ObjectIndex, obj: SignedObject, held: Held | None, now: int, quota: Quota) -> bool:
    """Whether the signer's quota allows `obj` in place of `held`."""
    if not is_catalog_object(obj.body):
        return True
    size = len(obj.data)
    if held is not None and size <= held.size:
        return True
    more_objects = 0 if held is not None else 1
    more_bytes = size - (0 if held is None else held.size)
    if isinstance(obj.body, Withdrawal | Revocation):
        # Whoever has used up its share must still be able to take back what it has said.
        quota = Quota(quota.objects + RESERVED_OBJECTS, quota.bytes + RESERVED_BYTES)
    if _fits(index.usage(obj.signer), more_objects, more_bytes, quota):
        return True
    index.remove_expired_of(obj.signer, now)
    return _fits(index.usage(obj.signer), more_objects, more_bytes, quota)


def _fits(usage: Usage, more_objects: int, more_bytes: int, quota: Quota) -> bool:
    return usage.objects + more_objects <= quota.objects and usage.bytes + more_bytes <= quota.bytes
