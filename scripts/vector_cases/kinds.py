"""Valid objects of every kind, from small to as large as is readable. Refusals are made from them in `refusals`."""

from __future__ import annotations

from nacl.bindings import crypto_aead_xchacha20poly1305_ietf_encrypt

from bnw.identity.inbox_keys import InboxKey
from bnw.identity.keys import SigningKey
from bnw.inbox.access import AccessRecord, binding_of, encode_access_record, seal_access_record
from bnw.objects.authority import Caveats, Delegation, Revocation
from bnw.objects.body import Body
from bnw.objects.calls import Cancellation, Fault, Invocation, InvocationUpdate, Receipt
from bnw.objects.catalog import (
    CapabilityManifest,
    IdentityRecord,
    Mailbox,
    ProviderOffer,
    PublicInboxKey,
    Withdrawal,
)
from bnw.objects.mail import Acknowledgement, PayloadManifest, SealedAccess
from bnw.wire.content_id import content_id
from bnw.wire.limits import (
    CANCELLING_LIFETIME_MAX,
    CANCELLING_LIFETIME_MIN,
    DAY,
    DELEGATION_LIFETIME,
    HOUR,
    IDENTITY_RECORD_LIFETIME,
    INBOX_OBJECT_LIFETIME,
    MANIFEST_LIFETIME,
    MIN_PADDED_PAYLOAD,
    MINUTE,
    OFFER_LIFETIME,
    SECOND,
)
from vector_cases.forms import (
    NOW,
    PROVIDER,
    PUBLISHER,
    REQUESTER,
    an_id,
    ascending,
)

Example = tuple[str, Body, SigningKey]

PROVIDER_INBOX, REQUESTER_INBOX = (
    InboxKey(bytes([number]) * 32, NOW - 5 * MINUTE, NOW + 7 * DAY) for number in (0x12, 0x13)
)
ADDRESS = "/ip4/192.0.2.7/tcp/4001/p2p/12D3KooWExample"
QUESTION = b'{"symbol":"MSFT","month":"2005-03"}'
PAYLOAD_KEY = bytes(range(0x80, 0xA0))


def _question_manifest(chunk: bytes, *, sealed: bool) -> PayloadManifest:
    """The manifest of a question in one chunk from the requester to the provider, whom it can be sealed for."""
    keys = {PROVIDER.identity: PROVIDER_INBOX.public, REQUESTER.identity: REQUESTER_INBOX.public}
    recipients, chunks = ascending(*keys), (content_id(chunk),)
    record = AccessRecord(
        binding=binding_of(REQUESTER.identity, recipients, chunks),
        hash=content_id(QUESTION),
        key=PAYLOAD_KEY if sealed else None,
        media_type="application/json",
        name="question.json",
        size=len(QUESTION),
    )
    access = tuple(
        SealedAccess(
            keys[recipient],
            seal_access_record(
                record,
                ephemeral=bytes([number]) * 32,
                inbox_key=keys[recipient],
                sender=REQUESTER.identity,
                recipient=recipient,
            ),
        )
        for number, recipient in enumerate(recipients, 0x60)
    )
    return PayloadManifest(
        created=NOW,
        expires=NOW + INBOX_OBJECT_LIFETIME,
        access=access if sealed else (),
        chunks=chunks,
        public=None if sealed else encode_access_record(record),
        recipients=recipients,
        size=len(chunk),
    )


def sealed_question() -> PayloadManifest:
    nonce = bytes(8) + b"\x01" + bytes(15)  # the number of the chunk, and that it is the last
    chunk: bytes = crypto_aead_xchacha20poly1305_ietf_encrypt(
        QUESTION.ljust(MIN_PADDED_PAYLOAD, b"\0"), b"bnw/1 payload chunk", nonce, PAYLOAD_KEY
    )
    return _question_manifest(chunk, sealed=True)


def public_question() -> PayloadManifest:
    return _question_manifest(QUESTION, sealed=False)


def catalog_examples() -> list[Example]:
    first = PublicInboxKey(PROVIDER_INBOX.public, PROVIDER_INBOX.not_after, PROVIDER_INBOX.not_before)
    second = PublicInboxKey(REQUESTER_INBOX.public, NOW + 13 * DAY, NOW + 6 * DAY)
    return [
        ("an identity with one inbox key",
         IdentityRecord(created=NOW, expires=NOW + 1, inbox_keys=(first,), mailboxes=(), sequence=1), PROVIDER),
        ("an identity with a successor to its key and two mailboxes",
         IdentityRecord(
             created=NOW, expires=NOW + IDENTITY_RECORD_LIFETIME, inbox_keys=(first, second),
             mailboxes=(Mailbox((ADDRESS, "/dns/mail.example/tcp/4001"), "12D3KooWExample"), Mailbox((), "x")),
             sequence=NOW),
         PROVIDER),
        ("a capability of its publisher",
         CapabilityManifest(
             created=NOW, expires=NOW + 30 * DAY, descriptor=an_id("descriptor"), name="finance/lookup",
             provide="publisher", sequence=NOW),
         PUBLISHER),
        ("a capability that delegates may provide",
         CapabilityManifest(
             created=NOW, expires=NOW + DAY, descriptor=an_id("descriptor"), name="0", provide="delegated", sequence=1),
         PUBLISHER),
        ("a capability that anyone may provide, with the longest name and life",
         CapabilityManifest(
             created=NOW, expires=NOW + MANIFEST_LIFETIME, descriptor=an_id("descriptor"), name="n" * 64,
             provide="anyone", sequence=2**53 - 1),
         PUBLISHER),
        ("a withdrawal of the shortest life",
         Withdrawal(created=NOW, expires=NOW + CANCELLING_LIFETIME_MIN, name="finance/lookup", sequence=NOW + 1),
         PUBLISHER),
        ("a withdrawal of the longest life",
         Withdrawal(created=NOW, expires=NOW + CANCELLING_LIFETIME_MAX, name="finance/lookup", sequence=NOW + 2),
         PUBLISHER),
        ("an offer at two addresses, for as long as may be",
         ProviderOffer(
             created=NOW, expires=NOW + OFFER_LIFETIME, available=True, capability=an_id("manifest"),
             endpoints=(ADDRESS, "/ip6/2001:db8::7/tcp/4001/p2p/12D3KooWExample"), sequence=NOW),
         PROVIDER),
        ("an offer that is taken back",
         ProviderOffer(
             created=NOW, expires=NOW + 2 * HOUR, available=False, capability=an_id("manifest"), endpoints=(),
             sequence=NOW + 1),
         PROVIDER),
    ]  # fmt: skip


