"""Golden objects of every kind (design section 6), judged by BNW, by a CDDL library and by a COSE library."""

from __future__ import annotations

from typing import Any

import cbor2
import cddl
import cose
import pytest
from blake3 import blake3
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from golden_vectors import Vector, from_json, golden, refused, vectors

from bnw.identity.keys import SigningKey
from bnw.objects.body import Body
from bnw.objects.rules import is_catalog_object, recipients_of, slot_of
from bnw.objects.signed import KINDS, parse_object, sign_object, trusted_object, verify_object
from bnw.wire.errors import InvalidError

FILES = ("objects-catalog.json", "objects-authority.json", "objects-mail.json", "objects-calls.json")
ACCEPTED = [vector for file in FILES for vector in vectors(file, "accepted")]
REFUSED = [vector for file in FILES for vector in vectors(file, "refused")]


def check_accepted(vector: Vector) -> None:
    data = vector.bytes_of("object")

    obj = verify_object(data)
    assert obj.kind == vector["kind"]
    assert obj.signer == vector.bytes_of("signer")
    assert obj.id == vector.bytes_of("id")
    assert slot_of(obj) == (None if vector["slot"] is None else vector.bytes_of("slot"))
    assert [identity.hex() for identity in recipients_of(obj.body)] == vector["inboxes"]
    assert is_catalog_object(obj.body) == (not vector["inboxes"])

    # The same object comes of the body that was read, and of the map that the vector gives.
    key = SigningKey(vector.bytes_of("seed"))
    assert sign_object(obj.body, key) == obj
    assert obj.body.encode() == vector.bytes_of("payload")
    assert trusted_object(data) == obj

    # The same bytes come of other libraries alone: CBOR, Ed25519 and BLAKE3, and no code of BNW.
    other = Ed25519PrivateKey.from_private_bytes(vector.bytes_of("seed"))
    public = other.public_key().public_bytes_raw()
    content_type = f"application/bnw.{vector['kind']}+cbor"
    protected = cbor2.dumps({1: -8, 3: content_type, 4: public}, canonical=True)
    payload = cbor2.dumps(from_json(vector["body"]), canonical=True)
    signature = other.sign(cbor2.dumps(["Signature1", protected, b"bnw/1", payload]))
    assert protected == vector.bytes_of("protected")
    assert payload == vector.bytes_of("payload")
    assert cbor2.dumps(cbor2.CBORTag(18, [protected, {}, payload, signature])) == data
    assert blake3(data).hexdigest() == vector["id"]

    # Judges from elsewhere take it.
    assert cose.holds(data, vector.bytes_of("signer"))
    assert cose.read(data).uhdr == {}
    assert cddl.accepts_object(data)
    content_type_by_cddl, body_rule = cddl.kinds()[vector["kind"]]
    assert content_type_by_cddl == content_type
    assert cddl.accepts_body(body_rule, payload)


def check_refused(vector: Vector) -> None:
    data = vector.bytes_of("hex")
    with refused(vector):
        parse_object(data)
    with pytest.raises(InvalidError):
        verify_object(data)
    # Nothing but the rule is broken: the header names the kind, and the signature holds.
    tag: Any = cbor2.loads(data)
    protected: Any = cbor2.loads(tag.value[0])
    assert protected[3] == f"application/bnw.{vector['kind']}+cbor"
    assert cose.holds(data, protected[4])
    assert cddl.accepts_object(data) == {"accepts": True, "refuses": False}[vector["cddl"]]


@golden("objects-catalog.json", "accepted")
def test_a_catalog_object_is_what_it_says(vector: Vector) -> None:
    check_accepted(vector)


@golden("objects-catalog.json", "refused")
def test_a_catalog_object_against_a_rule_is_refused(vector: Vector) -> None:
    check_refused(vector)


@golden("objects-authority.json", "accepted")
def test_a_delegation_or_revocation_is_what_it_says(vector: Vector) -> None:
    check_accepted(vector)


@golden("objects-authority.json", "refused")
def test_a_delegation_or_revocation_against_a_rule_is_refused(vector: Vector) -> None:
    check_refused(vector)


@golden("objects-mail.json", "accepted")
def test_an_object_that_carries_mail_is_what_it_says(vector: Vector) -> None:
    check_accepted(vector)


@golden("objects-mail.json", "refused")
def test_an_object_that_carries_mail_against_a_rule_is_refused(vector: Vector) -> None:
    check_refused(vector)


@golden("objects-calls.json", "accepted")
def test_an_object_of_a_call_is_what_it_says(vector: Vector) -> None:
    check_accepted(vector)


@golden("objects-calls.json", "refused")
def test_an_object_of_a_call_against_a_rule_is_refused(vector: Vector) -> None:
    check_refused(vector)


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_has_golden_objects_and_many_that_are_refused(kind: str) -> None:
    assert any(vector["kind"] == kind for vector in ACCEPTED)
    codes = {vector["code"] for vector in REFUSED if vector["kind"] == kind}
    assert codes >= {"unknown-version", "unknown-field", "missing-field", "field", "lifetime", "cbor-not-deterministic"}


@pytest.mark.parametrize("kind", KINDS)
def test_every_field_of_a_kind_that_may_be_null_is_null_once_and_once_not(kind: str) -> None:
    seen: dict[str, set[bool]] = {}
    for vector in ACCEPTED:
        if vector["kind"] == kind:
            for field, value in vector["body"].items():
                seen.setdefault(field, set()).add(value is None)
    optional = {field for field, forms in seen.items() if True in forms}
    assert all(seen[field] == {True, False} for field in optional)


def test_all_golden_objects_have_different_ids() -> None:
    assert len({vector["id"] for vector in ACCEPTED}) == len(ACCEPTED)


@pytest.mark.parametrize("vector", ACCEPTED, ids=lambda vector: vector["name"])
def test_a_golden_object_is_no_object_of_another_kind(vector: Vector) -> None:
    payload = vector.bytes_of("payload")
    others: list[type[Body]] = [cls for kind, cls in KINDS.items() if kind != vector["kind"]]
    for cls in others:
        with pytest.raises(InvalidError):
            cls.decode(payload)
