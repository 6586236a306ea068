"""Payload manifests: signed once the chunks are known, and read by a recipient before any chunk is here.

What a manifest says in the clear is who may open the payload and which chunks carry it. File name, media type, true
size and hash are in the access records alone. The true size decides how many bytes the chunks have, so a manifest whose
chunks have more or fewer is refused before one of them is fetched.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

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
from bnw.inbox.chunks import PAYLOAD_KEY_SIZE, carried_size
from bnw.objects.mail import CHUNK_OVERHEAD, PayloadManifest, SealedAccess
from bnw.objects.signed import SignedObject, sign_object
from bnw.wire.content_id import CONTENT_ID_SIZE, ContentId
from bnw.wire.environment import Environment
from bnw.wire.errors import InvalidError
from bnw.wire.limits import INBOX_OBJECT_LIFETIME, MAX_RECIPIENTS, PAYLOAD_CHUNK

_NO_HASH = bytes(CONTENT_ID_SIZE)


@dataclass(frozen=True, slots=True)
class Content:
    """What only recipients learn about a plaintext, besides the key."""

    media_type: str
    name: str | None
    size: int = 0
    hash: bytes = _NO_HASH

    def check(self) -> None:
        """Hold the sender to what readers accept, before anything is sealed. Raises `InvalidError`."""
        _access_record(self, None, _NO_HASH)


def sealed_manifest(
    content: Content,
    chunks: Sequence[ContentId],
    *,
    key: bytes,
    sender: SigningKey,
    recipients: Mapping[IdentityId, bytes],
    environment: Environment,
) -> SignedObject:
    """Sign for chunks that are sealed with `key`. `recipients` maps each to an inbox key of theirs that is valid now.

    Raises `InvalidError`: `recipients`, `inbox-key`, or the code of a bad `content`.
    """
    everyone = check_recipients(recipients)
    record = _access_record(content, key, binding_of(sender.identity, everyone, tuple(chunks)))
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
    return _sign(everyone, chunks, access, None, carried_size(content.size, sealed=True), sender, environment)


def public_manifest(
    content: Content,
    chunks: Sequence[ContentId],
    *,
    sender: SigningKey,
    recipients: Iterable[IdentityId],
    environment: Environment,
) -> SignedObject:
    """Sign for chunks that are in the clear. Raises `InvalidError` as `sealed_manifest` does."""
    everyone = check_recipients(recipients)
    record = _access_record(content, None, binding_of(sender.identity, everyone, tuple(chunks)))
    public = encode_access_record(record)
    return _sign(everyone, chunks, (), public, carried_size(content.size, sealed=False), sender, environment)


def check_recipients(recipients: Iterable[IdentityId]) -> tuple[IdentityId, ...]:
    """The recipients in the order of a manifest. Raises `InvalidError` (`recipients`) unless there are 1 to 16."""
    everyone = tuple(sorted(set(recipients)))
    if not 1 <= len(everyone) <= MAX_RECIPIENTS:
        raise InvalidError("recipients", f"{len(everyone)} recipients, where 1 to {MAX_RECIPIENTS} are allowed")
    return everyone


def new_payload_key(environment: Environment) -> bytes:
    return environment.random_bytes(PAYLOAD_KEY_SIZE)


def payload_body(manifest: SignedObject) -> PayloadManifest:
    """The body of a payload manifest. Raises `InvalidError` (`not-a-payload`) for another kind of object."""
    if not isinstance(manifest.body, PayloadManifest):
        raise InvalidError("not-a-payload", f"a payload is expected, not a {manifest.kind}", place=manifest.id.hex())
    return manifest.body


def chunk_sizes(manifest: PayloadManifest) -> list[int]:
    """Bytes of each chunk as it travels: all but the last are full."""
    full = PAYLOAD_CHUNK + (CHUNK_OVERHEAD if manifest.public is None else 0)
    before_last = len(manifest.chunks) - 1
    return [full] * before_last + [manifest.size - full * before_last]


def read_access(manifest: SignedObject, *, reader: IdentityId, inbox_keys: Sequence[InboxKey]) -> AccessRecord:
    """The access record that `reader` can open, checked against the manifest.

    Raises `InvalidError`: `not-a-payload`, `not-a-recipient`, `inbox-key-gone` (its private half is no longer here),
    `access-record`, or `payload-size` (the chunks have other bytes than a payload of the declared size).
    """
    body = payload_body(manifest)
    if body.public is not None:
        record = decode_access_record(body.public)
    else:
        record = _open_sealed_access(manifest, body, reader, inbox_keys)
    if record.binding != binding_of(manifest.signer, body.recipients, body.chunks):
        raise InvalidError("access-record", "the access record belongs to another payload", place=manifest.id.hex())
    if (record.key is None) != (body.public is not None):
        raise InvalidError("access-record", "the access record does not fit the payload's privacy")
    expected = carried_size(record.size, sealed=record.key is not None)
    if body.size != expected:
        raise InvalidError(
            "payload-size",
            f"the chunks have {body.size:,} bytes, where {expected:,} carry the {record.size:,} that are declared",
            place=manifest.id.hex(),
        )
    return record


def _open_sealed_access(
    manifest: SignedObject, body: PayloadManifest, reader: IdentityId, inbox_keys: Sequence[InboxKey]
) -> AccessRecord:
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
    return open_access_record(
        access.sealed, private=private, inbox_key=access.inbox_key, sender=manifest.signer, recipient=reader
    )


def _access_record(content: Content, key: bytes | None, binding: bytes) -> AccessRecord:
    record = AccessRecord(
        binding=binding,
        hash=content.hash,
        key=key,
        media_type=content.media_type,
        name=content.name,
        size=content.size,
    )
    return decode_access_record(encode_access_record(record))  # held to the reader's rules before it is sealed


def _sign(
    recipients: tuple[IdentityId, ...],
    chunks: Sequence[ContentId],
    access: tuple[SealedAccess, ...],
    public: bytes | None,
    size: int,
    sender: SigningKey,
    environment: Environment,
) -> SignedObject:
    now = environment.now_ms()
    body = PayloadManifest(
        created=now,
        expires=now + INBOX_OBJECT_LIFETIME,
        access=access,
        chunks=tuple(chunks),
        public=public,
        recipients=recipients,
        size=size,
    )
    return sign_object(body, sender)
