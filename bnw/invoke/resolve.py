"""Finds capabilities, offers and keys in the node's catalog."""

from __future__ import annotations

from collections.abc import Sequence

from bnw.identity.keys import IdentityId, did_key, parse_did_key
from bnw.invoke.authority.lookup import find
from bnw.invoke.authority.question import may_provide
from bnw.invoke.authority.revocations import RevocationIndex
from bnw.invoke.catalog_cache import CatalogCache
from bnw.objects.authority import Revocation
from bnw.objects.body import Body
from bnw.objects.catalog import (
    PROVIDE_ANYONE,
    PROVIDE_PUBLISHER,
    CapabilityManifest,
    IdentityRecord,
    ProviderOffer,
)
from bnw.objects.rules import capability_slot, identity_slot
from bnw.objects.signed import SignedObject
from bnw.store.interface import Store
from bnw.wire.content_id import CONTENT_ID_SIZE, parse_content_id
from bnw.wire.environment import Environment
from bnw.wire.errors import LocalError

PAGE = 1000
MAX_LISTED = 100_000
"""Objects of one kind that a search looks at."""


class Catalog:
    """Read access to the catalog scope of one store."""

    def __init__(self, store: Store, environment: Environment) -> None:
        self._store = store
        self._environment = environment
        self._cache = CatalogCache(store)
        # Not from the cache, which other changes of the catalog empty.
        self._revocations = RevocationIndex(store, environment, self._read_revocations)

    async def all(self, body: type[Body], *, signer: IdentityId | None = None) -> list[SignedObject]:
        """All live objects of a kind, ordered by id."""
        now = self._environment.now_ms()
        return await self._cache.ask((body, signer), lambda: self._read_all(body, signer, now), now=now)

    async def _read_all(self, body: type[Body], signer: IdentityId | None, now: int) -> list[SignedObject]:
        found: list[SignedObject] = []
        while len(found) < MAX_LISTED:
            after = found[-1].id if found else None
            page = await self._store.list_objects(kind=body.KIND, now=now, signer=signer, after=after, limit=PAGE)
            found += page
            if len(page) < PAGE:
                break
        return found

    async def _read_revocations(self, issuer: IdentityId) -> list[SignedObject]:
        return await self._read_all(Revocation, issuer, self._environment.now_ms())

    async def revocations_of(self, links: Sequence[SignedObject]) -> list[SignedObject]:
        """The live revocations of these delegations by their own issuers."""
        return await self._revocations.of(links)

    async def find(self, reference: str) -> SignedObject:
        """The capability manifest that `reference` means: a manifest id, a name, or `<did:key>/<name>`.

        Raises `LocalError`: `unknown-capability`, or `ambiguous-capability` when several publishers use the name.
        """
        if len(reference) == 2 * CONTENT_ID_SIZE and "/" not in reference:
            obj = await self._store.get_object(parse_content_id(reference))
            if obj is not None and isinstance(obj.body, CapabilityManifest) and await self._is_current(obj):
                return obj
            raise _unknown(reference)
        publisher, name = None, reference
        if reference.startswith("did:key:"):
            did, _, name = reference.partition("/")
            publisher = parse_did_key(did)
        matches = [
            obj
            for obj in await self.all(CapabilityManifest, signer=publisher)
            if isinstance(obj.body, CapabilityManifest) and obj.body.name == name
        ]
        if not matches:
            raise _unknown(reference)
        if len(matches) > 1:
            choices = ", ".join(f"{did_key(obj.signer)}/{name}" for obj in matches[:5])
            raise LocalError(
                "ambiguous-capability",
                f"{len(matches)} publishers have a capability {name!r}",
                place=reference,
                cure=f"name the publisher too: {choices}",
            )
        return matches[0]

    async def offers(self, manifest: SignedObject) -> list[SignedObject]:
        """Live, available offers of a capability by identities that may provide it, ordered by id."""
        assert isinstance(manifest.body, CapabilityManifest)
        only = manifest.signer if manifest.body.provide == PROVIDE_PUBLISHER else None
        found = []
        for obj in await self.all(ProviderOffer, signer=only):
            body = obj.body
            if (
                isinstance(body, ProviderOffer)
                and body.capability == manifest.id
                and body.available
                and await self.may_provide(manifest, obj.signer)
            ):
                found.append(obj)
        return found

    async def may_provide(self, manifest: SignedObject, provider: IdentityId) -> bool:
        """Whether the manifest lets `provider` answer for it: as publisher, as anyone, or by a chain of delegations."""
        assert isinstance(manifest.body, CapabilityManifest)
        if provider == manifest.signer or manifest.body.provide == PROVIDE_ANYONE:
            return True
        if manifest.body.provide == PROVIDE_PUBLISHER:
            return False
        question = may_provide(manifest, provider=provider)
        return (await find(self, question, now=self._environment.now_ms())).verdict.allowed

    async def provide_chain(self, manifest: SignedObject, provider: IdentityId) -> tuple[SignedObject, ...]:
        """The delegations by which `provider` may provide; empty if it needs none, or has none."""
        found = await find(self, may_provide(manifest, provider=provider), now=self._environment.now_ms())
        return found.chain if found.verdict.allowed else ()

    async def identity_record(self, identity: IdentityId) -> SignedObject | None:
        """The live identity record of `identity`, if it is here."""
        return await self._held(identity_slot(identity))

    async def inbox_key(self, identity: IdentityId) -> bytes | None:
        """The key to seal new mail for `identity` to: of those valid now, the one that is valid longest."""
        obj = await self.identity_record(identity)
        if obj is None:
            return None
        assert isinstance(obj.body, IdentityRecord)
        now = self._environment.now_ms()
        usable = [key for key in obj.body.inbox_keys if key.not_before <= now < key.not_after]
        return max(usable, key=lambda key: key.not_after).key if usable else None

    async def _is_current(self, manifest: SignedObject) -> bool:
        assert isinstance(manifest.body, CapabilityManifest)
        held = await self._held(capability_slot(manifest.signer, manifest.body.name))
        return held is not None and held.id == manifest.id

    async def _held(self, slot: bytes) -> SignedObject | None:
        """What holds a slot, if it is live."""

        async def read() -> list[SignedObject]:
            obj = await self._store.held_in_slot(slot)
            return [] if obj is None else [obj]

        found = await self._cache.ask(slot, read, now=self._environment.now_ms())
        return found[0] if found else None


def _unknown(reference: str) -> LocalError:
    return LocalError(
        "unknown-capability",
        "no such capability in this node's catalog",
        place=reference,
        cure="`bnw catalog` lists what is known; a node that has just started may need a moment to hear of it",
    )
