"""What this identity says in the catalog: its record, its capabilities, its offers; said again before they expire."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import replace

from bnw.gossip.catalog_gossip import CatalogGossip
from bnw.identity.inbox_keys import InboxKey
from bnw.identity.keys import SigningKey
from bnw.invoke.resolve import Catalog
from bnw.objects.body import Body
from bnw.objects.catalog import (
    CapabilityManifest,
    IdentityRecord,
    Mailbox,
    ProviderOffer,
    PublicInboxKey,
    Withdrawal,
)
from bnw.objects.rules import capability_slot, identity_slot, is_expired, next_sequence, offer_slot, sequence_of
from bnw.objects.signed import SignedObject, sign_object
from bnw.store.interface import PutOutcome, Store
from bnw.wire.content_id import ContentId
from bnw.wire.environment import Environment
from bnw.wire.errors import LocalError
from bnw.wire.limits import (
    CANCELLING_LIFETIME_MIN,
    DAY,
    HOUR,
    IDENTITY_RECORD_LIFETIME,
    MANIFEST_LIFETIME,
    MAX_INBOX_KEYS,
)

logger = logging.getLogger(__name__)

OFFER_LIFETIME = 2 * HOUR
RENEW_OFFER_BEFORE = 1 * HOUR
RENEW_RECORD_BEFORE = 10 * DAY
RENEW_MANIFEST_BEFORE = 60 * DAY


class Publisher:
    """Signs, stores and announces catalog objects of one identity."""

    def __init__(
        self,
        *,
        key: SigningKey,
        inbox_keys: Callable[[], tuple[InboxKey, ...]],
        endpoints: Callable[[], tuple[str, ...]],
        store: Store,
        catalog: Catalog,
        gossip: CatalogGossip,
        environment: Environment,
        on_change: Callable[[], None],
        mailboxes: Sequence[Mailbox] = (),
    ) -> None:
        self._key = key
        self._inbox_keys = inbox_keys
        self._endpoints = endpoints
        self._store = store
        self._catalog = catalog
        self._gossip = gossip
        self._environment = environment
        self._on_change = on_change
        self._mailboxes = tuple(mailboxes)
        self._offered: set[ContentId] = set()

    async def publish(self, name: str, descriptor: ContentId, provide: str) -> SignedObject:
        """Publish a capability, or return the manifest that says the same already."""
        slot = capability_slot(self._key.identity, name)
        now = self._environment.now_ms()
        held = await self._store.held_in_slot(slot)
        if (
            held is not None
            and isinstance(held.body, CapabilityManifest)
            and (held.body.descriptor, held.body.provide) == (descriptor, provide)
            and held.body.expires - now > RENEW_MANIFEST_BEFORE
        ):
            return held
        body = CapabilityManifest(
            created=now,
            expires=now + MANIFEST_LIFETIME,
            descriptor=descriptor,
            name=name,
            provide=provide,
            sequence=await self._sequence(slot, now),
        )
        return await self.say(body)

    async def withdraw(self, name: str) -> SignedObject:
        """Withdraw a capability of this identity. Raises `LocalError` (`unknown-capability`) if there is none."""
        slot = capability_slot(self._key.identity, name)
        now = self._environment.now_ms()
        held = await self._store.held_in_slot(slot)
        if held is None or isinstance(held.body, Withdrawal):
            raise LocalError(
                "unknown-capability",
                "this identity publishes no such capability",
                place=name,
                cure="`bnw catalog --mine` lists what it publishes",
            )
        created = max(now, held.body.created)
        body = Withdrawal(
            created=created,
            expires=created + CANCELLING_LIFETIME_MIN + DAY,
            name=name,
            sequence=await self._sequence(slot, now),
        )
        return await self.say(body)

    async def offer(self, capability: ContentId, *, available: bool = True) -> SignedObject:
        """Offer a capability, or with `available` false say that the offer no longer holds."""
        now = self._environment.now_ms()
        body = ProviderOffer(
            created=now,
            expires=now + OFFER_LIFETIME,
            available=available,
            capability=capability,
            endpoints=self._endpoints() if available else (),
            sequence=await self._sequence(offer_slot(self._key.identity, capability), now),
        )
        (self._offered.add if available else self._offered.discard)(capability)
        return await self.say(body)

    async def renew(self) -> None:
        """Say again what would otherwise expire or is no longer true. Call at the start and every few minutes."""
        await self._renew_record()
        now = self._environment.now_ms()
        for obj in await self._catalog.all(CapabilityManifest, signer=self._key.identity):
            assert isinstance(obj.body, CapabilityManifest)
            if obj.body.expires - now <= RENEW_MANIFEST_BEFORE:
                await self.publish(obj.body.name, obj.body.descriptor, obj.body.provide)
        for capability in sorted(self._offered):
            held = await self._store.held_in_slot(offer_slot(self._key.identity, capability))
            if held is None or held.body.expires - now <= RENEW_OFFER_BEFORE or self._moved(held.body):
                await self.offer(capability)

    async def _renew_record(self) -> None:
        now = self._environment.now_ms()
        slot = identity_slot(self._key.identity)
        keys = tuple(
            PublicInboxKey(key=key.public, not_after=key.not_after, not_before=key.not_before)
            for key in self._inbox_keys()
            if key.not_after > now
        )[-MAX_INBOX_KEYS:]
        held = await self._store.held_in_slot(slot)
        body = IdentityRecord(
            created=now,
            expires=now + IDENTITY_RECORD_LIFETIME,
            inbox_keys=keys,
            mailboxes=self._mailboxes,
            sequence=await self._sequence(slot, now),
        )
        if (
            held is not None
            and isinstance(held.body, IdentityRecord)
            and held.body.expires - now > RENEW_RECORD_BEFORE
            and replace(held.body, created=0, expires=0, sequence=0) == replace(body, created=0, expires=0, sequence=0)
        ):
            return
        await self.say(body)

    def _moved(self, offer: Body) -> bool:
        return isinstance(offer, ProviderOffer) and offer.endpoints != self._endpoints()

    async def _sequence(self, slot: bytes, now: int) -> int:
        held = await self._store.held_in_slot(slot)
        return next_sequence(None if held is None else sequence_of(held.body), now)

    async def say(self, body: Body) -> SignedObject:
        """Sign, store and announce an object. Raises `LocalError` (`not-published`)."""
        obj = sign_object(body, self._key)
        now = self._environment.now_ms()
        [outcome] = await self._store.put_objects([obj], now=now)
        if outcome not in {PutOutcome.ADDED, PutOutcome.KNOWN} or is_expired(body, now):
            raise LocalError(
                "not-published",
                f"the store did not take the new {obj.kind} ({outcome.value})",
                place=obj.id.hex(),
                cure="withdraw what is no longer needed; if another node uses the same identity, stop one of them",
            )
        await self._gossip.announce(obj)
        self._on_change()
        return obj
