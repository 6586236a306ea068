"""Scopes: which objects are in which, in what order, and the summary that stands for their contents."""

from __future__ import annotations

import pytest
from store_objects import (
    ALICE,
    BOB,
    CAROL,
    NOW,
    OpenStore,
    cancellation,
    delegation,
    identity_record,
    manifest,
    offer,
    payload_manifest,
    revocation,
    withdrawal,
)

from bnw.objects.signed import SignedObject
from bnw.store.interface import Quota, ScopeSummary, Store
from bnw.store.scopes import inbox_scope, reduce_sum, scope_key
from bnw.wire.content_id import ContentId
from bnw.wire.errors import InvalidError

pytestmark = pytest.mark.anyio

CATALOG = "catalog"
EMPTY = ScopeSummary(0, bytes(32))


def summary_of(*objects: SignedObject) -> ScopeSummary:
    """The definition, worked out byte by byte with a carry and not with large integers."""
    total = [0] * 32
    for obj in objects:
        carry = 0
        for place, byte in enumerate(obj.id):
            carry += total[place] + byte
            total[place] = carry & 0xFF
            carry >>= 8
    return ScopeSummary(len(objects), bytes(total))


def ids(*objects: SignedObject) -> list[ContentId]:
    return sorted(obj.id for obj in objects)


async def test_all_catalog_kinds_are_in_the_catalog_and_nothing_else_is(store: Store) -> None:
    objects = [identity_record(), manifest(), withdrawal(name="x"), offer(), delegation(), revocation()]
    await store.put_objects([*objects, cancellation(), payload_manifest(BOB)], now=NOW)
    assert await store.scope_ids(CATALOG, now=NOW) == ids(*objects)
    assert await store.scope_summary(CATALOG, now=NOW) == summary_of(*objects)


async def test_an_object_is_in_the_inbox_of_every_recipient_and_not_in_the_senders(store: Store) -> None:
    both, bobs = payload_manifest(BOB, CAROL), cancellation(to=BOB)
    await store.put_objects([both, bobs], now=NOW)
    assert await store.scope_ids(inbox_scope(BOB.identity), now=NOW) == ids(both, bobs)
    assert await store.scope_ids(inbox_scope(CAROL.identity), now=NOW) == ids(both)
    assert await store.scope_ids(inbox_scope(ALICE.identity), now=NOW) == []
    assert await store.scope_summary(inbox_scope(CAROL.identity), now=NOW) == summary_of(both)
    assert await store.scope_ids(CATALOG, now=NOW) == []


async def test_an_empty_scope_has_an_empty_summary(store: Store) -> None:
    assert await store.scope_summary(CATALOG, now=NOW) == EMPTY
    assert await store.scope_summary(inbox_scope(BOB.identity), now=NOW) == EMPTY


def test_the_sum_of_ids_is_little_endian_and_wraps_round() -> None:
    assert reduce_sum(1) == b"\x01" + bytes(31)
    assert reduce_sum(2**256) == bytes(32)
    assert reduce_sum(-1) == b"\xff" * 32


async def test_ids_are_paged_in_ascending_order(store: Store) -> None:
    objects = [delegation(number) for number in range(10)]
    await store.put_objects(objects, now=NOW)
    paged: list[ContentId] = []
    while page := await store.scope_ids(CATALOG, now=NOW, after=paged[-1] if paged else None, limit=4):
        assert len(page) <= 4
        paged += page
    assert paged == ids(*objects)


async def test_expired_objects_are_not_on_offer_whether_removed_or_not(store: Store) -> None:
    short, long = delegation(1, expires=10), delegation(2, expires=20)
    mail = cancellation(expires=10)
    await store.put_objects([short, long, mail], now=NOW)
    assert await store.scope_summary(CATALOG, now=NOW + 9) == summary_of(short, long)
    for removed in (0, 2):
        assert await store.scope_ids(CATALOG, now=NOW + 10) == ids(long)
        assert await store.scope_summary(CATALOG, now=NOW + 10) == summary_of(long)
        assert await store.scope_summary(inbox_scope(BOB.identity), now=NOW + 10) == EMPTY
        assert await store.remove_expired(now=NOW + 10) == 2 - removed


async def test_replaced_objects_and_losers_of_a_contradiction_are_not_on_offer(store: Store) -> None:
    winner, loser = sorted((offer(text=text) for text in "ab"), key=lambda obj: obj.id)
    await store.put_objects([manifest(1), manifest(2), loser, winner], now=NOW)
    assert await store.scope_ids(CATALOG, now=NOW) == ids(manifest(2), winner)
    assert await store.scope_summary(CATALOG, now=NOW) == summary_of(manifest(2), winner)


async def test_objects_over_quota_are_not_in_the_summary(open_store: OpenStore) -> None:
    async with open_store(Quota(objects=1)) as store:
        await store.put_objects([delegation(1), delegation(2)], now=NOW)
        assert await store.scope_summary(CATALOG, now=NOW) == summary_of(delegation(1))


async def test_inbox_objects_are_not_counted_against_the_catalog_quota(open_store: OpenStore) -> None:
    async with open_store(Quota(objects=1)) as store:
        await store.put_objects([delegation(), *(cancellation(number) for number in range(5))], now=NOW)
        assert (await store.scope_summary(inbox_scope(BOB.identity), now=NOW)).count == 5


@pytest.mark.parametrize("scope", ["", "Catalog", "inbox", "inbox:", "inbox:did:key:z6Mk", "catalog:x", "x" * 500])
async def test_what_is_not_a_scope_is_refused(store: Store, scope: str) -> None:
    with pytest.raises(InvalidError) as caught:
        await store.scope_ids(scope, now=NOW)
    assert caught.value.code in ("scope", "did-key")
    with pytest.raises(InvalidError):
        await store.scope_summary(scope, now=NOW)


def test_the_text_of_an_inbox_scope_is_the_identity_in_did_key_form() -> None:
    scope = inbox_scope(ALICE.identity)
    assert scope.startswith("inbox:did:key:z6Mk")
    assert scope_key(scope) == ALICE.identity
