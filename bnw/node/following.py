"""Keeps what this node follows: descriptors and all that they link to, version after version (design section 12).

To follow a capability is to have its content here, pinned, and to serve it, also while its publisher is away. A follow
names a publisher and a name, not a version: when the catalog brings a new manifest, its content is fetched, and that of
the version before is released once the new one is whole. Following an identity does so for whatever it publishes.

What others can cause is bounded: capabilities and their blobs by number and size, attempts by growing pauses and a
number (`bnw.node.followed`), the new content of one publisher by a rate.
"""

from __future__ import annotations

import logging
import math
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, Protocol

import anyio
from anyio.abc import TaskGroup

from bnw.identity.keys import IdentityId, did_key, parse_did_key
from bnw.invoke.resolve import Catalog
from bnw.node.descriptors import LoadedDescriptor, OnLinks
from bnw.node.follow_records import (
    MAX_CAPABILITIES,
    MAX_FOLLOWS,
    NO_PINS,
    Follow,
    FollowRecords,
    Pins,
    follow_key,
    publisher_and_name,
)
from bnw.node.followed import Capability, FollowView
from bnw.objects.catalog import CapabilityManifest, ProviderOffer, Withdrawal
from bnw.objects.rules import capability_slot, is_expired
from bnw.objects.signed import SignedObject
from bnw.store.interface import Store
from bnw.transport.interface import PeerConnected, Transport, TransportEvent
from bnw.wire.content_id import ContentId
from bnw.wire.environment import Environment, random_below
from bnw.wire.errors import BnwError, LocalError
from bnw.wire.rate_limit import RateLimiter

logger = logging.getLogger(__name__)

MAX_OF_IDENTITY: Final = 256
"""Capabilities of one followed identity that are kept."""
MAX_AT_ONCE: Final = 2
"""Capabilities that are fetched at the same time, so that calls find room beside them."""
NEW_CONTENT_AT_ONCE: Final = 256.0
NEW_CONTENT_PER_SECOND: Final = 1 / 60
"""Descriptors of one publisher that are fetched: many at first, then one a minute."""
LOOK_PERIOD: Final = 600.0
"""Seconds between looks at the catalog that nothing calls for: manifests also expire."""
LOOK_PAUSE: Final = 1.0
"""Seconds in which the catalog's changes are gathered into one look."""
FAULT_PAUSE: Final = 60.0
"""Seconds until the next look after the store has failed."""


class Bring(Protocol):
    """Fetches a capability's content, as `bnw.node.descriptors.DescriptorLoader.bring` does."""

    def __call__(self, manifest: SignedObject, *, on_links: OnLinks) -> Awaitable[LoadedDescriptor]: ...


@dataclass(slots=True, eq=False)
class _Attempt:
    """An attempt under way."""

    scope: anyio.CancelScope = field(default_factory=anyio.CancelScope)
    ended: anyio.Event = field(default_factory=anyio.Event)


