"""Envelopes that must be refused: the body in each is valid, what is around it is not."""

from __future__ import annotations

from typing import Any

import cbor2

from bnw.identity.keys import SigningKey
from bnw.objects.catalog import Withdrawal
from bnw.wire.cbor import encode
from bnw.wire.limits import CANCELLING_LIFETIME_MIN
from vector_cases.forms import NOW, PUBLISHER, STRANGER, Json, value_of
from vector_cases.identities import GROUP_ORDER, IDENTITY_POINT

TYPE = "application/bnw.withdrawal+cbor"
BODY = encode(
    value_of(Withdrawal(created=NOW, expires=NOW + CANCELLING_LIFETIME_MIN, name="finance/lookup", sequence=NOW))
)
HEADER: dict[Any, Any] = {1: -8, 3: TYPE, 4: PUBLISHER.identity}
PROTECTED = cbor2.dumps(HEADER, canonical=True)


def _signature(
    protected: bytes = PROTECTED, payload: bytes = BODY, aad: bytes = b"bnw/1", key: SigningKey = PUBLISHER,
    context: str = "Signature1",
) -> bytes:  # fmt: skip
    return key.sign(cbor2.dumps([context, protected, aad, payload], canonical=True))


def _envelope(
    protected: bytes = PROTECTED, unprotected: Any = None, payload: Any = BODY, signature: Any = None, tag: int = 18
) -> bytes:
    """A COSE_Sign1 of these parts; without a signature, one that holds is made."""
    if signature is None:
        signature = _signature(protected, payload if isinstance(payload, bytes) else BODY)
    return cbor2.dumps(cbor2.CBORTag(tag, [protected, unprotected or {}, payload, signature]), canonical=True)


def _with_header(header: dict[Any, Any]) -> bytes:
    return _envelope(cbor2.dumps(header, canonical=True))


def envelopes() -> Json:
    return {
        "about": "Envelopes around a valid withdrawal, all refused: by rules that are stricter than those of COSE, or "
        "for their signature.",
        "refused": [
            {"name": name, "hex": data.hex(), "code": code, "reason": reason}
            for name, data, code, reason in _shapes() + _headers() + _encodings() + _signatures()
        ],
    }


Case = tuple[str, bytes, str, str]


def _shapes() -> list[Case]:
    good = _envelope()
    key_in_clear = {4: PUBLISHER.identity}
    return [
        ("nothing", b"", "envelope", "it is empty"),
        ("no tag", good[1:], "envelope", "the tag of COSE_Sign1 is missing"),
        ("the tag of COSE_Sign", _envelope(tag=98), "envelope", "tag 98 is another structure"),
        ("the tag of COSE_Mac0", _envelope(tag=17), "envelope", "tag 17 is another structure"),
        ("the tag twice", b"\xd2" + good, "cbor-tag", "a tag within the tag"),
        ("the tag of CBOR in front", b"\xd9\xd9\xf7" + good, "envelope", "the first byte is that of tag 18"),
        ("a map", b"\xd2\xa0", "envelope", "a COSE_Sign1 is an array"),
        ("three parts", b"\xd2" + cbor2.dumps([PROTECTED, {}, BODY]), "envelope", "the signature is missing"),
        ("five parts", b"\xd2" + cbor2.dumps([PROTECTED, {}, BODY, _signature(), b""]), "envelope",
         "there are four"),
        ("an unprotected header", _envelope(unprotected=key_in_clear), "envelope",
         "anyone could change what is in it, and with it the id"),
        ("a detached payload", _envelope(payload=None), "envelope", "the payload is null"),
        ("a payload in the clear", _envelope(payload=cbor2.loads(BODY)), "envelope",
         "the payload is a map, not bytes that hold one"),
        ("a signature of 63 bytes", _envelope(signature=_signature()[:-1]), "envelope", "a byte is missing"),
        ("a signature of 65 bytes", _envelope(signature=_signature() + b"\0"), "envelope", "a byte too many"),
        ("no signature", _envelope(signature=b""), "envelope", "it is empty"),
    ]  # fmt: skip


