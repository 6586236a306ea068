"""What reconciliation asks of a store: the items of a scope with their times, objects of a scope, news of changes."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from store_objects import BOB, CAROL, NOW, OpenStore, cancellation, delegation, manifest, offer, payload_manifest

from bnw.objects.signed import SignedObject
from bnw.store.interface import Quota, ScopeChange, ScopeItem, Store
from bnw.store.scopes import inbox_scope
from bnw.wire.errors import InvalidError

pytestmark = pytest.mark.anyio

CATALOG = "catalog"


def item(obj: SignedObject) -> ScopeItem:
    return ScopeItem(obj.body.created, obj.id)


def items(*objects: SignedObject) -> list[ScopeItem]:
    return sorted(map(item, objects), key=lambda item: item.id)


class Watcher:
    """Keeps what it is told."""

    def __init__(self) -> None:
        self.told: list[ScopeChange] = []

    def __call__(self, changes: Sequence[ScopeChange]) -> None:
        assert changes
        self.told += changes

    def take(self) -> list[tuple[str, bytes]]:
        """What has been told since the last time: + or -, and the id."""
        told, self.told = self.told, []
        return [("+" if added else "-", item.id) for item, added in told]


async def test_items_carry_the_time_at_which_an_object_says_it_was_created(store: Store) -> None:
    objects = [manifest(), offer(), *(delegation(number) for number in range(10))]
    await store.put_objects([*objects, cancellation()], now=NOW)
    assert await store.scope_items(CATALOG, now=NOW) == items(*objects)
    assert await store.scope_items(inbox_scope(BOB.identity), now=NOW) == items(cancellation())


async def test_items_are_paged_by_id(store: Store) -> None:
    objects = [delegation(number) for number in range(10)]
    await store.put_objects(objects, now=NOW)
    paged: list[ScopeItem] = []
    while page := await store.scope_items(CATALOG, now=NOW, after=paged[-1].id if paged else None, limit=4):
        paged += page
    assert paged == items(*objects)


async def test_expired_items_are_listed_apart_until_they_are_removed(store: Store) -> None:
    short, shorter, long = delegation(1, expires=10), delegation(2, expires=5), delegation(3, expires=20)
    await store.put_objects([short, shorter, long, cancellation(expires=5)], now=NOW)
    assert await store.expired_items(CATALOG, now=NOW + 4) == []
    assert await store.expired_items(CATALOG, now=NOW + 10) == items(short, shorter)
    assert await store.scope_items(CATALOG, now=NOW + 10) == items(long)
    await store.remove_expired(now=NOW + 10)
    assert await store.expired_items(CATALOG, now=NOW + 10) == []


async def test_only_live_objects_of_the_very_scope_are_read_by_id(store: Store) -> None:
    live, expired, bobs, both = delegation(1), delegation(2, expires=10), cancellation(), payload_manifest(BOB, CAROL)
    await store.put_objects([live, expired, bobs, both], now=NOW)
    ids = [both.id, bobs.id, expired.id, live.id, delegation(3).id]
    assert await store.scope_objects(CATALOG, ids, now=NOW + 10) == [live.data]
    assert await store.scope_objects(inbox_scope(BOB.identity), ids, now=NOW) == [both.data, bobs.data]
    assert await store.scope_objects(inbox_scope(CAROL.identity), ids, now=NOW) == [both.data]


async def test_objects_kept_only_as_proof_are_not_read_as_part_of_a_scope(store: Store) -> None:
    winner, loser = sorted((offer(text=text) for text in "ab"), key=lambda obj: obj.id)
    await store.put_objects([winner, loser], now=NOW)
    assert await store.scope_objects(CATALOG, [winner.id, loser.id], now=NOW) == [winner.data]


async def test_a_watcher_is_told_of_every_change_before_the_call_returns(store: Store) -> None:
    watcher = Watcher()
    store.watch_scope(CATALOG, watcher)
    await store.put_objects([offer(1), cancellation()], now=NOW)
    assert watcher.take() == [("+", offer(1).id)]
    await store.put_objects([offer(1)], now=NOW)
    assert watcher.take() == [], "known"
    await store.put_objects([offer(3), offer(2)], now=NOW)
    assert watcher.take() == [("-", offer(1).id), ("+", offer(3).id)], "replaced, and superseded"
    await store.put_record_with_objects("table", b"key", b"value", [delegation(1, expires=10)], now=NOW)
    assert watcher.take() == [("+", delegation(1, expires=10).id)]
    await store.remove_expired(now=NOW + 10)
    assert watcher.take() == [("-", delegation(1, expires=10).id)]


async def test_a_change_is_told_with_the_same_item_that_the_scope_lists(store: Store) -> None:
    watcher = Watcher()
    store.watch_scope(CATALOG, watcher)
    await store.put_objects([offer(1)], now=NOW)
    await store.put_objects([offer(2)], now=NOW)
    assert [change.item for change in watcher.told] == [item(offer(1)), item(offer(1)), item(offer(2))]


async def test_an_expired_object_that_makes_room_is_told_as_removed(open_store: OpenStore) -> None:
    async with open_store(Quota(objects=1)) as store:
        watcher = Watcher()
        store.watch_scope(CATALOG, watcher)
        old, new = delegation(1, expires=10), delegation(2)
        await store.put_objects([old], now=NOW)
        await store.put_objects([new], now=NOW + 10)
        assert watcher.take() == [("+", old.id), ("-", old.id), ("+", new.id)]


async def test_a_put_that_fails_is_not_told(store: Store) -> None:
    watcher = Watcher()
    store.watch_scope(CATALOG, watcher)
    with pytest.raises(InvalidError):
        await store.put_objects([delegation(1), delegation(2, expires=-1)], now=NOW)
    assert watcher.take() == []


async def test_every_inbox_of_an_object_is_told_and_no_other(store: Store) -> None:
    watchers = {key: Watcher() for key in (BOB, CAROL)}
    for key, watcher in watchers.items():
        store.watch_scope(inbox_scope(key.identity), watcher)
    await store.put_objects([payload_manifest(BOB, CAROL), cancellation(to=BOB)], now=NOW)
    assert len(watchers[BOB].take()) == 2
    assert len(watchers[CAROL].take()) == 1


async def test_who_has_stopped_watching_is_told_nothing_more(store: Store) -> None:
    staying, leaving = Watcher(), Watcher()
    store.watch_scope(CATALOG, staying)
    stop = store.watch_scope(CATALOG, leaving)
    await store.put_objects([delegation(1)], now=NOW)
    stop()
    await store.put_objects([delegation(2)], now=NOW)
    assert (len(staying.take()), len(leaving.take())) == (2, 1)


async def test_what_is_not_a_scope_is_refused(store: Store) -> None:
    with pytest.raises(InvalidError):
        store.watch_scope("no scope", Watcher())
    with pytest.raises(InvalidError):
        await store.scope_items("no scope", now=NOW)
