"""The checks of a call, in the order of design section 11. Pure: objects and time in, an `InvalidError` out.

Codes become fault codes of receipts, so they are names in the shared alphabet.
"""

from __future__ import annotations

from bnw.identity.keys import IdentityId
from bnw.inbox.access import AccessRecord
from bnw.inbox.chunks import carried_size
from bnw.invoke.descriptors import PRIVACY_PUBLIC, PRIVACY_SEALED, PayloadLimits
from bnw.objects.calls import Invocation, Receipt
from bnw.objects.mail import PayloadManifest
from bnw.objects.signed import SignedObject
from bnw.wire.errors import InvalidError


def check_deadline(invocation: Invocation, now: int) -> None:
    """The provider's own clock decides; the requester's may be off by the accepted skew."""
    if now >= invocation.deadline:
        raise InvalidError("deadline-passed", "the deadline of this call has passed")


def check_participants(payload: SignedObject, *, sender: IdentityId, other: IdentityId) -> PayloadManifest:
    """A call's payload must be by `sender` and for exactly the two participants."""
    body = payload.body
    if not isinstance(body, PayloadManifest):
        raise InvalidError("not-a-payload", "what is named as payload is something else", place=payload.id.hex())
    if payload.signer != sender:
        raise InvalidError("wrong-sender", "the payload is signed by somebody else", place=payload.id.hex())
    if set(body.recipients) != {sender, other}:
        raise InvalidError(
            "wrong-recipients",
            "the recipients of the payload are not exactly requester and provider",
            place=payload.id.hex(),
        )
    return body


def check_privacy(payload: PayloadManifest, limits: PayloadLimits | None) -> None:
    """A payload must be as public or as sealed as the descriptor says; `either` leaves it open."""
    is_public = payload.public is not None
    if is_public and (limits is None or limits.privacy == PRIVACY_SEALED):
        raise InvalidError("not-sealed", "the payload is public, but this capability wants it sealed")
    if not is_public and limits is not None and limits.privacy == PRIVACY_PUBLIC:
        raise InvalidError("not-public", "the payload is sealed, but this capability wants it public")


def check_size_and_type(record: AccessRecord, limits: PayloadLimits | None) -> None:
    """Size and media type against the descriptor; an opaque descriptor sets no limits."""
    check_plain_size_and_type(record.size, record.media_type, limits)


def check_plain_size_and_type(size: int, media_type: str, limits: PayloadLimits | None) -> None:
    if limits is None:
        return
    if size > limits.max_bytes:
        raise InvalidError("too-large", f"the payload has {size:,} bytes; at most {limits.max_bytes:,} are accepted")
    if media_type not in limits.media_types:
        raise InvalidError(
            "media-type", f"media type {media_type} is not accepted; {', '.join(limits.media_types)} would be"
        )


def check_carried_size(carried: PayloadManifest, record: AccessRecord) -> None:
    """That the manifest lists what carries `record.size` bytes and nothing more, before anything of it is fetched.

    A small payload that lists a thousand chunks would make the other side fetch and hold them all.
    """
    expected = carried_size(record.size, sealed=carried.public is None)
    if carried.size != expected:
        raise InvalidError(
            "payload-size",
            f"the payload manifest lists {carried.size:,} bytes, where {record.size:,} travel as {expected:,}",
        )


def check_receipt(receipt: SignedObject, invocation: SignedObject) -> Receipt:
    """That `receipt` is the provider's word on this very invocation."""
    body = receipt.body
    assert isinstance(invocation.body, Invocation)
    if not isinstance(body, Receipt) or body.invocation != invocation.id:
        raise InvalidError("wrong-receipt", "the receipt is of another call", place=receipt.id.hex())
    if receipt.signer != invocation.body.provider:
        raise InvalidError("wrong-receipt", "the receipt is not signed by the provider", place=receipt.id.hex())
    if body.recipient != invocation.signer:
        raise InvalidError("wrong-receipt", "the receipt is addressed to somebody else", place=receipt.id.hex())
    return body
