"""Counters of delegated calls are exact: with calls at once, repeats, restarts, and a crash at every single write."""

from __future__ import annotations

from pathlib import Path

import anyio
import pytest
from authority_book import allowed, book_of, call, counted, known
from authority_objects import AGENCY, AGENT, CROWD, NOW, PROVIDER, STRANGER, Clock, Grant, chain, ids, invoke

from bnw.identity.keys import SigningKey
from bnw.invoke.authority import ledger
from bnw.invoke.authority.ledger import MAX_COUNTERS_PER_ROOT, RECENT_CALLS, Counter
from bnw.objects.signed import SignedObject
from bnw.store.interface import Store
from bnw.store.memory import MemoryStore
from bnw.store.sqlite import SqliteStore
from bnw.wire.errors import LocalError
from bnw.wire.limits import DAY, HOUR, MINUTE

pytestmark = pytest.mark.anyio


async def test_calls_are_let_through_as_often_as_granted(store: Store) -> None:
    links = chain(Grant(PROVIDER, AGENT).only(max_calls=3))
    await known(store, *links)
    assert await allowed(book_of(store), links, range(5)) == [0, 1, 2]


async def test_explaining_uses_nothing_up(store: Store) -> None:
    links = chain(Grant(PROVIDER, AGENT).only(max_calls=1))
    await known(store, *links)
    book = book_of(store)
    for _ in range(3):
        assert (await book.explain(invoke(), ids(links))).allowed
    assert await allowed(book, links, [1, 2]) == [1]
    assert (await book.explain(invoke(), ids(links))).code == "calls-used-up"


async def test_refused_calls_use_nothing_up(store: Store) -> None:
    links = chain(Grant(PROVIDER, AGENT).only(max_calls=1, max_input_bytes=10))
    await known(store, *links)
    book = book_of(store)
    refused = await book.authorise(invoke(size=11), ids(links), call=call(1))
    stolen = await book.authorise(invoke(STRANGER, size=1), ids(links), call=call(2))
    assert (refused.code, stolen.code) == ("input-too-large", "wrong-audience")
    assert (await book.authorise(invoke(size=10), ids(links), call=call(3))).allowed


async def test_calls_at_once_get_no_more_than_granted(store: Store) -> None:
    links = chain(Grant(PROVIDER, AGENT).only(max_calls=5))
    await known(store, *links)
    book = book_of(store)
    through: list[int] = []

    async def ask(number: int) -> None:
        if (await book.authorise(invoke(), ids(links), call=call(number))).allowed:
            through.append(number)

    async with anyio.create_task_group() as group:
        for number in range(40):
            group.start_soon(ask, number)
    assert len(through) == 5


async def test_the_same_call_counts_once_however_often_it_asks(store: Store) -> None:
    links = chain(Grant(PROVIDER, AGENT).only(max_calls=2))
    await known(store, *links)
    assert await allowed(book_of(store), links, [1, 1, 1, 2, 1, 2, 3]) == [1, 1, 1, 2, 1, 2]


async def test_all_that_hangs_below_a_link_shares_its_count(store: Store) -> None:
    top = Grant(PROVIDER, AGENCY, "invoke delegate").only(max_calls=3).sign()
    branches = {key: Grant(AGENCY, key).sign(top.id) for key in (AGENT, STRANGER)}
    await known(store, top, *branches.values())
    book = book_of(store)

    async def ask(key: SigningKey, number: int) -> str:
        return (await book.authorise(invoke(key), (top.id, branches[key].id), call=call(number))).code

    answers = [await ask(key, number) for number, key in enumerate((AGENT, STRANGER, AGENT, STRANGER, AGENT))]
    assert answers == ["delegated"] * 3 + ["calls-used-up"] * 2


async def test_a_refusal_by_one_link_uses_up_none_of_the_others(store: Store) -> None:
    links = chain(Grant(PROVIDER, AGENCY, "invoke delegate").only(max_calls=9), Grant(AGENCY, AGENT).only(max_calls=1))
    await known(store, *links)
    assert await allowed(book_of(store), links, [1, 2, 3]) == [1]
    assert [await counted(store, links[0], link) for link in links] == [1, 1]


