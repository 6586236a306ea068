"""Sealing of payload bytes in chunks of 1 MiB with XChaCha20-Poly1305 (draft-irtf-cfrg-xchacha).

The nonce holds the chunk's number and whether it is the last, as in the STREAM construction (Hoang et al., CRYPTO
2015). The key belongs to one payload alone, so nonces do not repeat; a chunk that is moved, left out, repeated or cut
off at the end does not open.

A plaintext is cut as it comes: a piece is passed on once it is known that it is not the last, so nothing but the end of
the plaintext need be known to seal it in one pass.
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
from bnw.objects.mail import CHUNK_OVERHEAD
from bnw.wire.errors import InvalidError
from bnw.wire.limits import PAYLOAD_CHUNK

PAYLOAD_KEY_SIZE = crypto_aead_xchacha20poly1305_ietf_KEYBYTES
_AAD = b"bnw/1 payload chunk"
_ZEROS = bytes(PAYLOAD_CHUNK)


def carried_size(size: int, *, sealed: bool) -> int:
    """How many bytes all chunks of a plaintext of `size` bytes have as they travel."""
    if not sealed:
        return max(size, 1)  # a manifest has at least one chunk, and a chunk at least one byte
    padded = padded_size(size)
    return padded + CHUNK_OVERHEAD * -(-padded // PAYLOAD_CHUNK)


class Cutter:
    """Cuts a plaintext into pieces of 1 MiB, of which the last may be shorter; pads it if it is to be sealed.

    Each piece comes with whether it is the last.
    """

    def __init__(self, *, pad: bool) -> None:
        self._pad = pad
        self._whole: bytes | None = None
        """A piece that came whole, and of which it is not known yet whether it is the last."""
        self._buffer = bytearray()
        """Or else the beginning of one: at most a whole piece as well."""
        self._cut = 0
        self.size = 0
        """Bytes of plaintext so far."""

    def feed(self, data: bytes) -> Iterator[tuple[bytes, bool]]:
        """Take in more of the plaintext; the pieces that are complete and not the last."""
        self.size += len(data)
        if data and self._whole is not None:
            whole, self._whole = self._whole, None
            yield self._next(whole), False
        if len(data) == PAYLOAD_CHUNK and not self._buffer:  # what files give, not to be copied about
            self._whole = data
            return
        view = memoryview(data)
        while len(self._buffer) + len(view) > PAYLOAD_CHUNK:
            room = PAYLOAD_CHUNK - len(self._buffer)
            yield self._next(b"".join((self._buffer, view[:room]))), False
            view = view[room:]
        self._buffer += view

    def finish(self) -> Iterator[tuple[bytes, bool]]:
        """The plaintext has ended: the pieces that are left, among them the last."""
        total = padded_size(self.size) if self._pad else max(self.size, 1)
        if self._whole is not None:
            yield self._next(self._whole), self._cut == total
        while self._cut < total:
            size = min(PAYLOAD_CHUNK, total - self._cut)
            yield self._next(b"".join((self._buffer, memoryview(_ZEROS)[len(self._buffer) : size]))), self._cut == total

    def _next(self, piece: bytes) -> bytes:
        self._buffer.clear()
        self._cut += len(piece)
        return piece


def seal_chunk(piece: bytes, key: bytes, number: int, *, is_last: bool) -> bytes:
    """Seal one piece of a plaintext as chunk `number`."""
    return crypto_aead_xchacha20poly1305_ietf_encrypt(piece, _AAD, _nonce(number, is_last=is_last), key)


def seal_chunks(plaintext: bytes, key: bytes) -> Iterator[bytes]:
    """The sealed chunks of a plaintext that is in memory."""
    for number, (piece, is_last) in enumerate(cut(plaintext, pad=True)):
        yield seal_chunk(piece, key, number, is_last=is_last)


def cut(plaintext: bytes, *, pad: bool) -> Iterator[tuple[bytes, bool]]:
    """The pieces of a plaintext that is in memory."""
    cutter = Cutter(pad=pad)
    yield from cutter.feed(plaintext)
    yield from cutter.finish()


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
