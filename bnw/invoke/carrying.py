"""Payloads of calls on their way: what fits in memory there, anything larger from and into files, chunk by chunk."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Final

import anyio

from bnw.blobs.fetcher import BlobFetcher, ignore_progress
from bnw.blobs.transfer import OnProgress
from bnw.identity.keys import IdentityId
from bnw.inbox.file_source import FileSource
from bnw.inbox.manifest import payload_body
from bnw.inbox.payload import CarriedPayload, Payload, PayloadFile, publish_payload, seal_payload
from bnw.inbox.sealing import OnSealed, Outgoing, publish_to_store, seal_to_store
from bnw.inbox.transfer import fetch_payload
from bnw.invoke.parts import CallParts
from bnw.objects.mail import PayloadManifest
from bnw.objects.signed import SignedObject
from bnw.transport.interface import PeerId
from bnw.wire.content_id import ContentId
from bnw.wire.errors import InvalidError, LocalError, RemoteError
from bnw.wire.limits import KIB, MAX_PAYLOAD_IN_MEMORY

logger = logging.getLogger(__name__)

FETCH_TIMEOUT: Final = 60.0
"""Seconds without a chunk after which whoever should have a payload is given up."""
SLOWEST_SOURCE: Final = 256 * KIB
"""Bytes a second. A payload that comes more slowly on the whole is given up too, or a trickle would hold a place in the
queue for as long as its sender likes."""


def ignore_sealed(done: int, total: int | None) -> None:
    """Wants to know nothing."""


async def participants(parts: CallParts, other: IdentityId) -> dict[IdentityId, bytes] | None:
    """Both sides' inbox keys; None if the other's is not known here."""
    theirs = await parts.catalog.inbox_key(other)
    if theirs is None:
        return None
    return {parts.key.identity: parts.inbox_keys()[-1].public, other: theirs}


async def carry(
    parts: CallParts,
    payload: Payload | PayloadFile,
    recipients: Mapping[IdentityId, bytes],
    *,
    public: bool = False,
    on_sealed: OnSealed = ignore_sealed,
) -> CarriedPayload:
    """Seal a payload for its recipients, or with `public` only address it to them. Chunks of a file go to the store.

    Raises as `seal_payload` does, and as `seal_to_store` does for a file.
    """
    key, environment = parts.key, parts.environment
    if isinstance(payload, Payload):
        if public:
            return publish_payload(payload, sender=key, recipients=recipients, environment=environment)
        return seal_payload(payload, sender=key, recipients=recipients, environment=environment)
    seal = publish_to_store if public else seal_to_store
    try:
        async with FileSource(payload.path, parts.offload) as source:
            manifest = await seal(
                Outgoing(source, payload.media_type, payload.name, payload.size),
                parts.store,
                sender=key,
                recipients=recipients,
                environment=environment,
                offload=parts.offload,
                on_progress=on_sealed,
            )
    except InvalidError as error:
        if error.code != "payload-size":
            raise
        raise InvalidError(
            error.code,
            f"the file changed while it was read: {error.cause}",
            place=str(payload.path),
            cure="call again when nobody writes to it",
        ) from error
    return CarriedPayload(manifest, ())


async def fetch_chunks(
    fetcher: BlobFetcher, carried: PayloadManifest, prefer: tuple[PeerId, ...], here: Mapping[ContentId, bytes]
) -> list[bytes]:
    """The chunks of a payload in memory: those that came along from `here`, or all from the network."""
    if all(id in here for id in carried.chunks):
        return [here[id] for id in carried.chunks]
    return await fetcher.fetch_all(carried.chunks, max_size=carried.largest_chunk, prefer=prefer, timeout=FETCH_TIMEOUT)


async def bring(
    parts: CallParts,
    manifest: SignedObject,
    prefer: tuple[PeerId, ...],
    on_progress: OnProgress = ignore_progress,
) -> None:
    """Return once all chunks of a payload are in the store. Raises as `fetch_payload` does."""
    size = payload_body(manifest).size
    try:
        with anyio.fail_after(FETCH_TIMEOUT + size / SLOWEST_SOURCE):
            await fetch_payload(parts.fetcher, manifest, prefer=prefer, timeout=FETCH_TIMEOUT, on_progress=on_progress)
    except TimeoutError:
        raise RemoteError(
            "too-slow",
            f"the payload came with less than {SLOWEST_SOURCE:,} bytes a second",
            place=manifest.id.hex(),
            cure="try again; what has come is kept for a while",
        ) from None


async def let_go(parts: CallParts, manifest: SignedObject) -> None:
    """Remove the chunks of a large sealed payload that has served its purpose; the collector takes what is left.

    Others may hold the same public chunks.
    """
    body = payload_body(manifest)
    if body.public is not None or body.size <= MAX_PAYLOAD_IN_MEMORY:
        return
    try:
        for chunk in body.chunks:
            await parts.store.delete_blob(chunk)
    except LocalError as error:
        # The call has come to its end all the same.
        logger.warning("chunks of %s stay in the store until it expires: %s", manifest.id.hex(), error)
