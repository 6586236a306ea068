"""The envelope (design section 6): one deterministic COSE_Sign1, at most 64 KiB, and nothing beside it."""

from __future__ import annotations

from typing import Any

import cbor2
import cddl
import cose
import pytest
from golden_vectors import Vector, golden, refused, vectors
from hypothesis import given
from hypothesis import strategies as st

from bnw.identity.keys import SigningKey
from bnw.objects.authority import Caveats, Delegation
from bnw.objects.body import Body
from bnw.objects.calls import Cancellation, Fault, Invocation, InvocationUpdate, Receipt
from bnw.objects.catalog import CapabilityManifest, IdentityRecord, Mailbox, ProviderOffer, PublicInboxKey
from bnw.objects.envelope import parse_envelope, sign_envelope
from bnw.objects.mail import MAX_CARRIED_PAYLOAD, SEALED_ACCESS_RECORD_SIZE, Acknowledgement, PayloadManifest
from bnw.objects.mail import SealedAccess as Access
from bnw.objects.signed import parse_object, sign_object, verify_object
from bnw.wire import limits
from bnw.wire.content_id import ContentId
from bnw.wire.errors import InvalidError
from bnw.wire.limits import MAX_INTEGER, MAX_SIGNED_OBJECT

KEY = SigningKey(bytes(range(32)))
LEAST = len(sign_envelope("x", b"", KEY))

STRICTER_THAN_COSE = {
    "an unprotected header",
    "no content type",
    "a header more",
    "a content type of others",
    "a kind that there is not",
    "the length of the header in three bytes",
    "the header in another order",
    "a header key in two bytes",
    "the tag in two bytes",
}
"""Envelopes whose signature holds for any COSE library, and that are refused all the same."""


@golden("envelopes.json", "refused")
def test_another_envelope_is_refused(vector: Vector) -> None:
    data = vector.bytes_of("hex")
    with refused(vector):
        verify_object(data)
    if vector["code"] == "signature":
        assert parse_object(data), "its form is right; the signature alone is not"
        assert cddl.accepts_object(data)


@pytest.mark.parametrize("vector", vectors("envelopes.json", "refused"), ids=lambda vector: vector["name"])
def test_a_cose_library_agrees_on_signatures_and_is_less_strict_on_form(vector: Vector) -> None:
    data, signer = vector.bytes_of("hex"), SigningKey(bytes([1]) * 32).identity
    if vector["code"] == "signature":
        assert not cose.holds(data, signer)
    if vector["name"] in STRICTER_THAN_COSE:
        assert cose.holds(data, signer)


def test_all_envelopes_that_cose_would_take_are_there() -> None:
    assert {vector["name"] for vector in vectors("envelopes.json", "refused")} > STRICTER_THAN_COSE


def test_an_envelope_of_exactly_64_kib_passes_and_a_byte_more_does_not() -> None:
    overhead = len(sign_envelope("x", bytes(60_000), KEY)) - 60_000
    data = sign_envelope("x", bytes(MAX_SIGNED_OBJECT - overhead), KEY)
    assert len(data) == MAX_SIGNED_OBJECT == 65_536
    assert parse_envelope(data).has_valid_signature()
    with pytest.raises(InvalidError) as caught:
        sign_envelope("x", bytes(MAX_SIGNED_OBJECT - overhead + 1), KEY)
    assert caught.value.code == "too-large"


@pytest.mark.parametrize("first", [b"\xd2", b"\xff", b"\x00"])
def test_size_is_judged_before_anything_else(first: bytes) -> None:
    with pytest.raises(InvalidError) as caught:
        parse_envelope(first * (MAX_SIGNED_OBJECT + 1))
    assert caught.value.code == "too-large"


@given(st.binary(max_size=300), st.sampled_from(["x", "withdrawal", "a-b"]), st.binary(min_size=32, max_size=32))
def test_what_is_signed_is_read_and_holds_and_is_encoded_in_one_way(payload: bytes, kind: str, seed: bytes) -> None:
    key = SigningKey(seed)
    data = sign_envelope(kind, payload, key)
    envelope = parse_envelope(data)
    assert (envelope.kind, envelope.payload, envelope.signer) == (kind, payload, key.identity)
    assert envelope.has_valid_signature()
    assert sign_envelope(kind, payload, key) == data
    assert cose.holds(data, key.identity)


@given(st.binary(max_size=100) | st.binary(max_size=100).map(lambda raw: b"\xd2" + raw))
def test_any_other_bytes_are_refused_as_invalid_and_nothing_worse(data: bytes) -> None:
    with pytest.raises(InvalidError):
        parse_envelope(data)


parts = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.binary(max_size=70) | st.text(max_size=10),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.integers(-9, 9) | st.text(max_size=3), inner),
    max_leaves=6,
)
headers = st.dictionaries(st.integers(0, 5), st.just(-8) | st.just("application/bnw.x+cbor") | parts, max_size=4)


