"""Small signed objects for the store's tests. Time in these tests starts at `NOW`."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager

from bnw.identity.keys import IdentityId, SigningKey
from bnw.objects.authority import Caveats, Delegation, Revocation
from bnw.objects.calls import Cancellation
from bnw.objects.catalog import CapabilityManifest, IdentityRecord, ProviderOffer, PublicInboxKey, Withdrawal
from bnw.objects.mail import PayloadManifest
from bnw.objects.signed import SignedObject, sign_object
from bnw.store.interface import Store
from bnw.wire.content_id import content_id
from bnw.wire.limits import CANCELLING_LIFETIME_MIN, HOUR

OpenStore = Callable[..., AbstractAsyncContextManager[Store]]
"""Opens a new, empty store; takes a quota."""

NOW = 1_700_000_000_000
ALICE, BOB, CAROL = (SigningKey(bytes([number]) * 32) for number in (1, 2, 3))


def offer(
    sequence: int = 1, *, key: SigningKey = ALICE, capability: str = "summarise", expires: int = HOUR, text: str = "a"
) -> SignedObject:
    """An offer; `expires` counts from `NOW`, and another `text` makes it contradict one of the same sequence."""
    body = ProviderOffer(
        created=NOW - 1,
        expires=NOW + expires,
        available=True,
        capability=content_id(capability.encode()),
        endpoints=(text,),
        sequence=sequence,
    )
    return sign_object(body, key)


def manifest(
    sequence: int = 1, *, key: SigningKey = ALICE, name: str = "summarise", expires: int = HOUR
) -> SignedObject:
    body = CapabilityManifest(
        created=NOW - 1,
        expires=NOW + expires,
        descriptor=content_id(b"descriptor"),
        name=name,
        provide="publisher",
        sequence=sequence,
    )
    return sign_object(body, key)


def withdrawal(sequence: int = 1, *, key: SigningKey = ALICE, name: str = "summarise") -> SignedObject:
    body = Withdrawal(created=NOW, expires=NOW + CANCELLING_LIFETIME_MIN, name=name, sequence=sequence)
    return sign_object(body, key)


def identity_record(sequence: int = 1, *, key: SigningKey = ALICE) -> SignedObject:
    inbox_key = PublicInboxKey(key=bytes(32), not_after=NOW + HOUR, not_before=NOW)
    body = IdentityRecord(created=NOW, expires=NOW + HOUR, inbox_keys=(inbox_key,), mailboxes=(), sequence=sequence)
    return sign_object(body, key)


def delegation(number: int = 1, *, key: SigningKey = ALICE, expires: int = HOUR) -> SignedObject:
    """A catalog object without a slot; another `number` makes another one of the same size."""
    body = Delegation(
        created=NOW - 1,
        expires=NOW + expires,
        audience=IdentityId(content_id(str(number).encode())),
        caveats=Caveats(None, None, None, None, None),
        not_before=NOW - 1,
        parent=None,
        rights=("invoke",),
    )
    return sign_object(body, key)


def revocation(key: SigningKey = ALICE) -> SignedObject:
    body = Revocation(created=NOW, expires=NOW + CANCELLING_LIFETIME_MIN, delegation=content_id(b"delegation"))
    return sign_object(body, key)


def cancellation(
    number: int = 1, *, to: SigningKey = BOB, key: SigningKey = ALICE, expires: int = HOUR
) -> SignedObject:
    """An object for one inbox."""
    body = Cancellation(
        created=NOW - 1,
        expires=NOW + expires,
        invocation=content_id(str(number).encode()),
        reason=None,
        recipient=to.identity,
    )
    return sign_object(body, key)


def payload_manifest(*to: SigningKey, key: SigningKey = ALICE) -> SignedObject:
    """An object for several inboxes."""
    body = PayloadManifest(
        created=NOW,
        expires=NOW + HOUR,
        access=(),
        chunks=(content_id(b"chunk"),),
        public=b"record",
        recipients=tuple(sorted(recipient.identity for recipient in to)),
        size=5,
    )
    return sign_object(body, key)
