"""The envelope: a COSE_Sign1 (RFC 9052 section 4.2) with Ed25519, in its one deterministic encoding.

Protected header: alg EdDSA (-8), content type `application/bnw.<kind>+cbor`, kid the 32-byte public key. The
unprotected header is empty, the external additional data is `bnw/1`. Any COSE library can verify one.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import cbor2

from bnw.identity.keys import IDENTITY_ID_SIZE, SIGNATURE_SIZE, IdentityId, SigningKey, is_valid_signature
from bnw.wire.cbor import encode_bytes, read_untagged
from bnw.wire.errors import InvalidError
from bnw.wire.limits import MAX_SIGNED_OBJECT

EXTERNAL_AAD = b"bnw/1"
_TAG_18 = b"\xd2"
_ARRAY_OF_4 = b"\x84"
_EMPTY_MAP = b"\xa0"
_SIGNED_PREFIX = _ARRAY_OF_4 + cbor2.dumps("Signature1")
_SIGNED_AAD = encode_bytes(EXTERNAL_AAD)
_ALG_EDDSA = -8
_HEADER_ALG, _HEADER_CONTENT_TYPE, _HEADER_KID = 1, 3, 4
_MAX_PROTECTED = 128
MAX_KNOWN_HEADERS: Final = 4096
"""Protected headers that were read and are remembered, at most 128 bytes each: a signer has one for each kind."""
_TYPE_PREFIX, _TYPE_SUFFIX = "application/bnw.", "+cbor"


@dataclass(frozen=True, slots=True)
class Envelope:
    """A parsed envelope whose signature has not been checked yet."""

    kind: str
    signer: IdentityId
    payload: bytes
    signature: bytes
    protected: bytes

    def has_valid_signature(self) -> bool:
        return is_valid_signature(self.signer, _signed_bytes(self.protected, self.payload), self.signature)


def sign_envelope(kind: str, payload: bytes, key: SigningKey) -> bytes:
    """The encoded envelope around `payload`; raises `InvalidError` (`too-large`) above 64 KiB."""
    protected = _encode_protected(kind, key.identity)
    signature = key.sign(_signed_bytes(protected, payload))
    data = _encode_envelope(protected, payload, signature)
    if len(data) > MAX_SIGNED_OBJECT:
        raise InvalidError("too-large", f"a {kind} of {len(data):,} bytes exceeds the limit of {MAX_SIGNED_OBJECT:,}")
    return data


def parse_envelope(data: bytes) -> Envelope:
    """Read an envelope strictly, without checking its signature; raises `InvalidError`."""
    if len(data) > MAX_SIGNED_OBJECT:
        raise InvalidError("too-large", f"a signed object of {len(data):,} bytes; at most {MAX_SIGNED_OBJECT:,}")
    if data[:1] != _TAG_18:
        raise InvalidError("envelope", "not a tagged COSE_Sign1")
    match read_untagged(data[1:], "envelope", max_depth=2, text_keys=False):
        case [bytes(protected), dict(unprotected), bytes(payload), bytes(signature)] if not unprotected:
            pass
        case _:
            raise InvalidError("envelope", "not a COSE_Sign1 with an empty unprotected header")
    if len(signature) != SIGNATURE_SIZE or len(protected) > _MAX_PROTECTED:
        raise InvalidError("envelope", "the signature or the protected header has a wrong size")
    kind, signer = _parse_protected(protected)
    if _encode_envelope(protected, payload, signature) != data:
        raise InvalidError("cbor-not-deterministic", "the envelope is not in its deterministic encoding")
    return Envelope(kind, signer, payload, signature, protected)


@lru_cache(MAX_KNOWN_HEADERS)
def _parse_protected(protected: bytes) -> tuple[str, IdentityId]:
    match read_untagged(protected, "protected header", max_depth=1, text_keys=False):
        case {1: -8, 3: str(content_type), 4: bytes(kid), **rest} if not rest and len(kid) == IDENTITY_ID_SIZE:
            pass
        case _:
            raise InvalidError("protected-header", "not exactly alg EdDSA, a content type and a 32-byte kid")
    if not (content_type.startswith(_TYPE_PREFIX) and content_type.endswith(_TYPE_SUFFIX)):
        raise InvalidError("protected-header", f"{content_type!r:.80} is not the type of a BNW object")
    kind, signer = content_type[len(_TYPE_PREFIX) : -len(_TYPE_SUFFIX)], IdentityId(kid)
    if _encode_protected(kind, signer) != protected:
        raise InvalidError("cbor-not-deterministic", "the protected header is not in its deterministic encoding")
    return kind, signer


def _encode_protected(kind: str, signer: IdentityId) -> bytes:
    header = {
        _HEADER_ALG: _ALG_EDDSA,
        _HEADER_CONTENT_TYPE: f"{_TYPE_PREFIX}{kind}{_TYPE_SUFFIX}",
        _HEADER_KID: signer,
    }
    return cbor2.dumps(header, canonical=True)


def _encode_envelope(protected: bytes, payload: bytes, signature: bytes) -> bytes:
    return b"".join(
        (_TAG_18, _ARRAY_OF_4, encode_bytes(protected), _EMPTY_MAP, encode_bytes(payload), encode_bytes(signature))
    )


def _signed_bytes(protected: bytes, payload: bytes) -> bytes:
    """The Sig_structure of RFC 9052 section 4.4."""
    return b"".join((_SIGNED_PREFIX, encode_bytes(protected), _SIGNED_AAD, encode_bytes(payload)))