async def test_a_rate_holds_over_any_hour_and_then_calls_go_on(store: Store) -> None:
    links = chain(Grant(PROVIDER, AGENT).only(max_calls_per_hour=2))
    await known(store, *links)
    clock = Clock()
    book = book_of(store, clock)
    assert await allowed(book, links, [1, 2, 3]) == [1, 2]
    clock.now += HOUR
    assert await allowed(book, links, [4]) == []
    clock.now += MINUTE
    assert await allowed(book, links, [5, 6, 7]) == [5, 6]


async def test_a_refusal_for_rate_says_when_a_call_is_possible_again(store: Store) -> None:
    links = chain(Grant(PROVIDER, AGENT).only(max_calls_per_hour=1))
    await known(store, *links)
    book = book_of(store)
    await allowed(book, links, [1])
    verdict = await book.explain(invoke(), ids(links))
    assert (verdict.code, verdict.cure) == ("rate-exceeded", "try again at 2023-11-15 00:14:00 UTC")


async def test_counters_survive_a_restart(tmp_path: Path) -> None:
    links = chain(Grant(PROVIDER, AGENT).only(max_calls=3))
    for numbers, expected in (((1, 2), [1, 2]), ((3, 4), [3]), ((5,), [])):
        async with SqliteStore.open(tmp_path / "store") as store:
            await known(store, *links)
            assert await allowed(book_of(store), links, numbers) == expected


async def test_a_call_that_a_restart_takes_up_again_is_not_counted_again(tmp_path: Path) -> None:
    links = chain(Grant(PROVIDER, AGENT).only(max_calls=1))
    for _ in range(3):
        async with SqliteStore.open(tmp_path / "store") as store:
            await known(store, *links)
            assert await allowed(book_of(store), links, [1, 2]) == [1]


class Crash(Exception):
    pass


class CrashingStore(MemoryStore):
    """Crashes at one write of a counter: before it is kept, or after."""

    def __init__(self, at: int, kept: bool) -> None:
        super().__init__()
        self.writes_left: int | None = at
        self.kept = kept

    async def put_record(self, table: str, key: bytes, value: bytes) -> None:
        if self.writes_left is None or table != Counter.TABLE:
            await super().put_record(table, key, value)
            return
        if self.writes_left == 0:
            self.writes_left = None
            if self.kept:
                await super().put_record(table, key, value)
            raise Crash
        self.writes_left -= 1
        await super().put_record(table, key, value)


@pytest.mark.parametrize("kept", [False, True])
@pytest.mark.parametrize("at", range(8))
async def test_a_crash_at_any_write_loses_no_call_and_grants_none(at: int, kept: bool) -> None:
    """The journal has the call, so the next start asks again; then every link has counted it exactly once."""
    people = [PROVIDER, *CROWD[:7], AGENT]
    links = chain(*(Grant(people[n], people[n + 1], "invoke delegate").only(max_calls=2) for n in range(8)))
    store = CrashingStore(at, kept)
    await known(store, *links)
    with pytest.raises(Crash):
        await book_of(store).authorise(invoke(), ids(links), call=call(1))
    restarted = book_of(store)
    assert await allowed(restarted, links, [1, 2, 3]) == [1, 2]
    assert [await counted(store, links[0], link) for link in links] == [2] * 8


async def test_a_full_disk_refuses_and_the_next_try_counts_once() -> None:
    class Full(MemoryStore):
        full = True

        async def put_record(self, table: str, key: bytes, value: bytes) -> None:
            if self.full:
                raise LocalError("disk-full", "there is no room to write")
            await super().put_record(table, key, value)

    links = chain(Grant(PROVIDER, AGENT).only(max_calls=1))
    store = Full()
    await known(store, *links)
    book = book_of(store)
    with pytest.raises(LocalError, match="no room"):
        await book.authorise(invoke(), ids(links), call=call(1))
    store.full = False
    assert await allowed(book, links, [1, 2]) == [1]


# Bounds


