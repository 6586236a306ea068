"""What every store does with objects: outcomes, slots, equivocation, quotas, expiry."""

from __future__ import annotations

import pytest
from store_objects import (
    ALICE,
    BOB,
    NOW,
    OpenStore,
    delegation,
    identity_record,
    manifest,
    offer,
    revocation,
    withdrawal,
)

from bnw.objects.rules import slot_of
from bnw.objects.signed import SignedObject
from bnw.store.interface import PutOutcome, Quota, Store
from bnw.store.limits import MAX_PROOFS_PER_SIGNER, MAX_SUPERSEDED_PER_SIGNER, RESERVED_OBJECTS
from bnw.wire.content_id import content_id
from bnw.wire.errors import InvalidError
from bnw.wire.limits import HOUR

pytestmark = pytest.mark.anyio

ADDED, KNOWN, SUPERSEDED = PutOutcome.ADDED, PutOutcome.KNOWN, PutOutcome.SUPERSEDED
EQUIVOCATION, OVER_QUOTA = PutOutcome.EQUIVOCATION, PutOutcome.OVER_QUOTA


async def put(store: Store, *objects: SignedObject, now: int = NOW) -> list[PutOutcome]:
    return await store.put_objects(objects, now=now)


async def holder(store: Store, obj: SignedObject) -> SignedObject | None:
    """What holds the slot that `obj` is for."""
    slot = slot_of(obj)
    assert slot is not None
    return await store.held_in_slot(slot)


def contradiction(sequence: int = 1, capability: str = "summarise") -> tuple[SignedObject, SignedObject]:
    """Two offers of the same sequence, the winning one (the one with the lower id) first."""
    first, second = (offer(sequence, capability=capability, text=text) for text in "ab")
    return (first, second) if first.id < second.id else (second, first)


async def test_an_object_reads_back_whole(store: Store) -> None:
    obj = manifest()
    assert await put(store, obj) == [ADDED]
    assert await store.get_object(obj.id) == obj
    assert await store.held_in_slot(slot_of(obj) or b"") == obj


async def test_what_was_never_put_is_not_there(store: Store) -> None:
    assert await store.get_object(content_id(b"nothing")) is None
    assert await store.held_in_slot(b"nothing") is None
    assert await put(store) == []


async def test_the_same_object_again_is_known_also_within_one_batch(store: Store) -> None:
    obj = offer()
    assert await put(store, obj, obj) == [ADDED, KNOWN]
    assert await put(store, obj) == [KNOWN]


async def test_outcomes_come_in_the_order_of_the_objects(store: Store) -> None:
    old, new = offer(1), offer(2)
    assert await put(store, new, revocation(), old, new) == [ADDED, ADDED, SUPERSEDED, KNOWN]


async def test_a_higher_sequence_takes_the_slot_and_the_old_object_goes(store: Store) -> None:
    old, new = offer(1), offer(2)
    assert await put(store, old) == [ADDED]
    assert await put(store, new) == [ADDED]
    assert await holder(store, old) == new
    assert await store.get_object(old.id) is None
    assert await put(store, old) == [SUPERSEDED]


async def test_a_withdrawal_takes_the_slot_of_the_manifest(store: Store) -> None:
    await put(store, manifest(1), withdrawal(2))
    assert await holder(store, manifest(1)) == withdrawal(2)
    assert await store.list_objects(kind="capability-manifest", now=NOW) == []


async def test_slots_of_different_signers_names_and_kinds_do_not_meet(store: Store) -> None:
    objects = [
        manifest(),
        manifest(key=BOB),
        manifest(name="translate"),
        offer(),
        offer(key=BOB),
        offer(capability="translate"),
        identity_record(),
        identity_record(key=BOB),
    ]
    assert await put(store, *objects) == [ADDED] * len(objects)
    assert [await holder(store, obj) for obj in objects] == objects


async def test_superseded_objects_are_not_missing(store: Store) -> None:
    """Otherwise reconciliation would fetch the same loser from every peer that still has it."""
    replaced, late, held = offer(2), offer(1), offer(3)
    unknown = [offer(4).id, content_id(b"unknown"), offer(9, key=BOB).id]
    await put(store, replaced, held, late)
    assert await store.missing_objects([unknown[0], replaced.id, held.id, *unknown[1:], late.id]) == unknown


async def test_superseded_ids_are_bounded_per_signer_and_the_oldest_are_forgotten(store: Store) -> None:
    count = MAX_SUPERSEDED_PER_SIGNER + 3
    losers = [offer(number) for number in range(1, count + 1)]
    theirs = [offer(1, key=BOB), offer(2, key=BOB)]
    await put(store, *theirs)
    await put(store, offer(count + 1), *losers)
    assert await store.missing_objects([theirs[0].id, *(obj.id for obj in losers)]) == [obj.id for obj in losers[:3]]


