"""Delegations and questions for the tests of authority. Time starts at `NOW`; a day of rights begins there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from bnw.identity.keys import IdentityId, SigningKey
from bnw.invoke.authority.build import NO_CAVEATS
from bnw.invoke.authority.question import Question, may_invoke, may_provide
from bnw.objects.authority import Caveats, Delegation, Revocation
from bnw.objects.catalog import CapabilityManifest
from bnw.objects.signed import SignedObject, sign_object
from bnw.wire.content_id import ContentId, content_id
from bnw.wire.limits import CANCELLING_LIFETIME_MIN, DAY, HOUR

NOW = 1_700_000_000_000

PUBLISHER, PROVIDER, AGENCY, AGENT, STRANGER = (SigningKey(bytes([number]) * 32) for number in range(1, 6))
CROWD = tuple(SigningKey(bytes([number]) * 32) for number in range(10, 22))


@dataclass(frozen=True)
class Policy:
    """What a provider's policy says, as the evaluator sees it."""

    anyone: bool = False
    listed: frozenset[IdentityId] = frozenset()
    delegated: bool = False


NOBODY = Policy()
ANYONE = Policy(anyone=True)
DELEGATED = Policy(delegated=True)


def listed(*keys: SigningKey) -> Policy:
    return Policy(listed=frozenset(key.identity for key in keys))


def manifest(
    *, provide: str = "delegated", name: str = "summarise", key: SigningKey = PUBLISHER, sequence: int = 1
) -> SignedObject:
    body = CapabilityManifest(
        created=NOW,
        expires=NOW + 30 * DAY,
        descriptor=content_id(b"descriptor"),
        name=name,
        provide=provide,
        sequence=sequence,
    )
    return sign_object(body, key)


MANIFEST = manifest()
OTHER_MANIFEST = manifest(name="translate")


@dataclass(frozen=True)
class Grant:
    """A delegation before it is signed; `start` and `end` count from `NOW`. Hangs on the one before it in `chain`."""

    by: SigningKey
    to: SigningKey
    rights: str = "invoke"
    start: int = 0
    end: int = DAY
    caveats: Caveats = field(default=NO_CAVEATS)

    def only(self, **caveats: object) -> Grant:
        return replace(self, caveats=replace(self.caveats, **caveats))  # type: ignore[arg-type] # names and types vary

    def sign(self, parent: ContentId | None = None) -> SignedObject:
        body = Delegation(
            created=NOW,
            expires=NOW + self.end,
            audience=self.to.identity,
            caveats=self.caveats,
            not_before=NOW + self.start,
            parent=parent,
            rights=tuple(sorted(self.rights.split())),
        )
        return sign_object(body, self.by)


def chain(*grants: Grant) -> list[SignedObject]:
    """Each grant hangs on the one before it."""
    links: list[SignedObject] = []
    for grant in grants:
        links.append(grant.sign(links[-1].id if links else None))
    return links


def long_chain(length: int, root: SigningKey = PROVIDER) -> list[SignedObject]:
    """From the root through a crowd to the agent."""
    holders = [root, *CROWD[: length - 1], AGENT]
    return chain(*(Grant(holders[n], holders[n + 1], "invoke delegate") for n in range(length)))


def revoked(link: SignedObject, by: SigningKey, at: int = 0) -> SignedObject:
    body = Revocation(created=NOW + at, expires=NOW + at + CANCELLING_LIFETIME_MIN, delegation=link.id)
    return sign_object(body, by)


def invoke(
    who: SigningKey = AGENT,
    policy: Policy = DELEGATED,
    *,
    size: int | None = 100,
    of: SignedObject = MANIFEST,
    provider: SigningKey = PROVIDER,
) -> Question:
    return may_invoke(of, requester=who.identity, provider=provider.identity, policy=policy, input_bytes=size)


def provide(who: SigningKey, how: str = "delegated") -> Question:
    return may_provide(manifest(provide=how), provider=who.identity)


def ids(links: Sequence[SignedObject]) -> tuple[ContentId, ...]:
    return tuple(link.id for link in links)


def forged(link: SignedObject, id: ContentId, parent: ContentId | None) -> SignedObject:
    """What no signer can make: a delegation whose id and parent were chosen, as if BLAKE3 were broken."""
    assert isinstance(link.body, Delegation)
    return SignedObject(id, link.signer, replace(link.body, parent=parent), link.data)


@dataclass
class Clock:
    """An environment whose time the test sets."""

    now: int = NOW + HOUR

    def now_ms(self) -> int:
        return self.now

    def random_bytes(self, count: int) -> bytes:
        return bytes(count)