async def test_a_counter_stays_small_and_counts_on_when_it_forgets_old_calls(store: Store) -> None:
    many = RECENT_CALLS + 10
    links = chain(Grant(PROVIDER, AGENT).only(max_calls=many))
    await known(store, *links)
    assert len(await allowed(book_of(store), links, range(many + 1))) == many
    data = await store.get_record(Counter.TABLE, links[0].id + links[0].id)
    assert data is not None
    assert len(data) < 4096


async def test_a_repeat_within_one_run_is_known_even_when_the_counter_has_forgotten_it(store: Store) -> None:
    many = RECENT_CALLS + 2
    links = chain(Grant(PROVIDER, AGENT).only(max_calls=many))
    await known(store, *links)
    assert len(await allowed(book_of(store), links, [*range(many), 0])) == many + 1


async def test_the_counters_under_one_root_are_bounded_and_others_have_theirs(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever may delegate under one root can fill its room with sub-delegations, but nobody else's."""
    monkeypatch.setattr(ledger, "MAX_COUNTERS_PER_ROOT", 3)
    top = Grant(PROVIDER, AGENCY, "invoke delegate").sign()
    below = [Grant(AGENCY, key).only(max_calls=9).sign(top.id) for key in CROWD[:4]]
    other = chain(Grant(PROVIDER, AGENT).only(max_calls=9))
    await known(store, top, *below, *other)
    for book in (book_of(store), book_of(store)):
        answers = [
            await book.authorise(invoke(key), (top.id, link.id), call=call(number))
            for number, (key, link) in enumerate(zip(CROWD, below, strict=False))
        ]
        assert [answer.code for answer in answers] == ["delegated"] * 3 + ["counters-full"]
        assert not answers[3].allowed
        assert answers[3].cure
        assert await allowed(book, other, [9]) == [9]


async def test_counters_go_when_their_links_have_expired_and_make_room(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ledger, "MAX_COUNTERS_PER_ROOT", 2)
    monkeypatch.setattr(ledger, "PAGE", 2)
    top = Grant(PROVIDER, AGENCY, "invoke delegate").sign()
    ends = (2 * HOUR, 2 * HOUR, DAY)
    below = [Grant(AGENCY, AGENT, end=end).only(max_calls=number + 1).sign(top.id) for number, end in enumerate(ends)]
    await known(store, top, *below)
    clock = Clock()
    book = book_of(store, clock)

    async def ask(link: SignedObject) -> str:
        return (await book.authorise(invoke(), (top.id, link.id), call=call(1))).code

    assert [await ask(link) for link in below] == ["delegated", "delegated", "counters-full"]
    assert await book.remove_expired() == 0
    clock.now = NOW + 2 * HOUR
    assert await book.remove_expired() == 2
    assert await ask(below[2]) == "delegated"
    assert await book.remove_expired() == 0
    assert len(await store.list_records(Counter.TABLE)) == 1


async def test_counters_of_many_roots_are_counted_apart_over_pages(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ledger, "PAGE", 2)
    monkeypatch.setattr(ledger, "MAX_COUNTERS_PER_ROOT", 5)
    tops = [Grant(PROVIDER, AGENCY, "invoke delegate", end=DAY - number).sign() for number in range(3)]
    trees = {
        top: [Grant(AGENCY, AGENT, end=HOUR * 2).only(max_calls=n + 1).sign(top.id) for n in range(6)] for top in tops
    }
    await known(store, *tops, *(link for tree in trees.values() for link in tree))
    for top, tree in trees.items():
        for number, link in enumerate(tree):
            # A new book each time counts what is held anew.
            verdict = await book_of(store).authorise(invoke(), (top.id, link.id), call=call(number))
            assert verdict.code == ("delegated" if number < 5 else "counters-full")


def test_the_room_of_a_root_is_enough_for_a_large_organisation() -> None:
    assert MAX_COUNTERS_PER_ROOT >= 4000


async def test_a_counter_that_cannot_be_read_refuses_loudly(store: Store) -> None:
    links = chain(Grant(PROVIDER, AGENT).only(max_calls=3))
    await known(store, *links)
    await store.put_record(Counter.TABLE, links[0].id + links[0].id, b"\xff")
    with pytest.raises(LocalError) as caught:
        await book_of(store).authorise(invoke(), ids(links), call=call(1))
    assert caught.value.code == "store-damaged"