@pytest.mark.parametrize("winner_first", [True, False])
async def test_of_a_contradiction_the_lower_id_holds_the_slot_and_both_are_kept(
    store: Store, winner_first: bool
) -> None:
    winner, loser = contradiction()
    arriving = (winner, loser) if winner_first else (loser, winner)
    assert await put(store, *arriving) == [ADDED, EQUIVOCATION]
    assert await holder(store, winner) == winner
    assert await store.equivocations() == [(winner, loser)]
    assert await store.get_object(loser.id) == loser
    assert await store.get_blob(loser.id) == loser.data
    assert await store.missing_objects([winner.id, loser.id]) == []
    assert await put(store, *arriving) == [KNOWN, KNOWN]
    assert await store.list_objects(kind="provider-offer", now=NOW) == [winner]
    assert (await store.statistics()).objects == 1


async def test_the_proof_outlives_the_next_holder_of_the_slot(store: Store) -> None:
    winner, loser = contradiction()
    await put(store, winner, loser, offer(2))
    assert await holder(store, winner) == offer(2)
    assert await store.equivocations() == [(winner, loser)]
    assert await store.get_object(winner.id) == winner


async def test_a_third_contradiction_is_told_but_proves_nothing_new(store: Store) -> None:
    lowest, middle, highest = sorted((offer(text=text) for text in "abc"), key=lambda obj: obj.id)
    assert await put(store, middle, highest, lowest) == [ADDED, EQUIVOCATION, EQUIVOCATION]
    assert await holder(store, lowest) == lowest
    assert await store.equivocations() == [(middle, highest)]
    assert await put(store, lowest, middle, highest) == [KNOWN] * 3


async def test_proofs_are_bounded_per_signer_and_losers_beyond_are_still_not_missing(store: Store) -> None:
    pairs = [contradiction(capability=str(number)) for number in range(MAX_PROOFS_PER_SIGNER + 2)]
    for winner, loser in pairs:
        assert await put(store, loser, winner) == [ADDED, EQUIVOCATION]
    kept = sorted(pairs[:MAX_PROOFS_PER_SIGNER], key=lambda pair: pair[0].id)
    assert await store.equivocations() == kept
    assert await store.equivocations(limit=2) == kept[:2]
    assert await store.get_object(pairs[-1][1].id) is None
    assert await store.missing_objects([pairs[-1][1].id]) == []
    bobs = sorted((offer(key=BOB, text=text) for text in "ab"), key=lambda obj: obj.id)
    assert await put(store, *bobs) == [ADDED, EQUIVOCATION]
    assert len(await store.equivocations()) == MAX_PROOFS_PER_SIGNER + 1


async def test_a_proof_is_kept_until_both_objects_have_expired(store: Store) -> None:
    short, long = offer(expires=10), offer(expires=20)
    await put(store, short, long)
    assert await store.remove_expired(now=NOW + 10) == (1 if short.id < long.id else 0)
    assert len(await store.equivocations()) == 1
    await store.remove_expired(now=NOW + 20)
    assert await store.equivocations() == []
    assert await store.get_object(short.id) is None


async def test_a_signer_over_its_object_quota_gets_nothing_more_in_but_others_do(open_store: OpenStore) -> None:
    async with open_store(Quota(objects=2)) as store:
        assert await put(store, *(delegation(number) for number in range(3))) == [ADDED, ADDED, OVER_QUOTA]
        assert await put(store, delegation(2)) == [OVER_QUOTA]
        assert await put(store, delegation(2, key=BOB)) == [ADDED]
        assert await store.get_object(delegation(2).id) is None
        assert await store.missing_objects([delegation(2).id]) == [delegation(2).id]
        assert [await store.get_object(delegation(number).id) for number in range(2)] == [
            delegation(0),
            delegation(1),
        ]


async def test_a_signer_at_its_quota_can_still_take_back_what_it_has_said_but_not_for_ever(
    open_store: OpenStore,
) -> None:
    async with open_store(Quota(objects=1)) as store:
        assert await put(store, delegation(0), delegation(1)) == [ADDED, OVER_QUOTA]
        assert await put(store, revocation()) == [ADDED]
        many = [withdrawal(name=f"n{number}") for number in range(RESERVED_OBJECTS + 1)]
        outcomes = await put(store, *many)
        assert outcomes.count(ADDED) == RESERVED_OBJECTS - 1
        assert await put(store, delegation(1)) == [OVER_QUOTA]


@pytest.mark.parametrize("spare", [0, len(delegation().data) - 1])
async def test_the_byte_quota_counts_whole_envelopes_exactly(open_store: OpenStore, spare: int) -> None:
    async with open_store(Quota(bytes=2 * len(delegation().data) + spare)) as store:
        assert await put(store, *(delegation(number) for number in range(3))) == [ADDED, ADDED, OVER_QUOTA]


