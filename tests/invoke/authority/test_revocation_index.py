"""Revocations are looked up by what they revoke; each issuer's are read once, and no news of them is missed."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from authority_book import known
from authority_objects import (
    AGENCY,
    AGENT,
    CROWD,
    NOW,
    PROVIDER,
    STRANGER,
    Clock,
    Grant,
    chain,
    long_chain,
    revoked,
)

from bnw.identity.keys import IdentityId, SigningKey
from bnw.invoke.authority import revocations
from bnw.invoke.authority.revocations import RevocationIndex
from bnw.objects.authority import Revocation
from bnw.objects.signed import SignedObject
from bnw.store.interface import Store
from bnw.store.memory import MemoryStore
from bnw.wire.errors import LocalError
from bnw.wire.limits import CANCELLING_LIFETIME_MIN, HOUR

pytestmark = pytest.mark.anyio


class Reader:
    """Reads an issuer's revocations from a store, and keeps count."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.read: list[IdentityId] = []
        self.meanwhile: SignedObject | None = None
        self.failing = False

    async def __call__(self, issuer: IdentityId) -> Iterable[SignedObject]:
        self.read.append(issuer)
        if self.failing:
            raise LocalError("disk-full", "no space is left", place="the store")
        found = await self.store.list_objects(kind=Revocation.KIND, now=NOW + HOUR, signer=issuer, limit=1000)
        if self.meanwhile is not None:
            coming, self.meanwhile = self.meanwhile, None
            await known(self.store, coming)
        return found


def index_of(store: Store, clock: Clock | None = None) -> tuple[RevocationIndex, Reader]:
    reader = Reader(store)
    return RevocationIndex(store, clock or Clock(), reader), reader


def given_to(count: int) -> list[SignedObject]:
    return [Grant(PROVIDER, CROWD[number]).sign() for number in range(count)]


async def test_each_issuer_is_read_once_and_only_what_revokes_a_link_is_returned(store: Store) -> None:
    links = given_to(3)
    undone = [revoked(link, PROVIDER) for link in links[:2]]
    await known(store, *links, *undone)
    index, reader = index_of(store)
    assert await index.of(links) == undone
    assert await index.of(links[2:]) == []
    assert await index.of(links[1:2]) == undone[1:]
    assert reader.read == [PROVIDER.identity]


async def test_a_revocation_by_another_is_none(store: Store) -> None:
    [link] = given_to(1)
    await known(store, link, revoked(link, STRANGER))
    index, _ = index_of(store)
    assert await index.of([link]) == []


async def test_a_revocation_that_arrives_later_counts_from_then_on(store: Store) -> None:
    links = chain(Grant(PROVIDER, AGENCY, "invoke delegate"), Grant(AGENCY, AGENT))
    await known(store, *links)
    index, reader = index_of(store)
    assert await index.of(links) == []
    late = revoked(links[1], AGENCY)
    await known(store, late)
    assert await index.of(links) == [late]
    assert reader.read == [PROVIDER.identity, AGENCY.identity]


async def test_a_revocation_that_arrives_while_the_issuer_is_read_counts(store: Store) -> None:
    [link] = given_to(1)
    await known(store, link)
    index, reader = index_of(store)
    reader.meanwhile = revoked(link, PROVIDER)
    await index.of([link])
    assert [obj.signer for obj in await index.of([link])] == [PROVIDER.identity]
    assert reader.read == [PROVIDER.identity]


async def test_a_read_that_fails_is_tried_again(store: Store) -> None:
    [link] = given_to(1)
    undone = revoked(link, PROVIDER)
    await known(store, link, undone)
    index, reader = index_of(store)
    reader.failing = True
    with pytest.raises(LocalError):
        await index.of([link])
    reader.failing = False
    assert await index.of([link]) == [undone]


async def test_of_two_revocations_the_one_that_lasts_longer_counts(store: Store) -> None:
    """The first is in the way of nothing when it has expired."""
    [link] = given_to(1)
    first, second = revoked(link, PROVIDER), revoked(link, PROVIDER, at=HOUR)
    await known(store, link, first)
    clock = Clock()
    index, _ = index_of(store, clock)
    assert await index.of([link]) == [first]
    await known(store, second)
    assert await index.of([link]) == [second]
    clock.now = NOW + CANCELLING_LIFETIME_MIN + HOUR // 2
    assert await index.of([link]) == [second]
    clock.now += HOUR
    assert await index.of([link]) == []


async def test_more_news_than_are_kept_is_read_anew(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(revocations, "MAX_NEWS", 4)
    links = given_to(6)
    index, reader = index_of(store)
    assert await index.of(links[:1]) == []
    undone = [revoked(link, PROVIDER) for link in links]
    await known(store, *links, *undone)
    assert await index.of(links) == undone
    assert reader.read == [PROVIDER.identity] * 2


async def test_what_was_forgotten_while_it_was_read_is_read_anew(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(revocations, "MAX_NEWS", 0)
    [link] = given_to(1)
    index, reader = index_of(store)
    reader.meanwhile = revoked(link, PROVIDER)
    await index.of([link])
    assert [obj.signer for obj in await index.of([link])] == [PROVIDER.identity]
    assert reader.read == [PROVIDER.identity] * 2


async def test_the_issuer_not_asked_for_longest_is_forgotten_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(revocations, "MAX_KNOWN", 2)
    store = MemoryStore()
    links = long_chain(3)
    issuers: list[SigningKey] = [PROVIDER, *CROWD[:2]]
    undone = [revoked(link, issuer) for link, issuer in zip(links, issuers, strict=True)]
    await known(store, *links, *undone)
    index, reader = index_of(store)
    for asked in (0, 1, 0, 2, 0, 1):
        assert await index.of([links[asked]]) == [undone[asked]]
    assert reader.read == [issuers[asked].identity for asked in (0, 1, 2, 1)]


async def test_one_issuer_with_more_than_is_kept_is_still_known_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(revocations, "MAX_KNOWN", 2)
    store = MemoryStore()
    links = given_to(5)
    undone = [revoked(link, PROVIDER) for link in links]
    await known(store, *links, *undone)
    index, reader = index_of(store)
    assert await index.of(links) == undone
    assert await index.of(links) == undone
    assert reader.read == [PROVIDER.identity]
