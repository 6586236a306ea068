"""Ed25519 identities (RFC 8032) and their did:key text form (W3C did:key method, multicodec 0xed).

Verification is libsodium's: it refuses non-canonical signatures and points of small order, so that one message has one
signature per key and no key signs everything.
"""

from __future__ import annotations

from typing import NewType

import base58
from nacl.bindings import crypto_sign_BYTES, crypto_sign_PUBLICKEYBYTES
from nacl.exceptions import BadSignatureError
from nacl.signing import SigningKey as _NaclSigningKey
from nacl.signing import VerifyKey as _NaclVerifyKey

from bnw.wire.errors import InvalidError

IdentityId = NewType("IdentityId", bytes)
"""The 32-byte Ed25519 public key of an identity."""

IDENTITY_ID_SIZE = crypto_sign_PUBLICKEYBYTES
SIGNATURE_SIZE = crypto_sign_BYTES
SEED_SIZE = 32

_DID_PREFIX = "did:key:z"
_ED25519_MULTICODEC = b"\xed\x01"
_MAX_DID_LENGTH = 64


class SigningKey:
    """The secret half of an identity. Its repr does not show the secret."""

    def __init__(self, seed: bytes) -> None:
        if len(seed) != SEED_SIZE:
            raise InvalidError("key-size", f"an Ed25519 seed is {SEED_SIZE} bytes, not {len(seed)}")
        self._key = _NaclSigningKey(seed)
        self.identity = IdentityId(bytes(self._key.verify_key))

    @property
    def seed(self) -> bytes:
        return bytes(self._key)

    def sign(self, message: bytes) -> bytes:
        """The 64-byte signature of `message`. Deterministic (RFC 8032 section 5.1.6)."""
        return self._key.sign(message).signature

    def __repr__(self) -> str:
        return f"SigningKey({did_key(self.identity)})"


def is_valid_signature(identity: IdentityId, message: bytes, signature: bytes) -> bool:
    """Whether `signature` is `identity`'s over `message`."""
    if len(signature) != SIGNATURE_SIZE or len(identity) != IDENTITY_ID_SIZE:
        return False
    try:
        _NaclVerifyKey(identity).verify(message, signature)
    except BadSignatureError:
        return False
    return True


def did_key(identity: IdentityId) -> str:
    """The did:key text form of an identity, for example `did:key:z6Mk...`."""
    return _DID_PREFIX + base58.b58encode(_ED25519_MULTICODEC + identity).decode()


def parse_did_key(text: str) -> IdentityId:
    """Read a did:key; raises `InvalidError` unless it is the one text form of an Ed25519 key."""
    cure = "an identity looks like did:key:z6Mk...; `bnw id` prints yours"
    if len(text) > _MAX_DID_LENGTH or not text.startswith(_DID_PREFIX):
        shown = text if len(text) <= 80 else f"{text[:77]}..."
        raise InvalidError("did-key", f"{shown!r} is not a did:key", cure=cure)
    try:
        raw = base58.b58decode(text[len(_DID_PREFIX) :])
    except ValueError:
        raise InvalidError("did-key", f"{text!r} is not base58", cure=cure) from None
    if not raw.startswith(_ED25519_MULTICODEC) or len(raw) != len(_ED25519_MULTICODEC) + IDENTITY_ID_SIZE:
        raise InvalidError("did-key", f"{text!r} does not hold an Ed25519 key", cure=cure)
    identity = IdentityId(raw[len(_ED25519_MULTICODEC) :])
    if did_key(identity) != text:
        raise InvalidError("did-key", f"{text!r} is not in canonical form", cure=cure)
    return identity
