"""Identities (design section 7): Ed25519 keys, their one text form, and what counts as a signature."""

from __future__ import annotations

import base58
import pytest
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from golden_vectors import Vector, assert_says_why, golden, refused
from hypothesis import given
from hypothesis import strategies as st

from bnw.identity.keys import IdentityId, SigningKey, did_key, is_valid_signature, parse_did_key
from bnw.wire.errors import InvalidError

seeds = st.binary(min_size=32, max_size=32)
PUBLISHED = (
    "did:key:z6MkiTBz1ymuepAQ4HEHYSF1H8quG5GLVVQR3djdX3mDooWp",
    "did:key:z6MkjchhfUsD6mmvni8mCdXHw216Xrm9bQe2mBH1P5RDjVJG",
    "did:key:z6MknGc3ocHs3zdPiJbnaaqDi58NGb4pk1Sp9WxWufuXSdxf",
    "did:key:z6MkvqoYXQfDDJRv8L4wKzxYeuKyVZBfi9Qo6Ro8MiLH3kDQ",
    "did:key:z6MkwW6aqMnjgrhJXFUko3NnZPGzVpkNzhYK7yEhnsibmLwL",
)
"""The test vectors that come with the did:key method specification, for the seeds 0 to 4."""


@golden("identities.json", "did_keys")
def test_a_seed_gives_this_identity_and_text(vector: Vector) -> None:
    key = SigningKey(vector.bytes_of("seed"))
    assert key.identity == vector.bytes_of("identity")
    assert key.seed == vector.bytes_of("seed")
    assert did_key(key.identity) == vector["did"]
    assert parse_did_key(vector["did"]) == key.identity


@golden("identities.json", "refused_did_keys")
def test_another_text_is_no_identity(vector: Vector) -> None:
    with refused(vector):
        parse_did_key(vector["text"])


@golden("identities.json", "signatures")
def test_a_key_signs_as_rfc_8032_says(vector: Vector) -> None:
    key, message = SigningKey(vector.bytes_of("seed")), vector.bytes_of("message")
    assert key.identity == vector.bytes_of("identity")
    assert key.sign(message) == vector.bytes_of("signature")
    assert is_valid_signature(key.identity, message, vector.bytes_of("signature"))


@golden("identities.json", "refused_signatures")
def test_what_a_lenient_verifier_might_take_is_no_signature(vector: Vector) -> None:
    identity = IdentityId(vector.bytes_of("identity"))
    assert not is_valid_signature(identity, vector.bytes_of("message"), vector.bytes_of("signature"))
    assert_says_why(vector)


@pytest.mark.parametrize(("number", "text"), list(enumerate(PUBLISHED)))
def test_the_published_test_vectors_hold(number: int, text: str) -> None:
    assert did_key(SigningKey(bytes(31) + bytes([number])).identity) == text


@given(seeds)
def test_an_identity_survives_its_text_form(seed: bytes) -> None:
    identity = SigningKey(seed).identity
    assert parse_did_key(did_key(identity)) == identity
    assert did_key(identity).startswith("did:key:z6Mk")


@given(st.binary(min_size=32, max_size=32), st.data())
def test_a_text_with_another_character_is_refused_or_is_another_identity(raw: bytes, data: st.DataObject) -> None:
    text = did_key(IdentityId(raw))
    at = data.draw(st.integers(0, len(text) - 1))
    changed = text[:at] + data.draw(st.characters(exclude_characters=text[at])) + text[at + 1 :]
    try:
        found = parse_did_key(changed)
    except InvalidError:
        return
    assert found != raw
    assert did_key(found) == changed


@given(st.text(max_size=70) | st.binary(max_size=40).map(lambda raw: "did:key:z" + base58.b58encode(raw).decode()))
def test_any_other_text_is_refused_as_a_did_key(text: str) -> None:
    try:
        identity = parse_did_key(text)
    except InvalidError as error:
        assert error.code == "did-key"
        assert "bnw id" in str(error)
    else:
        assert did_key(identity) == text


@given(seeds, st.binary(max_size=100))
def test_signatures_are_those_of_another_library(seed: bytes, message: bytes) -> None:
    key, other = SigningKey(seed), Ed25519PrivateKey.from_private_bytes(seed)
    assert key.identity == other.public_key().public_bytes_raw()
    assert key.sign(message) == other.sign(message)


@given(seeds, st.binary(max_size=50), st.data())
def test_no_other_byte_in_signature_message_or_key_is_accepted(
    seed: bytes, message: bytes, data: st.DataObject
) -> None:
    key = SigningKey(seed)
    parts = [bytearray(key.identity), bytearray(message), bytearray(key.sign(message))]
    part = data.draw(st.sampled_from([part for part in parts if part]))
    part[data.draw(st.integers(0, len(part) - 1))] ^= data.draw(st.integers(1, 255))
    identity, changed, signature = map(bytes, parts)
    assert not is_valid_signature(IdentityId(identity), changed, signature)
    try:
        Ed25519PublicKey.from_public_bytes(identity).verify(signature, changed)
    except (InvalidSignature, ValueError):
        return
    raise AssertionError("another library takes it")


@pytest.mark.parametrize("size", [0, 31, 33, 64])
def test_a_seed_of_another_size_is_refused(size: int) -> None:
    with pytest.raises(InvalidError) as caught:
        SigningKey(bytes(size))
    assert caught.value.code == "key-size"


def test_a_key_does_not_show_its_secret() -> None:
    key = SigningKey(bytes(range(32)))
    shown = repr(key) + str(key)
    assert did_key(key.identity) in shown
    assert bytes(range(32)).hex() not in shown
    assert repr(bytes(range(32))) not in shown
