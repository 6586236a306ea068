"""Descriptors and what they link to: brought here, described by a plug-in, kept to be served (design section 12)."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field

from bnw.blobs.fetcher import BlobFetcher
from bnw.invoke.descriptors import Description, DescriptorPlugins
from bnw.objects.catalog import CapabilityManifest
from bnw.objects.signed import SignedObject
from bnw.store.interface import Store
from bnw.wire.content_id import ContentId
from bnw.wire.errors import LocalError, RemoteError
from bnw.wire.limits import MAX_DESCRIPTOR

logger = logging.getLogger(__name__)

MAX_LINKS = 16
"""Linked blobs of one descriptor that a node fetches."""
FETCH_TIMEOUT = 15.0


@dataclass(frozen=True, slots=True)
class LoadedDescriptor:
    """A descriptor with the linked blobs that could be had. `description` is None if no profile claims it."""

    data: bytes = field(repr=False)
    description: Description | None
    linked: Mapping[ContentId, bytes] = field(repr=False)
    missing: tuple[ContentId, ...]


class DescriptorLoader:
    def __init__(self, store: Store, fetcher: BlobFetcher, plugins: DescriptorPlugins) -> None:
        self._store = store
        self._fetcher = fetcher
        self._plugins = plugins

    async def load(self, manifest: SignedObject) -> LoadedDescriptor:
        """Bring a capability's descriptor and what it links to. Raises `RemoteError` if it cannot be had."""
        assert isinstance(manifest.body, CapabilityManifest)
        data = await self._fetcher.fetch(manifest.body.descriptor, max_size=MAX_DESCRIPTOR, timeout=FETCH_TIMEOUT)
        description = await self._plugins.describe(data)
        linked: dict[ContentId, bytes] = {}
        missing: list[ContentId] = []
        for id in description.links[:MAX_LINKS] if description is not None else ():
            try:
                linked[id] = await self._fetcher.fetch(id, max_size=MAX_DESCRIPTOR, timeout=FETCH_TIMEOUT)
            except RemoteError as error:
                logger.info("linked blob %s: %s", id.hex(), error)
                missing.append(id)
        return LoadedDescriptor(data, description, linked, tuple(missing))

    async def check_before_publishing(self, data: bytes) -> Description | None:
        """Refuse to publish a descriptor that its profile calls invalid, or whose linked blobs are not here.

        Raises `LocalError`: `too-large`, `invalid-descriptor` or `linked-blob-missing`.
        """
        if len(data) > MAX_DESCRIPTOR:
            raise LocalError("too-large", f"a descriptor of {len(data):,} bytes; at most {MAX_DESCRIPTOR:,}")
        description = await self._plugins.describe(data)
        if description is None:
            return None
        if description.errors:
            first = description.errors[0]
            raise LocalError(
                "invalid-descriptor",
                f"not a valid {description.profile}: {first.message}",
                place=first.pointer or "the whole document",
                cure=f"`bnw-profile validate` lists all {len(description.errors)} faults",
            )
        for id in description.links:
            if await self._store.blob_size(id) is None:
                raise LocalError(
                    "linked-blob-missing",
                    "the descriptor links to a blob that is not in this node's store",
                    place=id.hex(),
                    cure="add it first with `bnw blob add FILE`",
                )
        return description
