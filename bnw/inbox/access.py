"""Access records: what a recipient needs to open a payload, sealed to one of its inbox keys (design section 8).

Sealing is X25519 with a fresh key per record, BLAKE3 in key-derivation mode over both public keys and the shared
secret, and XChaCha20-Poly1305; the key is used once, so the nonce is zero. Sender and recipient are authenticated with
it. A record has the same size whatever it says. Someone who holds only the manifest learns from it the recipients and
which of their inbox keys was used, nothing else.
"""

from __future__ import annotations

from dataclasses import dataclass

from blake3 import blake3
from nacl.bindings import (
    crypto_aead_xchacha20poly1305_ietf_decrypt,
    crypto_aead_xchacha20poly1305_ietf_encrypt,
    crypto_aead_xchacha20poly1305_ietf_NPUBBYTES,
    crypto_scalarmult,
    crypto_scalarmult_base,
)
from nacl.exceptions import CryptoError

from bnw.identity.inbox_keys import INBOX_KEY_SIZE
from bnw.identity.keys import IdentityId
from bnw.inbox.chunks import PAYLOAD_KEY_SIZE
from bnw.objects.fields import MEDIA_TYPE, integer, optional, raw_bytes, read_fields, spec, text, write_fields
from bnw.objects.mail import ACCESS_RECORD_SIZE
from bnw.wire.cbor import decode_map, encode
from bnw.wire.content_id import ContentId, content_id
from bnw.wire.errors import InvalidError
from bnw.wire.limits import MAX_FILE_NAME, MAX_PAYLOAD

_KEY_CONTEXT = "bnw/1 access record sealing key"
_NONCE = bytes(crypto_aead_xchacha20poly1305_ietf_NPUBBYTES)
_LENGTH_SIZE = 2


@dataclass(frozen=True, slots=True)
class AccessRecord:
    """How to open a payload. `key` is null for a public one."""

    binding: bytes = spec(raw_bytes(32, 32))
    hash: bytes = spec(raw_bytes(32, 32))
    key: bytes | None = spec(optional(raw_bytes(PAYLOAD_KEY_SIZE, PAYLOAD_KEY_SIZE)), secret=True)
    media_type: str = spec(MEDIA_TYPE)
    name: str | None = spec(optional(text(1, MAX_FILE_NAME)))
    size: int = spec(integer(0, MAX_PAYLOAD))


def binding_of(sender: IdentityId, recipients: tuple[IdentityId, ...], chunks: tuple[ContentId, ...]) -> bytes:
    """The hash that ties a record to one sender, recipient set and chunk list, so it cannot serve another manifest."""
    return content_id(encode(["bnw/1 payload", sender, list(recipients), list(chunks)]))


def encode_access_record(record: AccessRecord) -> bytes:
    return encode(write_fields(record))


def decode_access_record(data: bytes) -> AccessRecord:
    """Read a record strictly; raises `InvalidError`."""
    return AccessRecord(**read_fields(AccessRecord, decode_map(data, max_size=ACCESS_RECORD_SIZE), "access-record"))


def seal_access_record(
    record: AccessRecord, *, ephemeral: bytes, inbox_key: bytes, sender: IdentityId, recipient: IdentityId
) -> bytes:
    """Seal `record` to the recipient's `inbox_key`. `ephemeral` is 32 fresh random bytes.

    Raises `InvalidError` (`inbox-key`) for a key that no honest recipient has.
    """
    data = encode_access_record(record)
    padded = (len(data).to_bytes(_LENGTH_SIZE) + data).ljust(ACCESS_RECORD_SIZE, b"\0")
    if len(padded) > ACCESS_RECORD_SIZE:
        raise InvalidError("access-record", "the access record does not fit its fixed size")
    public = crypto_scalarmult_base(ephemeral)
    key = _derive_key(ephemeral, inbox_key, public, inbox_key)
    return public + crypto_aead_xchacha20poly1305_ietf_encrypt(padded, sender + recipient, _NONCE, key)


def open_access_record(
    sealed: bytes, *, private: bytes, inbox_key: bytes, sender: IdentityId, recipient: IdentityId
) -> AccessRecord:
    """Open a sealed record with the `private` half of `inbox_key`; raises `InvalidError`."""
    public, ciphertext = sealed[:INBOX_KEY_SIZE], sealed[INBOX_KEY_SIZE:]
    key = _derive_key(private, public, public, inbox_key)
    try:
        padded = crypto_aead_xchacha20poly1305_ietf_decrypt(ciphertext, sender + recipient, _NONCE, key)
    except CryptoError:
        raise InvalidError("access-record", "the access record does not open with this inbox key") from None
    length = int.from_bytes(padded[:_LENGTH_SIZE])
    data, rest = padded[_LENGTH_SIZE : _LENGTH_SIZE + length], padded[_LENGTH_SIZE + length :]
    if len(data) != length or any(rest):
        raise InvalidError("access-record", "the access record is not padded as it must be")
    return decode_access_record(data)


def _derive_key(private: bytes, other_public: bytes, ephemeral_public: bytes, inbox_key: bytes) -> bytes:
    try:
        shared = crypto_scalarmult(private, other_public)
    except (CryptoError, RuntimeError):
        raise InvalidError("inbox-key", "an X25519 key of small order") from None
    return blake3(ephemeral_public + inbox_key + shared, derive_key_context=_KEY_CONTEXT).digest()
