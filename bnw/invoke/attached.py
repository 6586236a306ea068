"""Small payloads travel with the objects that name them, so that nobody has to fetch them one by one."""

from __future__ import annotations

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
