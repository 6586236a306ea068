"""Delegations and revocations of this node's identity: made, listed and explained."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass

from bnw.identity.keys import IdentityId, SigningKey
from bnw.invoke.authority.book import DelegationBook
from bnw.invoke.authority.build import NO_CAVEATS, attenuate, grant, revoke
from bnw.invoke.authority.question import holds_invoke_right, may_provide
from bnw.invoke.authority.verdict import Verdict
from bnw.invoke.resolve import Catalog
from bnw.objects.authority import RIGHT_PROVIDE, Caveats, Delegation, Revocation
from bnw.objects.body import Body
from bnw.objects.signed import SignedObject
from bnw.store.interface import Store
from bnw.wire.content_id import ContentId
from bnw.wire.environment import Environment
from bnw.wire.errors import LocalError

Say = Callable[[Body], Awaitable[SignedObject]]
"""Signs, stores and announces an object of this identity."""


@dataclass(frozen=True, slots=True)
class DelegationView:
    """A delegation, and the id of what revoked it, if anything has."""

    delegation: SignedObject
    revoked_by: ContentId | None

    @property
    def body(self) -> Delegation:
        assert isinstance(self.delegation.body, Delegation)
        return self.delegation.body


class DelegationDesk:
    def __init__(
        self,
        *,
        key: SigningKey,
        store: Store,
        catalog: Catalog,
        book: DelegationBook,
        environment: Environment,
        say: Say,
    ) -> None:
        self._key = key
        self._store = store
        self._catalog = catalog
        self._book = book
        self._environment = environment
        self._say = say

    async def delegate(
        self,
        audience: IdentityId,
        *,
        rights: Collection[str] | None,
        lifetime: int | None,
        caveats: Caveats = NO_CAVEATS,
        parent: ContentId | None = None,
    ) -> SignedObject:
        """Sign and publish a delegation, below `parent` if that is given; `lifetime` in milliseconds.

        Raises `InvalidError` as `bnw.invoke.authority.build` does, `LocalError` (`unknown-delegation`).
        """
        now = self._environment.now_ms()
        expires = None if lifetime is None else now + lifetime
        if parent is None:
            assert rights is not None and expires is not None
            body = grant(audience=audience, rights=rights, now=now, expires=expires, caveats=caveats)
        else:
            chain = await self._book.chain_to(parent)
            links = [link for link in chain if isinstance(link, SignedObject)]
            if len(links) != len(chain):
                raise _unknown(parent, "a link above the delegation is not in this node's catalog")
            body = attenuate(
                links,
                issuer=self._key.identity,
                audience=audience,
                now=now,
                rights=rights,
                expires=expires,
                caveats=caveats,
            )
        return await self._say(body)

    async def revoke(self, id: ContentId) -> SignedObject:
        """Take back a delegation of this identity, and all below it. Raises `LocalError`, `InvalidError`."""
        delegation = await self._delegation(id)
        return await self._say(revoke(delegation, issuer=self._key.identity, now=self._environment.now_ms()))

    async def delegations(self, *, mine: bool = False) -> list[DelegationView]:
        """All that are known here; with `mine` those by or for this identity."""
        me = self._key.identity
        revoked = {
            (obj.signer, obj.body.delegation): obj.id
            for obj in await self._catalog.all(Revocation)
            if isinstance(obj.body, Revocation)
        }
        return [
            DelegationView(obj, revoked.get((obj.signer, obj.id)))
            for obj in await self._catalog.all(Delegation)
            if isinstance(obj.body, Delegation) and (not mine or me in {obj.signer, obj.body.audience})
        ]

    async def chain(self, id: ContentId) -> tuple[SignedObject | ContentId, ...]:
        """The chain that ends at a delegation, root first. Raises `LocalError` (`unknown-delegation`)."""
        await self._delegation(id)
        return await self._book.chain_to(id)

    async def explain(
        self,
        capability: SignedObject,
        *,
        right: str,
        actor: IdentityId,
        provider: IdentityId | None = None,
        leaf: ContentId | None = None,
        input_bytes: int | None = None,
    ) -> Verdict:
        """Why `actor` may or may not use `right` on a capability, by the chain to `leaf` or the best that is known.

        For `invoke` it is asked as if the provider's policy accepted delegations; by default the publisher provides.
        """
        if right == RIGHT_PROVIDE:
            question = may_provide(capability, provider=actor)
        else:
            question = holds_invoke_right(
                capability, requester=actor, provider=provider or capability.signer, input_bytes=input_bytes
            )
        if leaf is None:
            return (await self._book.find(question)).verdict
        chain = [link.id if isinstance(link, SignedObject) else link for link in await self.chain(leaf)]
        return await self._book.explain(question, chain)

    async def _delegation(self, id: ContentId) -> SignedObject:
        obj = await self._store.get_object(id)
        if obj is None or not isinstance(obj.body, Delegation):
            raise _unknown(id, "there is no such delegation in this node's catalog")
        return obj


def _unknown(id: ContentId, cause: str) -> LocalError:
    return LocalError(
        "unknown-delegation",
        cause,
        place=id.hex(),
        cure="`bnw delegation list` shows what is known; a node that has just started may need a moment to hear of it",
    )
