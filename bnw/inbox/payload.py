"""Payloads in memory: bytes sealed for exactly their recipients under a signed manifest, and opened again.

For payloads of at most `MAX_PAYLOAD_IN_MEMORY` bytes. Larger ones are a `PayloadFile`, or a `StoredPayload` before they
are opened, and go through `sealing`, `transfer` and `opening`, which hold a few chunks at a time; the bytes that travel
are the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from bnw.identity.keys import IdentityId, SigningKey
from bnw.inbox.access import AccessRecord
from bnw.inbox.chunks import cut, open_chunk, seal_chunks
from bnw.inbox.manifest import (
    Content,
    new_payload_key,
    payload_body,
    public_manifest,
    read_access,
    sealed_manifest,
)
from bnw.inbox.plaintext import PlaintextCheck
from bnw.objects.signed import SignedObject
from bnw.wire.content_id import content_id
from bnw.wire.environment import Environment
from bnw.wire.errors import InvalidError
from bnw.wire.limits import MAX_PAYLOAD_IN_MEMORY

__all__ = [
    "CarriedPayload",
    "Payload",
    "PayloadFile",
    "StoredPayload",
    "open_payload",
    "publish_payload",
    "read_access",
    "seal_payload",
]


@dataclass(frozen=True, slots=True)
class Payload:
    """The plain side of a payload."""

    data: bytes = field(repr=False)
    media_type: str
    name: str | None = None

    @property
    def size(self) -> int:
        return len(self.data)


@dataclass(frozen=True, slots=True)
class PayloadFile:
    """The plain side of a payload in a file of `size` bytes, which must not change while it is used."""

    path: Path
    size: int
    media_type: str
    name: str | None = None


@dataclass(frozen=True, slots=True)
class StoredPayload:
    """A payload whose chunks are in the store, not opened yet: `bnw.inbox.opening` does that.

    That the plaintext is whole, and as declared, is known once it has been opened to its end.
    """

    manifest: SignedObject
    record: AccessRecord = field(repr=False)

    @property
    def size(self) -> int:
        return self.record.size

    @property
    def media_type(self) -> str:
        return self.record.media_type

    @property
    def name(self) -> str | None:
        return self.record.name


@dataclass(frozen=True, slots=True)
class CarriedPayload:
    """The side that travels: a signed manifest and its chunks, in order; no chunks if they are in the store."""

    manifest: SignedObject
    chunks: tuple[bytes, ...] = field(repr=False)


def seal_payload(
    payload: Payload, *, sender: SigningKey, recipients: Mapping[IdentityId, bytes], environment: Environment
) -> CarriedPayload:
    """Seal `payload` for exactly `recipients`, each with an inbox key of theirs that is valid now.

    Raises `InvalidError`: `too-large` above 16 MiB, `field` for a bad media type or name, `recipients` or `inbox-key`.
    """
    _check_size(payload)
    key = new_payload_key(environment)
    chunks = tuple(seal_chunks(payload.data, key))
    manifest = sealed_manifest(
        _content(payload),
        [content_id(chunk) for chunk in chunks],
        key=key,
        sender=sender,
        recipients=recipients,
        environment=environment,
    )
    return CarriedPayload(manifest, chunks)


def publish_payload(
    payload: Payload, *, sender: SigningKey, recipients: Iterable[IdentityId], environment: Environment
) -> CarriedPayload:
    """Carry `payload` in the clear. The recipients say whose inboxes it is for, not who can read it: everyone can."""
    _check_size(payload)
    chunks = tuple(piece for piece, _ in cut(payload.data, pad=False))
    manifest = public_manifest(
        _content(payload),
        [content_id(chunk) for chunk in chunks],
        sender=sender,
        recipients=recipients,
        environment=environment,
    )
    return CarriedPayload(manifest, chunks)


def open_payload(manifest: SignedObject, record: AccessRecord, chunks: Sequence[bytes]) -> Payload:
    """Put a payload together from its chunks, all of them and in order.

    Raises `InvalidError`: `too-large`, `chunk`, `payload-size`, `payload-padding` or `payload-hash`.
    """
    if record.size > MAX_PAYLOAD_IN_MEMORY:
        raise InvalidError("too-large", f"a payload of {record.size:,} bytes; at most {MAX_PAYLOAD_IN_MEMORY:,}")
    if tuple(content_id(chunk) for chunk in chunks) != payload_body(manifest).chunks:
        raise InvalidError("chunk", "the chunks are not those of the manifest", place=manifest.id.hex())
    last = len(chunks) - 1
    key = record.key
    check = PlaintextCheck(record)
    pieces = [
        check.take(chunk if key is None else open_chunk(chunk, key, number, is_last=number == last))
        for number, chunk in enumerate(chunks)
    ]
    check.finish()
    return Payload(b"".join(pieces), record.media_type, record.name)


def _check_size(payload: Payload) -> None:
    if len(payload.data) > MAX_PAYLOAD_IN_MEMORY:
        raise InvalidError(
            "too-large",
            f"a payload of {len(payload.data):,} bytes exceeds the {MAX_PAYLOAD_IN_MEMORY:,} that fit in memory here",
            cure="send it from a file",
        )


def _content(payload: Payload) -> Content:
    return Content(payload.media_type, payload.name, len(payload.data), content_id(payload.data))