async def test_replacing_within_a_slot_works_at_the_quota(open_store: OpenStore) -> None:
    first = offer(1)
    async with open_store(Quota(objects=1, bytes=len(first.data))) as store:
        assert await put(store, first, offer(2), delegation()) == [ADDED, ADDED, OVER_QUOTA]
        longer = offer(3, text="a longer endpoint than before")
        assert await put(store, longer) == [OVER_QUOTA]
        assert await holder(store, first) == offer(2)
        assert await put(store, offer(4)) == [ADDED]


async def test_replacing_does_not_use_up_the_quota(open_store: OpenStore) -> None:
    async with open_store(Quota(objects=2)) as store:
        assert await put(store, *(offer(number) for number in range(1, 30))) == [ADDED] * 29
        assert await put(store, delegation(1), delegation(2)) == [ADDED, OVER_QUOTA]


async def test_expired_objects_do_not_use_up_the_quota(open_store: OpenStore) -> None:
    async with open_store(Quota(objects=1)) as store:
        assert await put(store, delegation(1, expires=10)) == [ADDED]
        assert await put(store, delegation(2), now=NOW + 9) == [OVER_QUOTA]
        assert await put(store, delegation(2), now=NOW + 10) == [ADDED]


async def test_an_expired_object_is_not_put_and_nothing_beside_it(store: Store) -> None:
    with pytest.raises(InvalidError) as caught:
        await put(store, delegation(1), delegation(2, expires=10), now=NOW + 10)
    assert caught.value.code == "expired"
    assert await store.get_object(delegation(1).id) is None
    with pytest.raises(InvalidError):
        await store.put_record_with_objects("t", b"k", b"v", [delegation(2, expires=10)], now=NOW + 10)
    assert await store.get_record("t", b"k") is None


async def test_an_expired_object_does_not_keep_its_slot(store: Store) -> None:
    await put(store, offer(5, expires=10))
    assert await put(store, offer(4), now=NOW + 10) == [ADDED]
    assert await holder(store, offer(4)) == offer(4)


async def test_expired_objects_vanish_from_lists_at_once_and_from_the_store_when_removed(store: Store) -> None:
    short, long = delegation(1, expires=10), delegation(2, expires=20)
    await put(store, short, long)
    assert await store.list_objects(kind="delegation", now=NOW + 9) == sorted((short, long), key=lambda obj: obj.id)
    assert await store.list_objects(kind="delegation", now=NOW + 10) == [long]
    assert await store.get_object(short.id) == short
    assert await store.remove_expired(now=NOW + 9) == 0
    assert await store.remove_expired(now=NOW + 10) == 1
    assert await store.get_object(short.id) is None
    assert await store.remove_expired(now=NOW + 20) == 1
    assert (await store.statistics()).objects == 0


async def test_removal_forgets_superseded_ids_when_their_objects_expire(store: Store) -> None:
    old = offer(1, expires=10)
    await put(store, old, offer(2))
    await store.remove_expired(now=NOW + 9)
    assert await store.missing_objects([old.id]) == []
    await store.remove_expired(now=NOW + 10)
    assert await store.missing_objects([old.id]) == [old.id]


async def test_many_expired_objects_are_all_removed(open_store: OpenStore) -> None:
    async with open_store(Quota(objects=5000)) as store:
        objects = [delegation(number, expires=10) for number in range(2100)]
        await put(store, *objects, delegation(1))
        assert await store.remove_expired(now=NOW + 10) == 2100
        assert (await store.statistics()).objects == 1


async def test_lists_are_ordered_by_id_and_paged(store: Store) -> None:
    objects = [delegation(number) for number in range(7)] + [delegation(number, key=BOB) for number in range(3)]
    await put(store, *objects, offer())
    objects.sort(key=lambda obj: obj.id)
    listed = []
    after = None
    while page := await store.list_objects(kind="delegation", now=NOW, after=after, limit=3):
        assert len(page) <= 3
        listed += page
        after = page[-1].id
    assert listed == objects


async def test_lists_by_signer_hold_only_theirs(store: Store) -> None:
    mine, theirs = [delegation(number) for number in range(4)], [delegation(9, key=BOB)]
    await put(store, *mine, *theirs, offer(), offer(key=BOB))
    mine.sort(key=lambda obj: obj.id)
    assert await store.list_objects(kind="delegation", now=NOW, signer=ALICE.identity) == mine
    assert await store.list_objects(kind="delegation", now=NOW, signer=BOB.identity) == theirs
    assert await store.list_objects(kind="delegation", now=NOW, signer=ALICE.identity, after=mine[1].id, limit=1) == [
        mine[2]
    ]
    assert await store.list_objects(kind="receipt", now=NOW) == []


async def test_lists_hold_objects_that_expire_after_now_only_up_to_the_limit(store: Store) -> None:
    objects = [delegation(number, expires=HOUR if number % 2 else 10) for number in range(20)]
    await put(store, *objects)
    live = sorted((obj for obj in objects if obj.body.expires > NOW + 10), key=lambda obj: obj.id)
    assert await store.list_objects(kind="delegation", now=NOW + 10, limit=4) == live[:4]
