"""Sealing of payload bytes in chunks of 1 MiB with XChaCha20-Poly1305 (draft-irtf-cfrg-xchacha).

The nonce holds the chunk's number and whether it is the last, as in the STREAM construction (Hoang et al., CRYPTO
2015). The key belongs to one payload alone, so nonces do not repeat; a chunk that is moved, left out, repeated or cut
off at the end does not open.
"""

from __future__ import annotations

from collections.abc import Iterator

from nacl.bindings import (
    crypto_aead_xchacha20poly1305_ietf_decrypt,
    crypto_aead_xchacha20poly1305_ietf_encrypt,
    crypto_aead_xchacha20poly1305_ietf_KEYBYTES,
    crypto_aead_xchacha20poly1305_ietf_NPUBBYTES,
)
from nacl.exceptions import CryptoError

from bnw.inbox.padding import padded_size
from bnw.wire.errors import InvalidError
from bnw.wire.limits import PAYLOAD_CHUNK

PAYLOAD_KEY_SIZE = crypto_aead_xchacha20poly1305_ietf_KEYBYTES
_AAD = b"bnw/1 payload chunk"


def seal_chunks(plaintext: bytes, key: bytes) -> Iterator[bytes]:
    """The sealed chunks of a padded plaintext."""
    total = padded_size(len(plaintext))
    count = -(-total // PAYLOAD_CHUNK)
    for number in range(count):
        start = number * PAYLOAD_CHUNK
        size = min(PAYLOAD_CHUNK, total - start)
        piece = plaintext[start : start + size].ljust(size, b"\0")
        nonce = _nonce(number, is_last=number == count - 1)
        yield crypto_aead_xchacha20poly1305_ietf_encrypt(piece, _AAD, nonce, key)


def open_chunk(sealed: bytes, key: bytes, number: int, *, is_last: bool) -> bytes:
    """The plaintext of one chunk; raises `InvalidError` (`chunk`) if it is not that chunk of that payload."""
    try:
        return crypto_aead_xchacha20poly1305_ietf_decrypt(sealed, _AAD, _nonce(number, is_last=is_last), key)
    except CryptoError:
        raise InvalidError(
            "chunk", f"chunk {number} does not open: it is damaged, moved or of another payload"
        ) from None


def _nonce(number: int, *, is_last: bool) -> bytes:
    return (number.to_bytes(8) + bytes([is_last])).ljust(crypto_aead_xchacha20poly1305_ietf_NPUBBYTES, b"\0")