class Following:
    """See the module docstring. `run` does the work; it ends only when cancelled."""

    def __init__(
        self,
        *,
        store: Store,
        transport: Transport,
        catalog: Catalog,
        environment: Environment,
        identity: IdentityId,
        bring: Bring,
    ) -> None:
        self._store = store
        self._transport = transport
        self._catalog = catalog
        self._environment = environment
        self._identity = identity
        self._bring = bring
        self._records = FollowRecords(store)
        self._follows: dict[bytes, Follow] = {}
        self._left_out: dict[bytes, int] = {}
        self._capabilities: dict[bytes, Capability] = {}
        self._attempts: dict[bytes, _Attempt] = {}
        self._limiter = RateLimiter(rate=NEW_CONTENT_PER_SECOND, burst=NEW_CONTENT_AT_ONCE)
        self._slots = anyio.Semaphore(MAX_AT_ONCE)
        self._changing = anyio.Lock()
        self._changed = anyio.Event()
        self._look_at = -math.inf

    async def load(self) -> None:
        """Read what is followed. Call once, before anything else. Raises `LocalError`."""
        self._follows = {follow.key: follow for follow in await self._records.follows()}
        for key, pins in (await self._records.pins()).items():
            self._capabilities[key] = Capability(*publisher_and_name(key), pins)

    async def run(self) -> None:
        async with anyio.create_task_group() as group, self._transport.events() as events:
            group.start_soon(self._hear_of_peers, events)
            while True:
                changed = self._changed = anyio.Event()
                async with self._changing:
                    if anyio.current_time() >= self._look_at:
                        await self._look_again()
                    due = self._start_attempts(group)
                with anyio.move_on_at(due):
                    await changed.wait()

    # What the user wants

    async def follow(self, publisher: IdentityId, name: str | None, *, patience: float) -> FollowView:
        """Follow a capability, or with `name` None an identity; durable when this returns.

        Waits up to `patience` seconds until all content has been tried once. Raises `LocalError`: `own-capability`,
        `too-many-follows`.
        """
        if publisher == self._identity:
            raise LocalError(
                "own-capability",
                "this node publishes it itself, and keeps and serves it anyway",
                place=name or did_key(publisher),
                cure="follow what others publish",
            )
        async with self._changing:
            follow = self._follows.get(follow_key(publisher, name))
            if follow is None:
                if len(self._follows) >= MAX_FOLLOWS:
                    raise LocalError(
                        "too-many-follows",
                        f"this node follows {MAX_FOLLOWS} capabilities and identities already",
                        cure="`bnw unfollow` what is not needed; an identity counts once for all that it publishes",
                    )
                follow = Follow(name, publisher, self._environment.now_ms())
                await self._records.add(follow)
                self._follows[follow.key] = follow
            await self._look()
            for capability in self._covered_by(follow):
                capability.insist(anyio.current_time())
        self._changed.set()
        with anyio.move_on_after(patience):
            for capability in self._covered_by(follow):
                await capability.over.wait()
        return self._view(follow)

    async def unfollow(self, reference: str) -> FollowView:
        """End the follow that `reference` names: an identity, a name, `<did:key>/<name>` or a manifest id.

        What was pinned for it alone is released. Returns what was followed. Raises `LocalError`: `not-followed`,
        `ambiguous-capability`; `InvalidError` for a broken did:key.
        """
        async with self._changing:
            follow = self._find(reference)
            view = self._view(follow)
            await self._records.remove(follow)
            del self._follows[follow.key]
            await self._look()
        return view

    def views(self) -> list[FollowView]:
        """All that is followed, ordered by publisher and name."""
        return [self._view(self._follows[key]) for key in sorted(self._follows)]

    # What happens meanwhile

    def take_news(self, obj: SignedObject) -> None:
        """The catalog has a new object. Does not block."""
        match obj.body:
            case CapabilityManifest(name=name) | Withdrawal(name=name):
                if follow_key(obj.signer, None) in self._follows or follow_key(obj.signer, name) in self._follows:
                    self._look_at = min(self._look_at, anyio.current_time() + LOOK_PAUSE)
                    self._changed.set()
            case ProviderOffer(capability=id, available=True):
                self._give_chances(lambda capability: capability.manifest is not None and capability.manifest.id == id)

    async def _hear_of_peers(self, events: AsyncIterator[TransportEvent]) -> None:
        async for event in events:
            if isinstance(event, PeerConnected):
                self._give_chances(lambda capability: True)

    def _give_chances(self, which: Callable[[Capability], bool]) -> None:
        now = anyio.current_time()
        for key, capability in self._capabilities.items():
            if key not in self._attempts and which(capability) and capability.give_chance(now):
                self._changed.set()

    # From follows to capabilities

    async def _look_again(self) -> None:
        try:
            await self._look()
        except LocalError as error:
            # A damaged disk, for example. What is here is served on, and the next look may fare better.
            logger.error("following: %s", error)
            self._look_at = anyio.current_time() + FAULT_PAUSE

    async def _look(self) -> None:
        """Find the current version of everything that is followed, and let go of what no longer is."""
        self._look_at = anyio.current_time() + LOOK_PERIOD if self._follows else math.inf
        wanted = await self._wanted()
        for key in [key for key in self._capabilities if key not in wanted]:
            await self._stop_attempt(key)
            del self._capabilities[key]
            await self._records.release(key)
        for key, manifest in wanted.items():
            if key not in self._capabilities:
                self._capabilities[key] = Capability(*publisher_and_name(key), NO_PINS)
            if not self._capabilities[key].is_about(manifest):
                await self._stop_attempt(key)
            self._capabilities[key].turn_to(manifest, anyio.current_time())

    async def _wanted(self) -> dict[bytes, SignedObject | None]:
        """The capabilities to keep, by `follow_key`, each with its current version if there is one."""
        now = self._environment.now_ms()
        wanted: dict[bytes, SignedObject | None] = {}
        for key, follow in self._follows.items():
            if follow.name is not None:
                held = await self._store.held_in_slot(capability_slot(follow.publisher, follow.name))
                live = held is not None and isinstance(held.body, CapabilityManifest) and not is_expired(held.body, now)
                wanted[key] = held if live else None
        for key, follow in sorted(self._follows.items()):
            if follow.name is None:
                published = await self._catalog.all(CapabilityManifest, signer=follow.publisher)
                manifests = [(_key_of(manifest), manifest) for manifest in published]
                # What is kept already goes first: renaming its capabilities gains a publisher no room.
                manifests.sort(key=lambda entry: (entry[0] not in self._capabilities, entry[0]))
                room = min(MAX_OF_IDENTITY, MAX_CAPABILITIES - len(wanted))
                self._left_out[key] = max(0, len(manifests) - room)
                wanted.update(manifests[:room])
        return wanted

    # Fetching

    def _start_attempts(self, group: TaskGroup) -> float:
        """Begin what is due; returns when the next thing will be."""
        now = anyio.current_time()
        following = self._look_at
        for key, capability in self._capabilities.items():
            if key in self._attempts:
                continue  # its end will be told
            if capability.due <= now:
                self._attempts[key] = _Attempt()
                group.start_soon(self._attempt, capability, self._attempts[key])
            else:
                following = min(following, capability.due)
        return following

    async def _stop_attempt(self, key: bytes) -> None:
        if (attempt := self._attempts.get(key)) is not None:
            attempt.scope.cancel()
            await attempt.ended.wait()

    async def _attempt(self, capability: Capability, attempt: _Attempt) -> None:
        try:
            with attempt.scope:
                async with self._slots:
                    await self._try(capability)
        finally:
            del self._attempts[capability.key]
            attempt.ended.set()
            self._changed.set()

    async def _try(self, capability: Capability) -> None:
        manifest = capability.manifest
        assert manifest is not None  # nothing is due without one
        try:
            if not await self._may_fetch(capability, manifest):
                return
            capability.tried_at = anyio.current_time()
            problem = await self._fetch(capability, manifest)
        except BnwError as error:
            problem = str(error)
        if problem is None:
            capability.succeeded()
            logger.info("whole: %s of %s", capability.name, did_key(capability.publisher))
        else:
            variation = random_below(self._environment, 1000) / 1000
            capability.failed(problem, anyio.current_time(), variation=variation)
            logger.info("not whole: %s of %s: %s", capability.name, did_key(capability.publisher), problem)

    async def _may_fetch(self, capability: Capability, manifest: SignedObject) -> bool:
        """Whether the publisher is within the rate of new descriptors; if not, it is tried when that has passed."""
        assert isinstance(manifest.body, CapabilityManifest)
        if capability.attempts or await self._store.blob_size(manifest.body.descriptor) is not None:
            return True
        now = anyio.current_time()
        if self._limiter.allows(capability.publisher.hex(), now):
            return True
        capability.wait("its publisher publishes faster than this node follows", now + 1 / NEW_CONTENT_PER_SECOND)
        return False

    async def _fetch(self, capability: Capability, manifest: SignedObject) -> str | None:
        """Bring and pin the content; what is missing, in words. Raises `LocalError`, `RemoteError`."""
        assert isinstance(manifest.body, CapabilityManifest)
        descriptor = manifest.body.descriptor

        async def pin_coming(links: Sequence[ContentId]) -> None:
            coming = tuple(id for id in (descriptor, *links) if id not in capability.pins.held)
            await self._pin(capability, replace(capability.pins, coming=coming))

        await pin_coming(())
        loaded = await self._bring(manifest, on_links=pin_coming)
        if loaded.missing:
            return f"nobody gave what it links to: {', '.join(id.hex() for id in loaded.missing)}"
        await self._pin(capability, Pins(coming=(), held=(descriptor, *loaded.linked), manifest=manifest.id))
        return None

    async def _pin(self, capability: Capability, pins: Pins) -> None:
        if pins != capability.pins:
            await self._records.pin(capability.key, pins)
            capability.pins = pins

    # Finding and showing

    def _covered_by(self, follow: Follow) -> list[Capability]:
        return [
            capability
            for key, capability in sorted(self._capabilities.items())
            if key == follow.key or (follow.name is None and capability.publisher == follow.publisher)
        ]

    def _view(self, follow: Follow) -> FollowView:
        covered = tuple(capability.view() for capability in self._covered_by(follow))
        return FollowView(follow, covered, self._left_out.get(follow.key, 0))

    def _find(self, reference: str) -> Follow:
        publisher: IdentityId | None = None
        name: str | None = reference
        if reference.startswith("did:key:"):
            did, _, rest = reference.partition("/")
            publisher, name = parse_did_key(did), rest or None
        elif (about := self._capability_of(reference)) is not None:
            publisher, name = about.publisher, about.name
        matches = [
            follow
            for _, follow in sorted(self._follows.items())
            if follow.name == name and publisher in {None, follow.publisher}
        ]
        if len(matches) > 1:
            raise LocalError(
                "ambiguous-capability",
                f"a capability {name!r} is followed of {len(matches)} publishers",
                place=reference,
                cure=f"name the publisher too: {', '.join(follow.reference for follow in matches[:5])}",
            )
        if not matches:
            raise LocalError(
                "not-followed",
                "is not followed, or only as one of all that its publisher publishes",
                place=reference,
                cure="`bnw follow` lists what is followed",
            )
        return matches[0]

    def _capability_of(self, manifest: str) -> Capability | None:
        for capability in self._capabilities.values():
            current = None if capability.manifest is None else capability.manifest.id
            if manifest in {id.hex() for id in (current, capability.pins.manifest) if id is not None}:
                return capability
        return None


def _key_of(manifest: SignedObject) -> bytes:
    assert isinstance(manifest.body, CapabilityManifest)
    return follow_key(manifest.signer, manifest.body.name)