@given(st.lists(headers.map(cbor2.dumps) | parts, min_size=4, max_size=4))
def test_any_other_parts_are_refused_as_invalid_and_nothing_worse(given_parts: list[Any]) -> None:
    with pytest.raises(InvalidError):
        parse_envelope(cbor2.dumps(cbor2.CBORTag(18, given_parts)))


def test_refusals_do_not_repeat_much_of_what_was_sent() -> None:
    for kind in ("\x1b[2J", "x" * 60, "\n" * 50):
        with pytest.raises(InvalidError) as caught:
            parse_object(sign_envelope(kind, b"\xa0", KEY))
        assert str(caught.value).isprintable()
        assert len(str(caught.value)) < 200


# The limits of the fields together keep every object below the limit of the whole


RAW = [ContentId(bytes([number // 256, number % 256]) * 16) for number in range(1100)]
LONG = "é" * 128
LIFE = {"created": MAX_INTEGER - limits.CANCELLING_LIFETIME_MAX}
ENDS = LIFE["created"] + limits.OFFER_LIFETIME
NAME = "n" * 64
NOTE = "é" * 256

LARGEST: list[Body] = [
    IdentityRecord(
        **LIFE,
        expires=ENDS,
        inbox_keys=(PublicInboxKey(bytes(32), MAX_INTEGER, MAX_INTEGER - 1),) * 4,
        mailboxes=(Mailbox((LONG,) * 8, "x" * 128),) * 4,
        sequence=MAX_INTEGER,
    ),
    CapabilityManifest(**LIFE, expires=ENDS, descriptor=RAW[0], name=NAME, provide="delegated", sequence=MAX_INTEGER),
    ProviderOffer(**LIFE, expires=ENDS, available=True, capability=RAW[0], endpoints=(LONG,) * 8, sequence=MAX_INTEGER),
    Delegation(
        **LIFE,
        expires=ENDS,
        audience=KEY.identity,
        caveats=Caveats(RAW[0], MAX_INTEGER, MAX_INTEGER, limits.MAX_PAYLOAD, KEY.identity),
        not_before=ENDS - 1,
        parent=RAW[0],
        rights=("delegate", "invoke", "provide"),
    ),
    PayloadManifest(
        **LIFE,
        expires=ENDS,
        access=(Access(bytes(32), bytes(SEALED_ACCESS_RECORD_SIZE)),) * limits.MAX_RECIPIENTS,
        chunks=tuple(RAW[: limits.MAX_PAYLOAD_CHUNKS]),
        public=None,
        recipients=tuple(RAW[: limits.MAX_RECIPIENTS]),  # type: ignore[arg-type]  # any 32 bytes are an identity here
        size=MAX_CARRIED_PAYLOAD,
    ),
    Invocation(
        **LIFE,
        expires=ENDS,
        capability=RAW[0],
        deadline=ENDS,
        delegations=tuple(RAW[: limits.MAX_DELEGATION_CHAIN]),
        inactivity=MAX_INTEGER,
        input=RAW[0],
        provider=KEY.identity,
    ),
    InvocationUpdate(
        **LIFE,
        expires=ENDS,
        fraction=1000,
        invocation=RAW[0],
        note=NOTE,
        recipient=KEY.identity,
        sequence=MAX_INTEGER,
        stage=NAME,
    ),
    Cancellation(**LIFE, expires=ENDS, invocation=RAW[0], reason=NOTE, recipient=KEY.identity),
    Receipt(
        **LIFE,
        expires=ENDS,
        fault=Fault(NAME, NOTE),
        finished=MAX_INTEGER,
        invocation=RAW[0],
        output=RAW[0],
        received=MAX_INTEGER,
        recipient=KEY.identity,
        started=MAX_INTEGER,
        status="interrupted",
    ),
    Acknowledgement(**LIFE, expires=ENDS, objects=tuple(RAW[: limits.MAX_ACKNOWLEDGED]), recipient=KEY.identity),
]


@pytest.mark.parametrize("body", LARGEST, ids=lambda body: body.KIND)
def test_the_largest_object_of_a_kind_fits(body: Body) -> None:
    obj = sign_object(body, KEY)
    assert len(obj.data) <= MAX_SIGNED_OBJECT
    assert verify_object(obj.data).body == body
    assert cddl.accepts_object(obj.data)


@pytest.mark.parametrize("size", [LEAST, 1000, MAX_SIGNED_OBJECT])
def test_a_body_that_says_it_is_longer_than_the_object_is_refused(size: int) -> None:
    data = b"\xd2\x84\x5a\x00\x0f\xff\xff".ljust(size, b"\0")
    with pytest.raises(InvalidError) as caught:
        parse_object(data)
    assert caught.value.code == "cbor"
