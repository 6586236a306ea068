"""Watches a plaintext as it comes out of its chunks: counts it, hashes it, and takes the padding off. Sans-I/O."""

from __future__ import annotations

from blake3 import blake3

from bnw.inbox.access import AccessRecord
from bnw.wire.errors import InvalidError


class PlaintextCheck:
    """Every piece passes `take`, in order; what the sender declared holds only once `finish` has returned."""

    def __init__(self, record: AccessRecord) -> None:
        self._size = record.size
        self._hash = record.hash
        self._hasher = blake3()
        self.taken = 0
        """Bytes of plaintext so far, padding aside."""

    def take(self, piece: bytes) -> bytes:
        """The part of `piece` that is not padding. Raises `InvalidError` (`payload-padding`)."""
        rest = self._size - self.taken
        data = piece if len(piece) <= rest else piece[:rest]
        padding = len(piece) - len(data)
        if padding and piece[rest:] != bytes(padding):
            raise InvalidError("payload-padding", "the padding holds something")
        self._hasher.update(data)
        self.taken += len(data)
        return data

    def finish(self) -> None:
        """Raises `InvalidError` (`payload-size`, `payload-hash`) unless this was all of what was declared."""
        if self.taken != self._size:
            raise InvalidError("payload-size", f"{self.taken:,} bytes arrived where {self._size:,} were declared")
        if self._hasher.digest() != self._hash:
            raise InvalidError("payload-hash", "the bytes do not have the hash that the sender declared")