def authority_examples() -> list[Example]:
    return [
        ("a delegation that narrows nothing",
         Delegation(
             created=NOW, expires=NOW + DELEGATION_LIFETIME, audience=PROVIDER.identity,
             caveats=Caveats(None, None, None, None, None), not_before=NOW, parent=None, rights=("provide",)),
         PUBLISHER),
        ("a derived delegation with every caveat and every right",
         Delegation(
             created=NOW, expires=NOW + DAY, audience=REQUESTER.identity,
             caveats=Caveats(an_id("manifest"), 1000, 60, 0, PUBLISHER.identity), not_before=NOW + HOUR,
             parent=an_id("delegation"), rights=("delegate", "invoke", "provide")),
         PROVIDER),
        ("a revocation",
         Revocation(created=NOW, expires=NOW + CANCELLING_LIFETIME_MIN, delegation=an_id("delegation")), PUBLISHER),
    ]  # fmt: skip


def mail_examples() -> list[Example]:
    three = tuple(sorted(an_id(text) for text in ("invocation", "payload", "receipt")))
    return [
        ("a sealed payload for two", sealed_question(), REQUESTER),
        ("a public payload", public_question(), REQUESTER),
        ("an acknowledgement of one object",
         Acknowledgement(created=NOW, expires=NOW + DAY, objects=three[:1], recipient=REQUESTER.identity), PROVIDER),
        ("an acknowledgement of three objects",
         Acknowledgement(created=NOW, expires=NOW + INBOX_OBJECT_LIFETIME, objects=three, recipient=REQUESTER.identity),
         PROVIDER),
    ]  # fmt: skip


def call_examples() -> list[Example]:
    call = an_id("invocation")
    problem = Fault("invalid-input", "the input does not match the schema")
    return [
        ("an invocation",
         Invocation(
             created=NOW, expires=NOW + HOUR, capability=an_id("manifest"), deadline=NOW + MINUTE, delegations=(),
             inactivity=None, input=an_id("payload"), provider=PROVIDER.identity),
         REQUESTER),
        ("an invocation under a chain of delegations, until it expires",
         Invocation(
             created=NOW, expires=NOW + INBOX_OBJECT_LIFETIME, capability=an_id("manifest"),
             deadline=NOW + INBOX_OBJECT_LIFETIME, delegations=(an_id("root"), an_id("leaf")), inactivity=30 * SECOND,
             input=an_id("payload"), provider=PROVIDER.identity),
         REQUESTER),
        ("an update that says everything",
         InvocationUpdate(
             created=NOW, expires=NOW + HOUR, fraction=1000, invocation=call, note="Fast fertig: 世界",
             recipient=REQUESTER.identity, sequence=2, stage="tools/call"),
         PROVIDER),
        ("an update that says its stage alone",
         InvocationUpdate(
             created=NOW, expires=NOW + HOUR, fraction=None, invocation=call, note=None, recipient=REQUESTER.identity,
             sequence=1, stage="queued"),
         PROVIDER),
        ("a cancellation with a reason",
         Cancellation(
             created=NOW, expires=NOW + HOUR, invocation=call, reason="no longer needed", recipient=PROVIDER.identity),
         REQUESTER),
        ("a cancellation without one",
         Cancellation(created=NOW, expires=NOW + HOUR, invocation=call, reason=None, recipient=PROVIDER.identity),
         REQUESTER),
        ("a receipt of a completed call",
         Receipt(
             created=NOW + SECOND, expires=NOW + DAY, fault=None, finished=NOW + SECOND, invocation=call,
             output=an_id("output"), received=NOW, recipient=REQUESTER.identity, started=NOW, status="completed"),
         PROVIDER),
        ("a receipt of a call that failed, with a problem document",
         Receipt(
             created=NOW, expires=NOW + DAY, fault=problem, finished=NOW, invocation=call, output=an_id("problem"),
             received=NOW, recipient=REQUESTER.identity, started=NOW, status="failed"),
         PROVIDER),
        *(
            (f"a receipt of a call that was {status}",
             Receipt(
                 created=NOW, expires=NOW + DAY, fault=Fault(status, "no"), finished=NOW, invocation=call, output=None,
                 received=NOW - HOUR, recipient=REQUESTER.identity, started=started, status=status),
             PROVIDER)
            for status, started in (("rejected", None), ("cancelled", NOW - MINUTE), ("expired", None),
                                    ("interrupted", NOW - MINUTE))
        ),
    ]  # fmt: skip
