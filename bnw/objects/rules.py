"""Rules about objects beyond their own bytes: time, scope, replacement, equivocation (design sections 6, 9). Pure."""

from __future__ import annotations

from enum import Enum

from bnw.identity.keys import IdentityId
from bnw.objects.authority import Delegation, Revocation
from bnw.objects.body import Body
from bnw.objects.calls import Cancellation, Invocation, InvocationUpdate, Receipt
from bnw.objects.catalog import CapabilityManifest, IdentityRecord, ProviderOffer, Withdrawal
from bnw.objects.mail import Acknowledgement, PayloadManifest
from bnw.objects.signed import SignedObject, UnverifiedObject
from bnw.wire.content_id import ContentId
from bnw.wire.errors import InvalidError
from bnw.wire.limits import CLOCK_SKEW

CATALOG_KINDS = (IdentityRecord, CapabilityManifest, Withdrawal, ProviderOffer, Delegation, Revocation)
CATALOG = "catalog"
"""The scope of all public objects."""


def is_catalog_object(body: Body) -> bool:
    return isinstance(body, CATALOG_KINDS)


def recipients_of(body: Body) -> tuple[IdentityId, ...]:
    """Whose inboxes an object belongs in; empty for catalog objects."""
    match body:
        case PayloadManifest():
            return body.recipients
        case Invocation():
            return (body.provider,)
        case InvocationUpdate() | Cancellation() | Receipt() | Acknowledgement():
            return (body.recipient,)
        case _:
            return ()


def is_expired(body: Body, now: int) -> bool:
    """Whether carriers drop the object. Exact, with no allowance: two nodes then differ for at most their skew."""
    return now >= body.expires


def check_time(body: Body, now: int) -> None:
    """Raise `InvalidError` (`expired` or `from-the-future`) unless the object may be taken in at `now`."""
    if is_expired(body, now):
        raise InvalidError("expired", f"the {body.KIND} expired {now - body.expires} ms ago")
    if body.created > now + CLOCK_SKEW:
        raise InvalidError(
            "from-the-future",
            f"the {body.KIND} was created {body.created - now} ms ahead of this clock",
            cure=f"clocks may differ by at most {CLOCK_SKEW} ms; check that both are set",
        )


def slot_of(obj: SignedObject | UnverifiedObject) -> bytes | None:
    """For replaceable kinds, what two objects must share for one to replace the other; else None.

    A manifest and a withdrawal of the same name share a slot, which is how one cancels the other.
    """
    match obj.body:
        case IdentityRecord():
            return identity_slot(obj.signer)
        case CapabilityManifest(name=name) | Withdrawal(name=name):
            return capability_slot(obj.signer, name)
        case ProviderOffer(capability=capability):
            return offer_slot(obj.signer, capability)
        case _:
            return None


def identity_slot(identity: IdentityId) -> bytes:
    """The slot of an identity's record."""
    return b"identity\0" + identity


def capability_slot(publisher: IdentityId, name: str) -> bytes:
    """The slot of a publisher's manifest or withdrawal of `name`."""
    return b"capability\0" + publisher + name.encode()


def offer_slot(provider: IdentityId, capability: ContentId) -> bytes:
    """The slot of a provider's offer of `capability`, a manifest id."""
    return b"offer\0" + provider + capability


def sequence_of(body: Body) -> int:
    """The sequence of a replaceable kind; 0 for others."""
    match body:
        case (
            IdentityRecord(sequence=sequence)
            | CapabilityManifest(sequence=sequence)
            | Withdrawal(sequence=sequence)
            | ProviderOffer(sequence=sequence)
        ):
            return sequence
        case _:
            return 0


def next_sequence(previous: int | None, now: int) -> int:
    """The sequence for a new object in a slot. Time keeps it rising even when a restored backup forgot the last one."""
    return max((previous or 0) + 1, now)


class Precedence(Enum):
    """What becomes of an object that arrives for an occupied slot."""

    REPLACES = "replaces"
    SUPERSEDED = "superseded"
    EQUIVOCATION_WINS = "equivocation-wins"
    EQUIVOCATION_LOSES = "equivocation-loses"


def precedence(new: tuple[int, ContentId], held: tuple[int, ContentId]) -> Precedence:
    """Compare (sequence, id) of a new object with the one held in its slot; the ids must differ.

    The higher sequence wins. At equal sequence the signer has contradicted itself; the lower id wins everywhere, so
    that all nodes settle on the same one without talking about it.
    """
    (new_sequence, new_id), (held_sequence, held_id) = new, held
    if new_sequence != held_sequence:
        return Precedence.REPLACES if new_sequence > held_sequence else Precedence.SUPERSEDED
    return Precedence.EQUIVOCATION_WINS if new_id < held_id else Precedence.EQUIVOCATION_LOSES
