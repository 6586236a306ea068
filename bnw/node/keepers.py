"""The reasons for which the parts of a node need blobs (`bnw.node.keeping`)."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable
from typing import Final

from bnw.blobs.fetcher import BlobFetcher
from bnw.identity.keys import IdentityId, did_key
from bnw.invoke.asked import AskedCalls
from bnw.invoke.descriptors import DescriptorPlugins
from bnw.invoke.provision import Provision
from bnw.invoke.resolve import Catalog
from bnw.node.follow_records import FollowRecords
from bnw.node.keeping import Keeper
from bnw.objects.catalog import CapabilityManifest
from bnw.objects.mail import PayloadManifest
from bnw.objects.signed import SignedObject, trusted_object
from bnw.store.interface import Store
from bnw.wire.content_id import ContentId
from bnw.wire.environment import Environment
from bnw.wire.errors import LocalError

PINS: Final = "pinned-blobs"
PAGE: Final = 1000


class Keepers:
    def __init__(
        self,
        *,
        store: Store,
        environment: Environment,
        catalog: Catalog,
        plugins: DescriptorPlugins,
        fetcher: BlobFetcher,
        asked: AskedCalls,
        identity: IdentityId,
        provisions: Callable[[], Iterable[Provision]],
    ) -> None:
        self._store = store
        self._environment = environment
        self._catalog = catalog
        self._plugins = plugins
        self._fetcher = fetcher
        self._asked = asked
        self._identity = identity
        self._provisions = provisions

    def all(self) -> list[Keeper]:
        return [
            self._pinned,
            self._published,
            self._followed,
            self._provided,
            self._called,
            self._payloads,
            self._fetched,
        ]

    async def pin(self, id: ContentId) -> None:
        """Keep a blob until `unpin`. Raises `LocalError` (`blob-missing`) if it is not here."""
        if await self._store.blob_size(id) is None:
            raise LocalError("blob-missing", "there is no such blob here", place=id.hex(), cure="add or fetch it first")
        await self._store.put_record(PINS, id, b"")

    async def unpin(self, id: ContentId) -> bool:
        """Keep a blob no longer for this reason; False if it was not pinned."""
        return await self._store.delete_record(PINS, id)

    async def _pinned(self) -> AsyncIterator[tuple[ContentId, str]]:
        after: bytes | None = None
        while page := await self._store.list_records(PINS, after=after, limit=PAGE):
            for key, _ in page:
                yield ContentId(key), "added by hand; `bnw blob unpin` ends that"
            after = page[-1][0]

    async def _published(self) -> AsyncIterator[tuple[ContentId, str]]:
        for manifest in await self._catalog.all(CapabilityManifest, signer=self._identity):
            assert isinstance(manifest.body, CapabilityManifest)
            async for id in self._with_links(manifest.body.descriptor):
                yield id, f"this identity publishes {manifest.body.name} with it"

    async def _followed(self) -> AsyncIterator[tuple[ContentId, str]]:
        for id in await FollowRecords(self._store).pinned():
            yield id, "it belongs to something that is followed"

    async def _provided(self) -> AsyncIterator[tuple[ContentId, str]]:
        for provision in self._provisions():
            assert isinstance(provision.manifest.body, CapabilityManifest)
            reason = f"this node provides {provision.manifest.body.name}"
            for id in (provision.manifest.body.descriptor, *provision.schemas):
                yield id, reason

    async def _called(self) -> AsyncIterator[tuple[ContentId, str]]:
        for id, call in await self._asked.all():
            manifest = trusted_object(call.manifest)
            assert isinstance(manifest.body, CapabilityManifest)
            reason = f"call {id.hex()[:16]} is remembered"
            async for blob in self._with_links(manifest.body.descriptor):
                yield blob, reason
            for payload in (call.input, call.output):
                carried = None if payload is None else trusted_object(payload).body
                for chunk in carried.chunks if isinstance(carried, PayloadManifest) else ():
                    yield chunk, reason

    async def _payloads(self) -> AsyncIterator[tuple[ContentId, str]]:
        after: ContentId | None = None
        now = self._environment.now_ms()
        while page := await self._list_manifests(now, after):
            for manifest in page:
                assert isinstance(manifest.body, PayloadManifest)
                reason = f"a chunk of payload {manifest.id.hex()[:16]} by {did_key(manifest.signer)}"
                for chunk in manifest.body.chunks:
                    yield chunk, reason
            after = page[-1].id

    async def _list_manifests(self, now: int, after: ContentId | None) -> list[SignedObject]:
        return await self._store.list_objects(kind=PayloadManifest.KIND, now=now, after=after, limit=PAGE)

    async def _fetched(self) -> AsyncIterator[tuple[ContentId, str]]:
        for id in self._fetcher.wanted():
            yield id, "it belongs to what is being fetched now"

    async def _with_links(self, descriptor: ContentId) -> AsyncIterator[ContentId]:
        """A descriptor, and what it links to, if it is here and a profile reads it."""
        yield descriptor
        data = await self._store.get_blob(descriptor)
        description = None if data is None else await self._plugins.describe(data)
        for id in () if description is None else description.links:
            yield id
