"""Payloads: bytes sealed for exactly their recipients under a signed manifest, and opened again (design section 8).

A payload manifest says who may open it and which chunks carry it; file name, media type, true size and hash are in the
sealed access records alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from bnw.identity.inbox_keys import InboxKey
from bnw.identity.keys import IdentityId, SigningKey, did_key
from bnw.inbox.access import (
    AccessRecord,
    binding_of,
    decode_access_record,
    encode_access_record,
    open_access_record,
    seal_access_record,
)
from bnw.inbox.chunks import PAYLOAD_KEY_SIZE, open_chunk, seal_chunks
from bnw.objects.mail import PayloadManifest, SealedAccess
from bnw.objects.signed import SignedObject, sign_object
from bnw.wire.content_id import ContentId, content_id
from bnw.wire.environment import Environment
from bnw.wire.errors import InvalidError
from bnw.wire.limits import INBOX_OBJECT_LIFETIME, MAX_PAYLOAD_IN_MEMORY, PAYLOAD_CHUNK


@dataclass(frozen=True, slots=True)
class Payload:
    """The plain side of a payload."""

    data: bytes = field(repr=False)
    media_type: str
    name: str | None = None


@dataclass(frozen=True, slots=True)
class CarriedPayload:
    """The side that travels: a signed manifest and its chunks, in order."""

    manifest: SignedObject
    chunks: tuple[bytes, ...] = field(repr=False)


def seal_payload(
    payload: Payload, *, sender: SigningKey, recipients: Mapping[IdentityId, bytes], environment: Environment
) -> CarriedPayload:
    """Seal `payload` for exactly `recipients`, each with an inbox key of theirs that is valid now.

    Raises `InvalidError`: `too-large` above 16 MiB, `media-type`, `field` for a bad name, or `inbox-key`.
    """
    _check_size(payload)
    key = environment.random_bytes(PAYLOAD_KEY_SIZE)
    chunks = tuple(seal_chunks(payload.data, key))
    everyone = tuple(sorted(recipients))
    ids = tuple(content_id(chunk) for chunk in chunks)
    record = _access_record(payload, key, binding_of(sender.identity, everyone, ids))
    access = tuple(
        SealedAccess(
            recipients[recipient],
            seal_access_record(
                record,
                ephemeral=environment.random_bytes(32),
                inbox_key=recipients[recipient],
                sender=sender.identity,
                recipient=recipient,
            ),
        )
        for recipient in everyone
    )
    return _carried(everyone, chunks, ids, access, None, sender, environment)


def publish_payload(
    payload: Payload, *, sender: SigningKey, recipients: Iterable[IdentityId], environment: Environment
) -> CarriedPayload:
    """Carry `payload` in the clear. The recipients say whose inboxes it is for, not who can read it: everyone can."""
    _check_size(payload)
    data = payload.data or b"\0"  # a manifest has at least one chunk; the true size stands in the access record
    chunks = tuple(data[start : start + PAYLOAD_CHUNK] for start in range(0, len(data), PAYLOAD_CHUNK))
    everyone = tuple(sorted(recipients))
    ids = tuple(content_id(chunk) for chunk in chunks)
    record = _access_record(payload, None, binding_of(sender.identity, everyone, ids))
    return _carried(everyone, chunks, ids, (), encode_access_record(record), sender, environment)


def read_access(manifest: SignedObject, *, reader: IdentityId, inbox_keys: Sequence[InboxKey]) -> AccessRecord:
    """The access record that `reader` can open, checked against the manifest.

    Raises `InvalidError`: `not-a-recipient`, `inbox-key-gone` (its private half is no longer here), `access-record`.
    """
    body = manifest.body
    assert isinstance(body, PayloadManifest)
    if body.public is not None:
        record = decode_access_record(body.public)
    else:
        if reader not in body.recipients:
            raise InvalidError("not-a-recipient", f"{did_key(reader)} is not among the recipients")
        access = body.access[body.recipients.index(reader)]
        private = next((key.private for key in inbox_keys if key.public == access.inbox_key), None)
        if private is None:
            raise InvalidError(
                "inbox-key-gone",
                "the payload is sealed to an inbox key whose private half is no longer here",
                place=manifest.id.hex(),
                cure="ask the sender to send it again; it will use your current key",
            )
        record = open_access_record(
            access.sealed,
            private=private,
            inbox_key=access.inbox_key,
            sender=manifest.signer,
            recipient=reader,
        )
    if record.binding != binding_of(manifest.signer, body.recipients, body.chunks):
        raise InvalidError("access-record", "the access record belongs to another payload", place=manifest.id.hex())
    if (record.key is None) != (body.public is not None):
        raise InvalidError("access-record", "the access record does not fit the payload's privacy")
    return record


def open_payload(manifest: SignedObject, record: AccessRecord, chunks: Sequence[bytes]) -> Payload:
    """Put a payload together from its chunks, all of them and in order.

    Raises `InvalidError`: `too-large`, `chunk`, `payload-size`, `payload-padding` or `payload-hash`.
    """
    body = manifest.body
    assert isinstance(body, PayloadManifest)
    if record.size > MAX_PAYLOAD_IN_MEMORY:
        raise InvalidError("too-large", f"a payload of {record.size:,} bytes; at most {MAX_PAYLOAD_IN_MEMORY:,}")
    if tuple(content_id(chunk) for chunk in chunks) != body.chunks:
        raise InvalidError("chunk", "the chunks are not those of the manifest", place=manifest.id.hex())
    last = len(chunks) - 1
    key = record.key
    pieces = (
        chunks
        if key is None
        else [open_chunk(chunk, key, number, is_last=number == last) for number, chunk in enumerate(chunks)]
    )
    padded = b"".join(pieces)
    data, padding = padded[: record.size], padded[record.size :]
    if len(data) != record.size:
        raise InvalidError("payload-size", f"{len(padded):,} bytes arrived where {record.size:,} were declared")
    if padding.strip(b"\0"):
        raise InvalidError("payload-padding", "the padding holds something")
    if content_id(data) != record.hash:
        raise InvalidError("payload-hash", "the bytes do not have the hash that the sender declared")
    return Payload(data, record.media_type, record.name)


def _check_size(payload: Payload) -> None:
    if len(payload.data) > MAX_PAYLOAD_IN_MEMORY:
        raise InvalidError(
            "too-large",
            f"a payload of {len(payload.data):,} bytes exceeds the {MAX_PAYLOAD_IN_MEMORY:,} that are possible now",
        )


def _access_record(payload: Payload, key: bytes | None, binding: bytes) -> AccessRecord:
    record = AccessRecord(
        binding=binding,
        hash=content_id(payload.data),
        key=key,
        media_type=payload.media_type,
        name=payload.name,
        size=len(payload.data),
    )
    return decode_access_record(encode_access_record(record))  # held to the reader's rules before it is sealed


def _carried(
    recipients: tuple[IdentityId, ...],
    chunks: tuple[bytes, ...],
    ids: tuple[ContentId, ...],
    access: tuple[SealedAccess, ...],
    public: bytes | None,
    sender: SigningKey,
    environment: Environment,
) -> CarriedPayload:
    now = environment.now_ms()
    body = PayloadManifest(
        created=now,
        expires=now + INBOX_OBJECT_LIFETIME,
        access=access,
        chunks=ids,
        public=public,
        recipients=recipients,
        size=sum(len(chunk) for chunk in chunks),
    )
    return CarriedPayload(sign_object(body, sender), chunks)
