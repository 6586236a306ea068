"""Proof of a call in one file: who asked what of whom, under what authority, and what came of it. Pure.

The file is deterministic CBOR with signed objects in it. Checking it needs no node, no network and no keys. It says
nothing of input and output beyond the ids of their payload manifests: those are sealed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from bnw.identity.keys import IdentityId
from bnw.invoke.asked import MAX_UPDATES_KEPT, AskedCall
from bnw.invoke.asking import contradict
from bnw.invoke.authority.explain import explain
from bnw.invoke.authority.question import holds_invoke_right, may_provide
from bnw.invoke.authority.verdict import Verdict
from bnw.invoke.checks import check_receipt
from bnw.objects.authority import Delegation
from bnw.objects.calls import Cancellation, Invocation, InvocationUpdate, Receipt
from bnw.objects.catalog import PROVIDE_DELEGATED, CapabilityManifest
from bnw.objects.fields import array, choice, optional, raw_bytes, read_fields, spec, write_fields
from bnw.objects.signed import SignedObject, verify_object
from bnw.wire.cbor import decode_map, encode
from bnw.wire.content_id import content_id
from bnw.wire.errors import InvalidError
from bnw.wire.limits import MAX_DELEGATION_CHAIN, MAX_DESCRIPTOR, MAX_SIGNED_OBJECT, MIB

FORMAT: Final = "bnw.call-proof/1"
MAX_PROOF: Final = 8 * MIB
_OBJECT = raw_bytes(1, MAX_SIGNED_OBJECT)


@dataclass(frozen=True, slots=True)
class ProofFile:
    """What stands in the file. `provide` is the chain that lets the provider provide, where one is needed."""

    cancellation: bytes | None = spec(optional(_OBJECT))
    delegations: tuple[bytes, ...] = spec(array(_OBJECT, 0, MAX_DELEGATION_CHAIN))
    descriptor: bytes = spec(raw_bytes(0, MAX_DESCRIPTOR))
    format: str = spec(choice(FORMAT))
    invocation: bytes = spec(_OBJECT)
    manifest: bytes = spec(_OBJECT)
    provide: tuple[bytes, ...] = spec(array(_OBJECT, 0, MAX_DELEGATION_CHAIN))
    receipt: bytes | None = spec(optional(_OBJECT))
    second_receipt: bytes | None = spec(optional(_OBJECT))
    updates: tuple[bytes, ...] = spec(array(_OBJECT, 0, MAX_UPDATES_KEPT))


@dataclass(frozen=True, slots=True)
class Proof:
    """A file that was checked, and what it proves.

    `authority` is the verdict on the requester's delegations at the time that the receipt names; None if it showed
    none. `contradiction` is a second receipt by the provider that contradicts the first.
    """

    invocation: SignedObject
    manifest: SignedObject
    descriptor: bytes = field(repr=False)
    receipt: SignedObject | None
    updates: tuple[SignedObject, ...]
    cancellation: SignedObject | None
    authority: Verdict | None
    may_provide: Verdict
    contradiction: SignedObject | None

    @property
    def body(self) -> Invocation:
        assert isinstance(self.invocation.body, Invocation)
        return self.invocation.body


def export_proof(call: AskedCall, descriptor: bytes, provide: Sequence[SignedObject] = ()) -> bytes:
    """The file for a call as its requester remembers it."""
    file = ProofFile(
        cancellation=call.cancellation,
        delegations=call.delegations,
        descriptor=descriptor,
        format=FORMAT,
        invocation=call.invocation,
        manifest=call.manifest,
        provide=tuple(link.data for link in provide),
        receipt=call.receipt,
        second_receipt=call.second_receipt,
        updates=call.updates,
    )
    return encode(write_fields(file))


def verify_proof(data: bytes) -> Proof:
    """Check a file. Raises `InvalidError`: a fault of form, of an object, or in how they fit (`not-a-proof`)."""
    file = ProofFile(**read_fields(ProofFile, decode_map(data, max_size=MAX_PROOF), "proof"))
    invocation, manifest = verify_object(file.invocation), verify_object(file.manifest)
    if not isinstance(invocation.body, Invocation) or not isinstance(manifest.body, CapabilityManifest):
        raise _misfit("invocation and manifest are not what they stand for")
    body = invocation.body
    if body.capability != manifest.id:
        raise _misfit("the invocation is of another capability than the manifest")
    if content_id(file.descriptor) != manifest.body.descriptor:
        raise _misfit("the descriptor is not that of the manifest")
    receipt = None if file.receipt is None else _receipt(file.receipt, invocation)
    second = None if file.second_receipt is None else _receipt(file.second_receipt, invocation)
    if second is not None and (receipt is None or not contradict(receipt, second)):
        raise _misfit("the second receipt does not contradict the first")
    at = _time_of(body, receipt)
    chain = [verify_object(link) for link in file.delegations]
    if tuple(link.id for link in chain) != body.delegations:
        raise _misfit("the delegations are not those that the invocation names")
    return Proof(
        invocation=invocation,
        manifest=manifest,
        descriptor=file.descriptor,
        receipt=receipt,
        updates=tuple(_updates(file.updates, invocation)),
        cancellation=None if file.cancellation is None else _cancellation(file.cancellation, invocation),
        authority=_authority(manifest, invocation.signer, body, chain, at),
        may_provide=_may_provide(manifest, body.provider, [verify_object(link) for link in file.provide], at),
        contradiction=second,
    )


def _receipt(data: bytes, invocation: SignedObject) -> SignedObject:
    receipt = verify_object(data)
    check_receipt(receipt, invocation)
    return receipt


def _updates(data: Sequence[bytes], invocation: SignedObject) -> list[SignedObject]:
    assert isinstance(invocation.body, Invocation)
    updates, last = [verify_object(update) for update in data], 0
    for update in updates:
        body = update.body
        if (
            not isinstance(body, InvocationUpdate)
            or body.invocation != invocation.id
            or update.signer != invocation.body.provider
            or body.recipient != invocation.signer
        ):
            raise _misfit("an update is of another call")
        if body.sequence <= last:
            raise _misfit("the updates are not in order")
        last = body.sequence
    return updates


def _cancellation(data: bytes, invocation: SignedObject) -> SignedObject:
    cancellation = verify_object(data)
    body = cancellation.body
    if not isinstance(body, Cancellation) or body.invocation != invocation.id:
        raise _misfit("the cancellation is of another call")
    if cancellation.signer != invocation.signer:
        raise _misfit("the cancellation is not by the requester")
    return cancellation


def _time_of(body: Invocation, receipt: SignedObject | None) -> int:
    if receipt is None:
        return body.created
    assert isinstance(receipt.body, Receipt)
    return receipt.body.started or receipt.body.received


def _authority(
    manifest: SignedObject, requester: IdentityId, body: Invocation, chain: Sequence[SignedObject], at: int
) -> Verdict | None:
    if not chain:
        return None
    return explain(holds_invoke_right(manifest, requester=requester, provider=body.provider), chain, now=at)


def _may_provide(manifest: SignedObject, provider: IdentityId, chain: Sequence[SignedObject], at: int) -> Verdict:
    assert isinstance(manifest.body, CapabilityManifest)
    if chain and (
        manifest.body.provide != PROVIDE_DELEGATED or not all(isinstance(link.body, Delegation) for link in chain)
    ):
        raise _misfit("delegations to provide are there where none are needed")
    return explain(may_provide(manifest, provider=provider), chain, now=at)


def _misfit(cause: str) -> InvalidError:
    return InvalidError("not-a-proof", cause)
