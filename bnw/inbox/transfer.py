"""Brings the chunks of a payload into the store, from whoever has them."""

from __future__ import annotations

from collections.abc import Sequence

from bnw.blobs.fetcher import PATIENCE, BlobFetcher, ignore_progress
from bnw.blobs.sources import Wanted
from bnw.blobs.transfer import OnProgress
from bnw.inbox.manifest import chunk_sizes, payload_body
from bnw.objects.mail import PayloadManifest
from bnw.objects.signed import SignedObject
from bnw.store.interface import Store
from bnw.transport.interface import PeerId
from bnw.wire.content_id import ContentId
from bnw.wire.errors import LocalError


async def fetch_payload(
    fetcher: BlobFetcher,
    manifest: SignedObject,
    *,
    prefer: Sequence[PeerId] = (),
    timeout: float = PATIENCE,
    on_progress: OnProgress = ignore_progress,
) -> None:
    """Return once all chunks are durable here. Progress counts bytes as they travel.

    Interrupted in any way, by a crash of either side too, it goes on from the chunks that are here when it is called
    again; from one source at most one chunk is fetched twice. A chunk of another size than the manifest says is not
    even received. Raises as `BlobFetcher.fetch_to_store`.
    """
    wanted = wanted_chunks(payload_body(manifest))
    await fetcher.fetch_to_store(wanted, prefer=prefer, timeout=timeout, on_progress=on_progress)


def wanted_chunks(manifest: PayloadManifest) -> list[Wanted]:
    """The chunks, each with its exact size."""
    sizes = zip(manifest.chunks, chunk_sizes(manifest), strict=True)
    return [Wanted(id, most=size, least=size) for id, size in sizes]


async def stored_chunks(store: Store, manifest: SignedObject) -> list[bytes]:
    """All chunks in memory, for payloads that may be. Raises `LocalError` (`chunk-missing`)."""
    return [await stored_chunk(store, id) for id in payload_body(manifest).chunks]


async def stored_chunk(store: Store, id: ContentId) -> bytes:
    """A chunk that should be here. Raises `LocalError` (`chunk-missing`)."""
    data = await store.get_blob(id)
    if data is None:
        raise LocalError(
            "chunk-missing",
            "a chunk of the payload is not in the store",
            place=id.hex(),
            cure="fetch the payload again",
        )
    return data
