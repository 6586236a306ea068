"""Descriptors and what they link to: brought here, described by a plug-in, kept to be served (design section 12)."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Protocol

from bnw.blobs.fetcher import BlobFetcher
from bnw.invoke.descriptors import Description, DescriptorPlugins
from bnw.objects.catalog import CapabilityManifest
from bnw.objects.signed import SignedObject
from bnw.store.interface import Store
from bnw.transport.interface import PeerId
from bnw.wire.content_id import ContentId
from bnw.wire.errors import BnwError, LocalError, RemoteError
from bnw.wire.limits import MAX_DESCRIPTOR

logger = logging.getLogger(__name__)

MAX_LINKS = 16
"""Linked blobs of one descriptor. More cannot be published here, and a node fetches no more of anybody's."""
FETCH_TIMEOUT = 15.0

OnLinks = Callable[[Sequence[ContentId]], Awaitable[None]]
"""Told of the blobs that a descriptor links to, before they are fetched."""


class Reached(Protocol):
    """Somebody who provides a capability, and is connected."""

    @property
    def peer(self) -> PeerId | None: ...


Reach = Callable[[SignedObject], Awaitable[Reached]]
"""Connects to somebody who provides a capability; raises `BnwError` if nobody can be reached."""


async def _tell_nobody(links: Sequence[ContentId]) -> None:
    return None


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

    async def bring(
        self, manifest: SignedObject, reach: Reach, *, on_links: OnLinks = _tell_nobody
    ) -> LoadedDescriptor:
        """Like `load`, and if no neighbour has all of it, from whoever provides the capability, who must."""
        try:
            loaded = await self.load(manifest, on_links=on_links)
        except RemoteError:
            provider = await _reached(manifest, reach)
            if not provider:
                raise
            return await self.load(manifest, prefer=provider, on_links=on_links)
        if loaded.missing and (provider := await _reached(manifest, reach)):
            return await self.load(manifest, prefer=provider, on_links=on_links)
        return loaded

    async def load(
        self, manifest: SignedObject, *, prefer: Sequence[PeerId] = (), on_links: OnLinks = _tell_nobody
    ) -> LoadedDescriptor:
        """Bring a capability's descriptor and what it links to, from `prefer`red peers first.

        Raises `RemoteError` if it cannot be had.
        """
        assert isinstance(manifest.body, CapabilityManifest)
        fetch = partial(self._fetcher.fetch, max_size=MAX_DESCRIPTOR, prefer=prefer, timeout=FETCH_TIMEOUT)
        data = await fetch(manifest.body.descriptor)
        description = await self._plugins.describe(data)
        linked: dict[ContentId, bytes] = {}
        missing: list[ContentId] = []
        links = () if description is None else tuple(dict.fromkeys(description.links))[:MAX_LINKS]
        await on_links(links)
        for id in links:
            try:
                linked[id] = await fetch(id)
            except RemoteError as error:
                logger.info("linked blob %s: %s", id.hex(), error)
                missing.append(id)
        return LoadedDescriptor(data, description, linked, tuple(missing))

    async def check_before_publishing(self, data: bytes) -> Description | None:
        """Refuse to publish a descriptor that its profile calls invalid, or whose linked blobs are not here.

        Raises `LocalError`: `too-large` (also for a linked blob), `invalid-descriptor`, `too-many-links` or
        `linked-blob-missing`.
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
        links = tuple(dict.fromkeys(description.links))
        if len(links) > MAX_LINKS:
            raise LocalError("too-many-links", f"the descriptor links to {len(links)} blobs; at most {MAX_LINKS}")
        for id in links:
            size = await self._store.blob_size(id)
            if size is not None and size > MAX_DESCRIPTOR:
                cause = f"a linked blob of {size:,} bytes; nodes fetch at most {MAX_DESCRIPTOR:,} of one"
                raise LocalError("too-large", cause, place=id.hex())
            if size is None:
                raise LocalError(
                    "linked-blob-missing",
                    "the descriptor links to a blob that is not in this node's store",
                    place=id.hex(),
                    cure="add it first with `bnw blob add FILE`",
                )
        return description


async def _reached(manifest: SignedObject, reach: Reach) -> tuple[PeerId, ...]:
    try:
        peer = (await reach(manifest)).peer
    except BnwError as error:
        logger.info("nobody who provides %s: %s", manifest.id.hex(), error)
        return ()
    return () if peer is None else (peer,)
