"""Finding a chain in the catalog: which provider may provide, and what a requester shows with a call."""

from __future__ import annotations

import pytest
from authority_objects import (
    AGENCY,
    AGENT,
    CROWD,
    MANIFEST,
    NOW,
    OTHER_MANIFEST,
    PROVIDER,
    PUBLISHER,
    STRANGER,
    Clock,
    Grant,
    chain,
    long_chain,
    provide,
    revoked,
)

from bnw.identity.keys import SigningKey
from bnw.invoke.authority.book import DelegationBook
from bnw.invoke.authority.chains import MAX_CHAINS_TRIED, ChainSource
from bnw.invoke.authority.lookup import Found
from bnw.invoke.authority.question import Question, holds_invoke_right
from bnw.invoke.resolve import Catalog
from bnw.objects.signed import SignedObject
from bnw.store.interface import Store
from bnw.store.memory import MemoryStore
from bnw.wire.limits import DAY

pytestmark = pytest.mark.anyio


def to_call(who: SigningKey = AGENT) -> Question:
    return holds_invoke_right(MANIFEST, requester=who.identity, provider=PROVIDER.identity)


async def find(store: Store, question: Question) -> Found:
    clock = Clock()
    return await DelegationBook(store, Catalog(store, clock), clock).find(question)


async def known(store: Store, *objects: SignedObject) -> None:
    await store.put_objects(objects, now=NOW)


async def test_a_chain_through_others_is_found(store: Store) -> None:
    links = long_chain(8)
    await known(store, *links)
    found = await find(store, to_call())
    assert found.verdict.code == "delegated"
    assert list(found.chain) == links


async def test_a_direct_delegation_is_found_without_reading_those_of_others() -> None:
    class Watched(Catalog):
        read_all = False

        async def all(self, body, *, signer=None):  # type: ignore[no-untyped-def] # as in `Catalog`
            self.read_all |= signer is None
            return await super().all(body, signer=signer)

    store, clock = MemoryStore(), Clock()
    direct = chain(Grant(PUBLISHER, PROVIDER, "provide"))
    await known(store, *direct)
    catalog = Watched(store, clock)
    found = await DelegationBook(store, catalog, clock).find(provide(PROVIDER))
    assert (list(found.chain), catalog.read_all) == (direct, False)


async def test_a_requester_that_needs_no_chain_shows_none(store: Store) -> None:
    found = await find(store, to_call(PUBLISHER))
    assert (found.verdict.code, found.chain) == ("own-authority", ())


async def test_nothing_is_found_where_nothing_leads_to_a_root(store: Store) -> None:
    await known(store, *chain(Grant(STRANGER, AGENCY, "invoke delegate"), Grant(AGENCY, AGENT)))
    found = await find(store, to_call())
    assert (found.verdict.code, found.verdict.allowed, found.chain) == ("no-delegation", False, ())


async def test_where_no_chain_holds_the_likeliest_says_why(store: Store) -> None:
    links = chain(Grant(PROVIDER, AGENT).only(capability=OTHER_MANIFEST.id))
    await known(store, *links)
    found = await find(store, to_call())
    assert (found.verdict.code, list(found.chain)) == ("other-capability", links)


async def test_of_several_chains_that_do_not_hold_the_shortest_says_why(store: Store) -> None:
    short = chain(Grant(PROVIDER, AGENT).only(capability=OTHER_MANIFEST.id))
    longer = chain(Grant(PROVIDER, AGENCY, "invoke delegate"), Grant(AGENCY, AGENT, start=DAY // 2))
    await known(store, *short, *longer)
    assert list((await find(store, to_call())).chain) == short


async def test_a_revoked_chain_is_passed_over_for_one_that_holds(store: Store) -> None:
    gone = chain(Grant(PROVIDER, AGENT))
    longer = chain(Grant(PUBLISHER, AGENCY, "invoke delegate"), Grant(AGENCY, AGENT))
    await known(store, *gone, *longer, revoked(gone[0], PROVIDER))
    found = await find(store, to_call())
    assert (found.verdict.code, list(found.chain)) == ("delegated", longer)


async def test_a_revoked_link_in_the_middle_is_noticed(store: Store) -> None:
    links = long_chain(4)
    await known(store, *links, revoked(links[2], CROWD[1]))
    assert (await find(store, to_call())).verdict.code == "delegation-revoked"


@pytest.mark.parametrize(
    ("how", "who", "expected"),
    [
        ("publisher", PUBLISHER, True),
        ("publisher", PROVIDER, False),
        ("delegated", PROVIDER, True),
        ("delegated", STRANGER, False),
        ("anyone", STRANGER, True),
    ],
)
async def test_who_may_provide(store: Store, how: str, who: SigningKey, expected: bool) -> None:
    await known(store, *chain(Grant(PUBLISHER, AGENCY, "provide delegate"), Grant(AGENCY, PROVIDER, "provide")))
    assert (await find(store, provide(who, how))).verdict.allowed is expected


def test_the_likeliest_chain_comes_first() -> None:
    counted = chain(Grant(PROVIDER, AGENT).only(max_calls=5))
    short_lived = chain(Grant(PROVIDER, AGENT, end=DAY // 2))
    long_lived = chain(Grant(PUBLISHER, AGENT))
    indirect = chain(Grant(PROVIDER, AGENCY, "invoke delegate"), Grant(AGENCY, AGENT))
    source = ChainSource([*counted, *indirect, *short_lived, *long_lived])
    wanted = [long_lived, short_lived, indirect, counted]
    assert [list(links) for links in source.chains_for(to_call())] == wanted


def test_a_bounded_number_of_chains_is_tried() -> None:
    flood = [Grant(PROVIDER, AGENT, end=DAY - number).sign() for number in range(MAX_CHAINS_TRIED + 50)]
    assert len(ChainSource(flood).chains_for(to_call())) == MAX_CHAINS_TRIED