def _headers() -> list[Case]:
    def kind(content_type: Any) -> bytes:
        return _with_header({**HEADER, 3: content_type})

    bad = "protected-header"
    return [
        ("an empty header", _envelope(b""), "cbor", "it says neither algorithm nor key nor kind"),
        ("an empty map", _envelope(b"\xa0"), bad, "it says neither algorithm nor key nor kind"),
        ("no algorithm", _with_header({3: TYPE, 4: PUBLISHER.identity}), bad, "the algorithm is missing"),
        ("no content type", _with_header({1: -8, 4: PUBLISHER.identity}), bad, "the kind is missing"),
        ("no key", _with_header({1: -8, 3: TYPE}), bad, "the signer is missing"),
        ("another algorithm", _with_header({**HEADER, 1: -7}), bad, "ES256 is not EdDSA"),
        ("the algorithm by its new number", _with_header({**HEADER, 1: -19}), bad,
         "RFC 9864 gives Ed25519 a number of its own; BNW uses -8 alone"),
        ("a key of 31 bytes", _with_header({**HEADER, 4: PUBLISHER.identity[:-1]}), bad, "a key has 32 bytes"),
        ("a key in text", _with_header({**HEADER, 4: PUBLISHER.identity.hex()}), bad, "a key is bytes"),
        ("a header more", _with_header({**HEADER, 5: b"iv"}), bad, "there are exactly three"),
        ("a critical header", _with_header({**HEADER, 2: [3]}), "cbor", "there are exactly three"),
        ("a content type by number", kind(60), bad, "the content type is text"),
        ("a content type of others", kind("application/json"), bad, "it is none of BNW"),
        ("a content type without its suffix", kind("application/bnw.withdrawal"), bad, "+cbor is missing"),
        ("a content type with a parameter", kind(TYPE + "; v=1"), bad, "there are no parameters"),
        ("a content type in capital letters", kind(TYPE.replace("bnw", "BNW")), bad, "it is lowercase"),
        ("a kind that there is not", kind("application/bnw.promise+cbor"), "unknown-kind", "there are twelve"),
        ("no kind", kind("application/bnw.+cbor"), "unknown-kind", "the kind is empty"),
        ("a kind of many letters", kind(f"application/bnw.{'x' * 80}+cbor"), "envelope",
         "the header has more than 128 bytes"),
        ("another kind than the body is", kind("application/bnw.revocation+cbor"), "unknown-field",
         "the fields are those of a withdrawal"),
    ]  # fmt: skip


def _encodings() -> list[Case]:
    good = _envelope()
    size = len(PROTECTED)
    assert good[2:4] == bytes([0x58, size])
    longer = good[:2] + b"\x59" + size.to_bytes(2) + good[4:]
    shuffled = b"\xa3" + cbor2.dumps(4) + cbor2.dumps(PUBLISHER.identity) + b"\x01\x27\x03" + cbor2.dumps(TYPE)
    wide = PROTECTED.replace(b"\xa3\x01\x27", b"\xa3\x18\x01\x27")
    twice = b"\xa4\x01\x27" + PROTECTED[1:]
    true = b"\xa3\xf5\x27" + PROTECTED[3:]
    floating = b"\xa3\x01" + cbor2.dumps(-8.0, canonical=True) + PROTECTED[3:]
    code = "cbor-not-deterministic"
    return [
        ("the tag in two bytes", b"\xd8\x12" + good[1:], "envelope", "tag 18 fits one byte"),
        ("an array of indefinite length", b"\xd2\x9f" + good[2:] + b"\xff", "cbor", "lengths are definite"),
        ("the length of the header in three bytes", longer, code, "it fits two bytes"),
        ("a byte behind", good + b"\0", code, "something follows the envelope"),
        ("the header in another order", _envelope(shuffled), code, "the keys are in the order 1, 3, 4"),
        ("a header key in two bytes", _envelope(wide), code, "1 fits one byte"),
        ("a header key twice", _envelope(twice), "cbor", "the algorithm is there twice"),
        ("true for the key 1", _envelope(true), code, "true is not the number 1"),
        ("the algorithm as a floating-point number", _envelope(floating), code, "-8.0 is not the number -8"),
    ]  # fmt: skip


def _signatures() -> list[Case]:
    good = _signature()
    larger = int.from_bytes(good[32:], "little") + GROUP_ORDER
    neutral = cbor2.dumps({**HEADER, 4: IDENTITY_POINT}, canonical=True)
    stranger = _signature(key=STRANGER)
    return [
        ("no additional data", _envelope(signature=_signature(aad=b"")), "signature",
         "what is signed begins with bnw/1, so that nothing signed elsewhere counts here"),
        ("the additional data of another version", _envelope(signature=_signature(aad=b"bnw/2")), "signature",
         "this is version 1"),
        ("the context of another structure", _envelope(signature=_signature(context="Signature")), "signature",
         "a COSE_Sign1 has the context Signature1"),
        ("the body alone is signed", _envelope(signature=PUBLISHER.sign(BODY)), "signature",
         "the header is signed too"),
        ("signed by somebody else", _envelope(signature=stranger), "signature",
         "it is not by the key in the header"),
        ("the scalar plus the group order", _envelope(signature=good[:32] + larger.to_bytes(32, "little")),
         "signature", "one object would have two ids"),
        ("a key that signs everything", _envelope(neutral, signature=IDENTITY_POINT + bytes(32)), "signature",
         "the key is the neutral element of the curve: whoever accepts it lets anyone speak for it"),
        ("a signature of zeros", _envelope(signature=bytes(64)), "signature", "it is no signature"),
    ]  # fmt: skip
