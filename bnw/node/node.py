"""The embedding API: one node, given its keys, store, transport, plug-ins and environment.

    async with Node(keys=..., store=..., transport=..., plugins=..., environment=...).running() as node:
        manifest = await node.publish("finance/lookup", descriptor)
        result = await node.invoke("finance/lookup", Payload(b"...", "application/json"))

`bnw.node.opening.open_node` builds one from a home directory with real parts; the simulator from simulated ones.
"""

from __future__ import annotations

import itertools
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from typing import TypeVar

import anyio

from bnw.blobs.fetcher import BlobFetcher
from bnw.blobs.offload import Offload, inline
from bnw.blobs.server import BlobServer
from bnw.gossip.catalog_gossip import CatalogGossip
from bnw.identity.keys import IdentityId, parse_did_key
from bnw.inbox.delivery import Courier
from bnw.inbox.payload import Payload, PayloadFile
from bnw.inbox.post import Post
from bnw.invoke.authority.book import DelegationBook
from bnw.invoke.descriptors import DescriptorPlugins, OpaqueDescriptors
from bnw.invoke.handlers import Function, Handler
from bnw.invoke.mail_desk import MailDesk
from bnw.invoke.parts import CallParts
from bnw.invoke.policy import CallPolicy
from bnw.invoke.provider import CallReport, Provider
from bnw.invoke.requester import DEFAULT_DEADLINE, CallResult, OnStep, Requester
from bnw.invoke.resolve import Catalog
from bnw.invoke.workspace import Workspace
from bnw.node.authority import DelegationDesk
from bnw.node.calling import Caller, CallOptions
from bnw.node.configuration import Configuration
from bnw.node.descriptors import DescriptorLoader
from bnw.node.followed import FollowView
from bnw.node.following import Following
from bnw.node.keepers import Keepers
from bnw.node.keeping import BlobKeeping
from bnw.node.keyring import KeyRing
from bnw.node.mail import NodeMail, mailbox_at
from bnw.node.news import News
from bnw.node.peering import PeerKeeper
from bnw.node.providing import prepare_provision
from bnw.node.publishing import Publisher
from bnw.node.spreading import (
    LEAVING_LOOK_BACK,
    LEAVING_PATIENCE,
    SPREADING_PATIENCE,
    peers_without,
    said_since,
)
from bnw.node.views import CallEnded, CapabilityView, CatalogEntry, CatalogNews, NodeEvent, NodeStatus
from bnw.objects.catalog import PROVIDE_PUBLISHER, CapabilityManifest
from bnw.objects.rules import CATALOG
from bnw.objects.signed import SignedObject
from bnw.store.interface import Store
from bnw.sync.checking import Verify, verify_here
from bnw.sync.scheduler import SyncScheduler
from bnw.transport.feed import EventFeed
from bnw.transport.interface import PeerId, Transport
from bnw.transport.tasks import background_tasks
from bnw.wire.content_id import ContentId
from bnw.wire.environment import Environment
from bnw.wire.errors import LocalError
from bnw.wire.limits import MAX_PAYLOAD_IN_MEMORY
from bnw.wire.names import check_name

logger = logging.getLogger(__name__)

MAINTENANCE_PERIOD = 60.0
"""Seconds between looks for what to renew and what has expired."""
COLLECT_EVERY = 10
"""Such looks after which blobs that nothing needs are collected."""
DEFAULT_PATIENCE = 5.0
"""Seconds that a node waits to hear of a capability, an offer or a key before it says that there is none."""

T = TypeVar("T")


