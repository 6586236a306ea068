"""Chunks of payloads beside the objects that name them: kept together, and if they are small, delivered together."""

from __future__ import annotations

from collections.abc import Iterable

import anyio

from bnw.inbox.delivery import MAX_ATTACHED, MAX_BLOBS_PER_DELIVERY
from bnw.objects.mail import PayloadManifest
from bnw.objects.signed import SignedObject
from bnw.store.interface import Store


async def attachable(store: Store, manifest: SignedObject) -> list[bytes]:
    """The chunks of a payload if they are small and here; else nothing."""
    body = manifest.body
    if not isinstance(body, PayloadManifest) or body.size > MAX_ATTACHED or len(body.chunks) > MAX_BLOBS_PER_DELIVERY:
        return []
    chunks = [await store.get_blob(id) for id in body.chunks]
    return [chunk for chunk in chunks if chunk is not None] if None not in chunks else []


async def keep_chunks(store: Store, chunks: Iterable[bytes]) -> None:
    """Put chunks into the store, in as few flushes as it can make of them. Raises `LocalError`."""
    try:
        async with anyio.create_task_group() as group:
            for chunk in chunks:
                group.start_soon(store.put_blob, chunk)
    except ExceptionGroup as errors:
        # Chunks that meet the same disk fail alike; one error is what callers are prepared for.
        raise errors.exceptions[0] from None
