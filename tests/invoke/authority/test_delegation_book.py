"""The provider's side: chains from the store, and revocations that arrive before a call starts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from authority_book import allowed, book_of, call, counted, known
from authority_objects import (
    AGENCY,
    AGENT,
    ANYONE,
    CROWD,
    MANIFEST,
    NOBODY,
    PROVIDER,
    STRANGER,
    Clock,
    Grant,
    chain,
    ids,
    invoke,
    long_chain,
    revoked,
)

from bnw.invoke.authority.book import DelegationBook
from bnw.invoke.resolve import Catalog
from bnw.objects.signed import SignedObject
from bnw.store.interface import Store
from bnw.store.memory import MemoryStore
from bnw.wire.content_id import ContentId
from bnw.wire.errors import InvalidError

pytestmark = pytest.mark.anyio


async def test_a_chain_from_the_catalog_lets_a_call_through(store: Store) -> None:
    links = long_chain(8)
    await known(store, *links)
    verdict = await book_of(store).explain(invoke(), ids(links))
    assert (verdict.code, len(verdict.links)) == ("delegated", 8)


async def test_a_link_that_is_not_in_the_catalog_is_named(store: Store) -> None:
    links = long_chain(3)
    await known(store, links[0], links[2])
    verdict = await book_of(store).explain(invoke(), ids(links))
    assert verdict.code == "delegation-missing"
    assert links[1].id.hex() in (verdict.place or "")


async def test_an_id_of_something_else_is_no_delegation(store: Store) -> None:
    await known(store, MANIFEST)
    assert (await book_of(store).explain(invoke(), [MANIFEST.id])).code == "not-a-delegation"


async def test_too_many_ids_are_refused_without_reading_any() -> None:
    class Untouchable:
        def watch_scope(self, scope: str, watcher: object) -> None:
            """That the catalog is watched is no reading."""

        def __getattr__(self, name: str) -> Any:
            raise AssertionError(f"the store was asked: {name}")

    store: Any = Untouchable()
    verdict = await book_of(store).explain(invoke(), [call(number) for number in range(1000)])
    assert verdict.code == "chain-too-long"


async def test_policies_that_need_no_chain_read_nothing_about_one(store: Store) -> None:
    book = book_of(store)
    assert (await book.authorise(invoke(policy=ANYONE), [], call=call(1))).code == "open"
    assert (await book.authorise(invoke(policy=NOBODY), [], call=call(1))).code == "not-allowed"


async def test_valid_when_sent_and_revoked_when_run(store: Store) -> None:
    """The call was accepted, and waited; the revocation arrived; the call does not start."""
    links = chain(Grant(PROVIDER, AGENCY, "invoke delegate"), Grant(AGENCY, AGENT).only(max_calls=5))
    await known(store, *links)
    book = book_of(store)
    assert (await book.explain(invoke(), ids(links))).allowed
    await known(store, revoked(links[0], PROVIDER))
    verdict = await book.authorise(invoke(), ids(links), call=call(1))
    assert (verdict.code, verdict.allowed) == ("delegation-revoked", False)
    assert await counted(store, links[0], links[1]) == 0


async def test_a_call_that_was_counted_and_has_not_started_is_stopped_by_a_revocation_too(store: Store) -> None:
    links = chain(Grant(PROVIDER, AGENT).only(max_calls=5))
    await known(store, *links)
    book = book_of(store)
    assert await allowed(book, links, [1]) == [1]
    await known(store, revoked(links[0], PROVIDER))
    assert await allowed(book, links, [1]) == []


async def test_the_revocation_of_any_link_stops_the_call(store: Store) -> None:
    links = long_chain(4)
    await known(store, *links)
    holders = [PROVIDER, *CROWD[:3]]
    for number in (3, 2, 1, 0):
        await known(store, revoked(links[number], holders[number]))
        verdict = await book_of(store).explain(invoke(), ids(links))
        assert (verdict.code, verdict.links[number].problems[0].code) == ("delegation-revoked", "delegation-revoked")


async def test_revocations_of_issuers_who_are_wrongly_in_the_chain_are_not_even_read() -> None:
    """Whoever merely names a delegation cannot make the provider read thousands of revocations of their own."""
    asked: list[SignedObject] = []

    class Watched(Catalog):
        async def revocations_of(self, links: Sequence[SignedObject]) -> list[SignedObject]:
            asked.extend(links)
            return await super().revocations_of(links)

    parent = Grant(PROVIDER, AGENCY, "invoke delegate").sign()
    links = [parent, Grant(STRANGER, AGENT).sign(parent.id)]
    store, clock = MemoryStore(), Clock()
    await known(store, *links)
    book = DelegationBook(store, Watched(store, clock), clock)
    assert (await book.explain(invoke(), ids(links))).code == "wrong-issuer"
    assert asked == [parent]


async def test_a_chain_is_walked_up_from_its_last_link(store: Store) -> None:
    links = long_chain(8)
    await known(store, *links)
    book = book_of(store)
    assert list(await book.chain_to(links[-1].id)) == links
    assert await book.chain_to(call(1)) == (call(1),)


async def test_a_chain_is_walked_up_as_far_as_it_is_known(store: Store) -> None:
    links = long_chain(3)
    await known(store, *links[1:])
    assert await book_of(store).chain_to(links[-1].id) == (links[0].id, links[1], links[2])


async def test_a_walk_up_ends_a_link_beyond_the_limit() -> None:
    class Counting(MemoryStore):
        reads = 0

        async def get_object(self, id: ContentId) -> SignedObject | None:
            self.reads += 1
            return await super().get_object(id)

    links, store = long_chain(12), Counting()
    await known(store, *links)
    assert len(await book_of(store).chain_to(links[-1].id)) == 9
    assert store.reads == 9


async def test_a_verdict_raises_for_a_caller_who_wants_only_yes(store: Store) -> None:
    verdict = await book_of(store).explain(invoke(STRANGER), [])
    with pytest.raises(InvalidError) as caught:
        verdict.require()
    assert caught.value.code == "no-delegation"