class Node:
    """See the module docstring. All times are milliseconds since the Unix epoch unless a name says seconds."""

    def __init__(
        self,
        *,
        keys: KeyRing,
        store: Store,
        transport: Transport,
        environment: Environment,
        configuration: Configuration | None = None,
        plugins: DescriptorPlugins | None = None,
        verify: Verify = verify_here,
        offload: Offload = inline,
        workspace: Workspace | None = None,
    ) -> None:
        """`verify` says where signatures of many objects are checked, `offload` where payloads are sealed and opened:
        threads are faster, and none are simulated. Without a `workspace` calls carry no more than fits in memory.
        """
        self._keys = keys
        self._store = store
        self._transport = transport
        self._environment = environment
        self._configuration = configuration or Configuration()
        self._plugins: DescriptorPlugins = plugins or OpaqueDescriptors()
        self._started = environment.now_ms()
        self._news = News()
        self._feed: EventFeed[NodeEvent] = EventFeed()

        self.catalog = Catalog(store, environment)
        self._fetcher = BlobFetcher(transport, store)
        self._descriptors = DescriptorLoader(store, self._fetcher, self._plugins)
        self._sync = SyncScheduler(transport, store, environment, on_news=self._take_news, verify=verify)
        self._gossip = CatalogGossip(
            transport, store, environment, network=self._configuration.network, on_news=self._take_gossip
        )
        self._peering = PeerKeeper(transport, environment, (*self._configuration.peers, *self._configuration.mailboxes))
        self._publisher = Publisher(
            key=keys.signing_key,
            inbox_keys=keys.inbox_keys,
            endpoints=lambda: transport.addresses,
            store=store,
            catalog=self.catalog,
            gossip=self._gossip,
            environment=environment,
            on_change=self._catalog_changed,
            mailboxes=[mailbox_at(address) for address in self._configuration.mailboxes],
        )
        parts = CallParts(
            key=keys.signing_key,
            inbox_keys=keys.inbox_keys,
            catalog=self.catalog,
            store=store,
            transport=transport,
            fetcher=self._fetcher,
            plugins=self._plugins,
            environment=environment,
            courier=Courier(transport),
            post=Post(transport, self.catalog.identity_record),
            book=DelegationBook(store, self.catalog, environment),
            offload=offload,
            workspace=workspace,
        )
        self._book = parts.book
        self._provider = Provider(parts, on_call=self._report_call)
        self._requester = Requester(parts)
        self._caller = Caller(self._requester, self.catalog, self._descriptors)
        self._desk = MailDesk(self._provider, self._requester)
        self.mail = NodeMail(
            key=keys.signing_key,
            inbox_keys=keys.inbox_keys,
            catalog=self.catalog,
            store=store,
            transport=transport,
            fetcher=self._fetcher,
            courier=parts.courier,
            environment=environment,
            desk=self._desk,
            provides=lambda capability: capability in self._provider.provisions,
            mailboxes=self._configuration.mailboxes,
            verify=verify,
        )
        self._provider.may_come_by_mail = self.mail.may_still_hand_on
        self.keepers = Keepers(
            store=store,
            environment=environment,
            catalog=self.catalog,
            plugins=self._plugins,
            fetcher=self._fetcher,
            asked=self._requester.records,
            identity=keys.identity,
            provisions=self._provider.provisions.values,
        )
        self.keeping = BlobKeeping(store, environment, self.keepers.all())
        self.authority = DelegationDesk(
            key=keys.signing_key,
            store=store,
            catalog=self.catalog,
            book=parts.book,
            environment=environment,
            say=self._publisher.say,
        )
        self._following = Following(
            store=store,
            transport=transport,
            catalog=self.catalog,
            environment=environment,
            identity=keys.identity,
            bring=partial(self._descriptors.bring, reach=self._requester.reach_provider),
        )
        BlobServer(transport, store)

    @property
    def identity(self) -> IdentityId:
        return self._keys.identity

    @property
    def environment(self) -> Environment:
        return self._environment

    @asynccontextmanager
    async def running(self) -> AsyncIterator[Node]:
        """Run the node's background work while the body runs. Offers are taken back at the end."""
        await self._keys.rotate()
        await self._following.load()
        await self.mail.load()
        await self._gossip.start()
        async with background_tasks() as tasks:
            tasks.start_soon(self._sync.run)
            tasks.start_soon(self._peering.run)
            tasks.start_soon(self._following.run)
            tasks.start_soon(self.mail.run)
            await self._publisher.renew()
            tasks.start_soon(self._provider.run)
            tasks.start_soon(self._maintain)
            try:
                yield self
            finally:
                with anyio.CancelScope(shield=True), anyio.move_on_after(3):
                    if not self.mail.used:  # or calls may go on coming, by mail
                        for capability in list(self._provider.provisions):
                            await self.stop_providing(capability)
                self._feed.close()

    # Publishing and providing

    async def publish(self, name: str, descriptor: bytes, *, provide: str = PROVIDE_PUBLISHER) -> SignedObject:
        """Publish `descriptor` under `name`; returns the manifest. Publishing the same again changes nothing.

        Raises `InvalidError` (`name`) or `LocalError`: those of `DescriptorLoader.check_before_publishing`, the
        store's, or `not-published`.
        """
        check_name(name, "capability name")
        await self._descriptors.check_before_publishing(descriptor)
        return await self._publisher.publish(name, await self._store.put_blob(descriptor), provide)

    async def withdraw(self, name: str) -> SignedObject:
        """Withdraw a capability that this identity publishes. Raises `LocalError` (`unknown-capability`)."""
        return await self._publisher.withdraw(name)

    async def provide(
        self,
        reference: str,
        handler: Handler | Function,
        *,
        policy: CallPolicy | Callable[[], CallPolicy] | None = None,
        idempotent: bool = False,
    ) -> SignedObject:
        """Answer calls of a capability with `handler`; returns the offer. The default policy lets nobody call.

        `handler` is a callable, asynchronous or not, or one of `bnw.invoke.handlers`. A `policy` that is a function is
        asked at every call, so that it can change.

        Raises `LocalError`: `unknown-capability`, `already-provided`, `may-not-provide` or `invalid-descriptor`;
        `RemoteError` if the descriptor or a blob it links to cannot be had.
        """
        manifest = await self._patiently(lambda: self.catalog.find(reference), DEFAULT_PATIENCE)
        if manifest.id in self._provider.provisions:
            raise LocalError(
                "already-provided",
                "this node answers calls of the capability already",
                place=reference,
                cure="stop the other `bnw provide` first",
            )
        provision = await prepare_provision(
            manifest,
            reference,
            handler,
            identity=self.identity,
            catalog=self.catalog,
            descriptors=self._descriptors,
            policy=policy,
            idempotent=idempotent,
        )
        self._provider.provide(provision)
        return await self._publisher.offer(manifest.id)

    def report_progress(self, call: ContentId, stage: str, fraction: float | None, note: str | None) -> None:
        """Report on a call from outside of its handler. Raises `LocalError` (`unknown-call`), `InvalidError`."""
        self._provider.report_progress(call, stage, fraction, note)

    async def stop_providing(self, capability: ContentId) -> None:
        """Answer no further calls, and say so to the network."""
        self._provider.stop_providing(capability)
        await self._publisher.offer(capability, available=False)

    # Looking and calling

    async def entries(self) -> list[CatalogEntry]:
        """The catalog: every capability published now, ordered by name and publisher."""
        manifests = await self.catalog.all(CapabilityManifest)
        entries = [CatalogEntry(manifest, len(await self.catalog.offers(manifest))) for manifest in manifests]
        return sorted(entries, key=lambda entry: (entry.body.name, entry.manifest.signer))

    async def find(self, reference: str, *, patience: float = DEFAULT_PATIENCE) -> SignedObject:
        """The manifest that `reference` means. Raises `LocalError` (`unknown-capability`, `ambiguous-capability`)."""
        return await self._patiently(lambda: self.catalog.find(reference), patience)

    async def inspect(self, reference: str, *, patience: float = DEFAULT_PATIENCE) -> CapabilityView:
        """Everything about one capability. Raises `LocalError` (`unknown-capability`), `RemoteError`."""
        manifest = await self._patiently(lambda: self.catalog.find(reference), patience)
        loaded = await self._descriptors.bring(manifest, self._requester.reach_provider)
        return CapabilityView(
            manifest=manifest,
            offers=tuple(await self.catalog.offers(manifest)),
            descriptor=loaded.data,
            description=loaded.description,
            schemas=loaded.linked,
            missing=loaded.missing,
            input_template=await self._plugins.starter(loaded.data, loaded.linked),
        )

    async def follow(self, reference: str, *, patience: float = DEFAULT_PATIENCE) -> FollowView:
        """Keep and serve the content of a capability, or of all that an identity (a did:key) publishes, from now on.

        Later versions of it are followed too. Waits up to `patience` seconds for the content, and goes on in the
        background. Raises as `Following.follow` does, and `unknown-capability`; `InvalidError` for a broken did:key.
        """
        if reference.startswith("did:key:") and "/" not in reference:
            return await self._following.follow(parse_did_key(reference), None, patience=patience)
        manifest = await self._patiently(lambda: self.catalog.find(reference), patience)
        assert isinstance(manifest.body, CapabilityManifest)
        return await self._following.follow(manifest.signer, manifest.body.name, patience=patience)

    async def unfollow(self, reference: str) -> FollowView:
        """Follow it no longer. Raises as `Following.unfollow` does."""
        return await self._following.unfollow(reference)

    def follows(self) -> list[FollowView]:
        """All that is followed and how far it is, ordered by publisher and name."""
        return self._following.views()

    async def invoke(
        self,
        reference: str,
        payload: Payload | PayloadFile,
        *,
        public: bool = False,
        provider: IdentityId | None = None,
        deadline_in: int = DEFAULT_DEADLINE,
        inactivity: int | None = None,
        any_order: bool = False,
        max_output: int = MAX_PAYLOAD_IN_MEMORY,
        patience: float = DEFAULT_PATIENCE,
        on_step: OnStep = lambda step, details: None,
    ) -> CallResult:
        """Call a capability and return its verified end. Raises as `Requester.call` does, and `unknown-capability`.

        `patience` is how many seconds to wait for a capability, offer or key that has not been heard of yet. Of several
        providers the next is asked only when the one before has signed that it did not run the call; with `any_order`
        also when nobody knows.
        """
        options = CallOptions(public, provider, deadline_in, inactivity, any_order, max_output)
        # Nothing is signed or sent before everything is known, so trying again cannot call twice.
        return await self._patiently(lambda: self._caller.invoke(reference, payload, options, on_step), patience)

    @property
    def calls(self) -> Caller:
        """The calls that this node has made: found, waited for, cancelled, proved."""
        return self._caller

    # Blobs, peers, status

    async def add_blob(self, data: bytes) -> ContentId:
        """Keep a blob, pinned, and serve it to whoever asks for its id.

        Raises `InvalidError` (`too-large`) above 16 MiB.
        """
        id = await self._store.put_blob(data)
        await self.keepers.pin(id)
        return id

    async def blob_size(self, id: ContentId) -> int | None:
        """Bytes of a blob that is here; None if it is not."""
        return await self._store.blob_size(id)

    async def get_blob(self, id: ContentId) -> bytes:
        """A blob from the store or a connected peer. Raises `RemoteError` (`blob-not-found`)."""
        return await self._fetcher.fetch(id)

    async def connect(self, address: str) -> PeerId:
        """Connect to a peer. Raises `LocalError` (`address`) or `RemoteError` (`unreachable`)."""
        return await self._transport.dial(address)

    async def settle(self, on_step: OnStep = lambda step, details: None) -> None:
        """Return once the configured peers have been dialled and asked for their catalogs, with or without success."""
        known = {*self._configuration.peers, *self._configuration.mailboxes}
        if known:
            on_step("dialling", {"peers": str(len(known))})
        await self._peering.wait_until_tried()
        if self._transport.peers():
            on_step("asking", {"peers": str(len(self._transport.peers()))})
        await self._sync.wait_for_first_pulls()

    async def spread(
        self, on_step: OnStep = lambda step, details: None, *, patience: float = SPREADING_PATIENCE
    ) -> tuple[PeerId, ...]:
        """Wait until all connected peers hold what this identity has said since the node started.

        Returns those that do not after `patience` seconds. For a node that is about to end: one that goes on tells
        them anyway.
        """
        said = await said_since(self.catalog, self.identity, self._started)
        if said and self._transport.peers():
            on_step("spreading", {"peers": str(len(self._transport.peers()))})
        return await peers_without(self._transport, said, patience=patience)

    async def leave(self) -> None:
        """Take back all offers and see to it that the connected peers know. For a node that is about to end.

        What was sent last may be lost with the connection, and an offer that nobody stands behind costs others a
        failed call. So this waits, for `LEAVING_PATIENCE` seconds at most, until the peers hold what is new.
        """
        recently = self._environment.now_ms() - LEAVING_LOOK_BACK
        try:
            if not self.mail.used:  # or calls may go on coming, by mail
                for capability in list(self._provider.provisions):
                    await self.stop_providing(capability)
            said = await said_since(self.catalog, self.identity, recently)
            await peers_without(self._transport, said, patience=LEAVING_PATIENCE)
        except LocalError as error:
            logger.error("offers could not be taken back: %s", error)

    async def status(self) -> NodeStatus:
        summary = await self._store.scope_summary(CATALOG, now=self._environment.now_ms())
        return NodeStatus(
            identity=self.identity,
            peer=self._transport.peer_id,
            network=self._configuration.network,
            addresses=self._transport.addresses,
            peers=self._transport.peers(),
            unreachable=dict(self._peering.problems),
            catalog_objects=summary.count,
            store=await self._store.statistics(),
            providing=tuple(sorted(self._provider.provisions)),
            started=self._started,
        )

    def events(self) -> AbstractAsyncContextManager[AsyncIterator[NodeEvent]]:
        """What happens from now on. A reader that falls behind loses the oldest."""
        return self._feed.open()

    # Inner workings

    async def _patiently(self, attempt: Callable[[], Awaitable[T]], patience: float) -> T:
        return await self._news.patiently(attempt, patience, ask=self._sync.pull_soon)

    def _take_gossip(self, obj: SignedObject) -> None:
        self._take_news(obj)
        self._sync.catalog_changed()

    def _take_news(self, obj: SignedObject) -> None:
        logger.info("new %s %s", obj.kind, obj.id.hex())
        self._feed.put(CatalogNews(obj.kind, obj.id, obj.signer))
        self._following.take_news(obj)
        self._news.tell()

    def _catalog_changed(self) -> None:
        self._sync.catalog_changed()
        self._news.tell()

    def _report_call(self, report: CallReport) -> None:
        self._feed.put(CallEnded(report.invocation, report.requester, report.capability, report.status, report.code))

    async def _maintain(self) -> None:
        for round_number in itertools.count(1):
            await anyio.sleep(MAINTENANCE_PERIOD)
            now = self._environment.now_ms()
            try:
                await self._keys.rotate()
                await self._publisher.renew()
                await self.mail.maintain()
                await self._store.remove_expired(now=now)
                await self._provider.remove_expired(now)
                await self._requester.records.remove_old(now)
                await self._book.remove_expired()
                if round_number % COLLECT_EVERY == 0:
                    await self.keeping.collect()
            except LocalError as error:
                # A full disk, for example. The node goes on serving what it has and tries again in a minute.
                logger.error("maintenance: %s", error)
