"""Kinds that carry payloads between participants: payload manifests and acknowledgements (design section 8)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from bnw.identity.inbox_keys import INBOX_KEY_SIZE
from bnw.identity.keys import IdentityId
from bnw.objects.body import Body
from bnw.objects.fields import CONTENT_ID, IDENTITY, array, fail, integer, optional, raw_bytes, record, spec
from bnw.wire.content_id import ContentId
from bnw.wire.limits import (
    INBOX_OBJECT_LIFETIME,
    KIB,
    MAX_ACKNOWLEDGED,
    MAX_PAYLOAD_CHUNKS,
    MAX_RECIPIENTS,
    PAYLOAD_CHUNK,
)

CHUNK_OVERHEAD = 16
"""Bytes that sealing adds to a chunk: the Poly1305 tag."""
ACCESS_RECORD_SIZE = 640
"""Every access record is padded to this, so that its size says nothing about names."""
SEALED_ACCESS_RECORD_SIZE = 32 + ACCESS_RECORD_SIZE + 16
"""Ephemeral X25519 key, padded record, Poly1305 tag."""
MAX_CARRIED_PAYLOAD = MAX_PAYLOAD_CHUNKS * (PAYLOAD_CHUNK + CHUNK_OVERHEAD)


@dataclass(frozen=True, slots=True)
class SealedAccess:
    """An access record sealed to one of the recipient's inbox keys."""

    inbox_key: bytes = spec(raw_bytes(INBOX_KEY_SIZE, INBOX_KEY_SIZE))
    sealed: bytes = spec(raw_bytes(SEALED_ACCESS_RECORD_SIZE, SEALED_ACCESS_RECORD_SIZE))


@dataclass(frozen=True, slots=True, kw_only=True)
class PayloadManifest(Body):
    """An input or output: the chunks that carry it, and per recipient, in the same order, the means to open them.

    A public payload has its access record in the clear in `public` and no sealed ones.
    """

    KIND: ClassVar[str] = "payload-manifest"
    MAX_LIFETIME: ClassVar[int] = INBOX_OBJECT_LIFETIME

    access: tuple[SealedAccess, ...] = spec(array(record(SealedAccess), 0, MAX_RECIPIENTS))
    chunks: tuple[ContentId, ...] = spec(array(CONTENT_ID, 1, MAX_PAYLOAD_CHUNKS))
    public: bytes | None = spec(optional(raw_bytes(1, KIB)))
    recipients: tuple[IdentityId, ...] = spec(array(IDENTITY, 1, MAX_RECIPIENTS, ascending=True))
    size: int = spec(integer(1, MAX_CARRIED_PAYLOAD))

    def check(self) -> None:
        Body.check(self)
        sealed = self.public is None
        if len(self.access) != (len(self.recipients) if sealed else 0):
            raise fail(
                f"{self.KIND}.access",
                "one sealed access record per recipient is expected, or none and a public one",
                "access-records",
            )
        chunk = PAYLOAD_CHUNK + (CHUNK_OVERHEAD if sealed else 0)
        if not (len(self.chunks) - 1) * chunk < self.size <= len(self.chunks) * chunk:
            raise fail(f"{self.KIND}.size", f"{self.size} bytes do not fit {len(self.chunks)} chunks", "payload-size")

    @property
    def largest_chunk(self) -> int:
        """Bytes of the first chunk as it travels; none is larger."""
        return min(self.size, PAYLOAD_CHUNK + (CHUNK_OVERHEAD if self.public is None else 0))


@dataclass(frozen=True, slots=True, kw_only=True)
class Acknowledgement(Body):
    """The signer has these inbox objects safely; carriers may drop them. `recipient` is who sent them."""

    KIND: ClassVar[str] = "acknowledgement"
    MAX_LIFETIME: ClassVar[int] = INBOX_OBJECT_LIFETIME

    objects: tuple[ContentId, ...] = spec(array(CONTENT_ID, 1, MAX_ACKNOWLEDGED, ascending=True))
    recipient: IdentityId = spec(IDENTITY)
