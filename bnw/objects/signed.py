"""Signed objects: a body, who signed it, and the exact bytes that were signed.

Reading has two steps, so that cheap checks can come before the dear one: `parse_object` checks size and form and gives
an `UnverifiedObject`; its `verify` checks the signature and gives a `SignedObject`. Nothing else makes one from bytes
that came from outside, so code that is handed a `SignedObject` need not ask.
"""

from __future__ import annotations

from dataclasses import dataclass

from bnw.identity.keys import IdentityId, SigningKey, did_key
from bnw.objects.authority import Delegation, Revocation
from bnw.objects.body import Body
from bnw.objects.calls import Cancellation, Invocation, InvocationUpdate, Receipt
from bnw.objects.catalog import CapabilityManifest, IdentityRecord, ProviderOffer, Withdrawal
from bnw.objects.envelope import Envelope, parse_envelope, sign_envelope
from bnw.objects.mail import Acknowledgement, PayloadManifest
from bnw.wire.content_id import ContentId, content_id
from bnw.wire.errors import InvalidError

KINDS: dict[str, type[Body]] = {
    cls.KIND: cls
    for cls in (
        IdentityRecord,
        CapabilityManifest,
        Withdrawal,
        ProviderOffer,
        Delegation,
        Revocation,
        PayloadManifest,
        Invocation,
        InvocationUpdate,
        Cancellation,
        Receipt,
        Acknowledgement,
    )
}


@dataclass(frozen=True, slots=True)
class SignedObject:
    """A verified object. Its id is the content id of `data`, the whole envelope."""

    id: ContentId
    signer: IdentityId
    body: Body
    data: bytes

    @property
    def kind(self) -> str:
        return self.body.KIND


@dataclass(frozen=True, slots=True)
class UnverifiedObject:
    """A well-formed object whose signature has not been checked."""

    id: ContentId
    body: Body
    data: bytes
    envelope: Envelope

    @property
    def kind(self) -> str:
        return self.body.KIND

    @property
    def signer(self) -> IdentityId:
        return self.envelope.signer

    def verify(self) -> SignedObject:
        """Check the signature; raises `InvalidError` (`signature`)."""
        if not self.envelope.has_valid_signature():
            raise InvalidError(
                "signature", f"the signature of this {self.kind} is not by {did_key(self.signer)}", place=self.id.hex()
            )
        return SignedObject(self.id, self.signer, self.body, self.data)


def parse_object(data: bytes) -> UnverifiedObject:
    """Read a signed object's size and form; raises `InvalidError`."""
    envelope = parse_envelope(data)
    cls = KINDS.get(envelope.kind)
    if cls is None:
        raise InvalidError("unknown-kind", f"objects of kind {envelope.kind!r:.80} are not known")
    return UnverifiedObject(content_id(data), cls.decode(envelope.payload), data, envelope)


def verify_object(data: bytes) -> SignedObject:
    """Read a signed object and check everything that can be checked from its bytes; raises `InvalidError`."""
    return parse_object(data).verify()


def trusted_object(data: bytes) -> SignedObject:
    """Rebuild an object that this node has verified before and kept where only it can write; raises `InvalidError`.

    For a store that reads its own objects back. It leaves out the one check that is dear, the signature; the caller
    compares the id with the one it asked for, which shows that these are the bytes that were verified. Never right for
    bytes from a peer, or from a file that somebody hands in.
    """
    parsed = parse_object(data)
    return SignedObject(parsed.id, parsed.signer, parsed.body, data)


def sign_object(body: Body, key: SigningKey) -> SignedObject:
    """Sign `body`; raises `InvalidError` if a reader would refuse it."""
    payload = body.encode()
    # Reading it back holds builders to the same rules as readers: nothing that peers would refuse is ever signed.
    checked = type(body).decode(payload)
    data = sign_envelope(body.KIND, payload, key)
    return SignedObject(content_id(data), key.identity, checked, data)
