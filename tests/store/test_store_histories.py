"""Properties of any history of puts: the two stores agree, and the order of delivery does not matter.

The bounds on memories and proofs are made small here, so that short histories run into them.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from store_objects import (
    ALICE,
    BOB,
    CAROL,
    NOW,
    cancellation,
    delegation,
    manifest,
    offer,
    payload_manifest,
    withdrawal,
)

import bnw.store.placement
from bnw.objects.rules import sequence_of, slot_of
from bnw.objects.signed import SignedObject
from bnw.store.interface import PutOutcome, Quota, Store
from bnw.store.memory import MemoryStore
from bnw.store.scopes import inbox_scope
from bnw.store.sqlite import SqliteStore

REPLACEABLE = [
    *(
        offer(sequence, key=key, text=text, expires=expires)
        for key in (ALICE, BOB)
        for sequence in (1, 2, 3)
        for text in ("a", "b", "a longer endpoint")
        for expires in (3, 6)
    ),
    *(manifest(sequence, expires=expires) for sequence in (1, 2) for expires in (3, 6)),
    withdrawal(2),
    withdrawal(3),
]
POOL = [
    *REPLACEABLE,
    *(delegation(number, expires=expires) for number in range(3) for expires in (3, 6)),
    *(cancellation(number, to=to, expires=3 + number) for number in range(2) for to in (BOB, CAROL)),
    payload_manifest(BOB, CAROL),
]
KINDS = sorted({obj.kind for obj in POOL})
SCOPES = ["catalog", inbox_scope(BOB.identity), inbox_scope(CAROL.identity)]
SLOTS = sorted({slot for obj in POOL if (slot := slot_of(obj)) is not None})

batches = st.lists(st.sampled_from(POOL), min_size=1, max_size=8)
steps = st.one_of(batches, batches, st.just("tick"), st.just("remove"))
histories = st.lists(steps, max_size=20)
quotas = st.sampled_from([Quota(), Quota(objects=3), Quota(bytes=2 * len(REPLACEABLE[0].data) + 20)])


@pytest.fixture(autouse=True, scope="module")
def small_bounds() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bnw.store.placement, "MAX_PROOFS_PER_SIGNER", 2)
        patch.setattr(bnw.store.placement, "MAX_SUPERSEDED_PER_SIGNER", 3)
        yield


async def observe(store: Store, now: int) -> dict[str, object]:
    """Everything that can be seen of the objects in a store."""
    ids = [obj.id for obj in POOL]
    return {
        "kinds": [await store.list_objects(kind=kind, now=now) for kind in KINDS],
        "signers": [await store.list_objects(kind=kind, now=now, signer=ALICE.identity) for kind in KINDS],
        "scopes": [await store.scope_ids(scope, now=now) for scope in SCOPES],
        "summaries": [await store.scope_summary(scope, now=now) for scope in SCOPES],
        "missing": await store.missing_objects(ids),
        "slots": [await store.held_in_slot(slot) for slot in SLOTS],
        "equivocations": await store.equivocations(),
        "statistics": await store.statistics(),
    }


async def play(store: Store, history: Sequence[object], *, remove: bool = True) -> tuple[list[object], int]:
    """Go through a history; gives the outcomes of every step, and the time at the end."""
    now, results = NOW, list[object]()
    for step in history:
        if step == "tick":
            now += 1
        elif step == "remove":
            if remove:
                results.append(await store.remove_expired(now=now))
        else:
            live = [obj for obj in step if obj.body.expires > now]
            results.append(await store.put_objects(live, now=now))
    return results, now


@given(histories, quotas)
@settings(max_examples=80, deadline=None)
def test_both_stores_agree_on_every_history(history: list[object], quota: Quota) -> None:
    async def compare(directory: Path) -> None:
        memory = MemoryStore(quota)
        async with SqliteStore.open(directory, quota) as sqlite:
            expected, now = await play(memory, history)
            assert await play(sqlite, history) == (expected, now)
            assert await observe(sqlite, now) == await observe(memory, now)
        async with SqliteStore.open(directory, quota) as reopened:
            assert await observe(reopened, now) == await observe(memory, now)
            everything = [obj for obj in POOL if obj.body.expires > now]
            assert await reopened.put_objects(everything, now=now) == await memory.put_objects(everything, now=now)
            assert await observe(reopened, now) == await observe(memory, now)

    with tempfile.TemporaryDirectory() as directory:
        anyio.run(compare, Path(directory), backend="trio")


@given(st.lists(st.sampled_from(REPLACEABLE), unique_by=lambda obj: obj.id), st.data())
@settings(deadline=None)
def test_any_order_of_delivery_ends_with_the_same_holders(objects: list[SignedObject], data: st.DataObject) -> None:
    """The winner is worked out here from all objects at once: highest sequence, then lowest id."""

    async def deliver(order: list[SignedObject]) -> None:
        store = MemoryStore()
        for obj in order:
            await store.put_objects([obj], now=NOW)
        winners = {
            min(rivals, key=lambda obj: (-sequence_of(obj.body), obj.id)).id
            for slot in {slot_of(obj) for obj in objects}
            if (rivals := [obj for obj in objects if slot_of(obj) == slot])
        }
        assert await store.scope_ids("catalog", now=NOW) == sorted(winners)
        for obj in objects:
            held = await store.held_in_slot(slot_of(obj) or b"")
            assert held is not None
            assert held.id in winners

    anyio.run(deliver, data.draw(st.permutations(objects)), backend="trio")


@given(histories, quotas)
@settings(deadline=None)
def test_when_expired_objects_are_removed_makes_no_difference_to_outcomes(history: list[object], quota: Quota) -> None:
    async def compare() -> None:
        tidy, lazy = MemoryStore(quota), MemoryStore(quota)
        tidied, now = await play(tidy, history)
        left, _ = await play(lazy, history, remove=False)
        assert left == [result for result in tidied if isinstance(result, list)]
        await tidy.remove_expired(now=now)
        await lazy.remove_expired(now=now)
        assert await observe(lazy, now) == await observe(tidy, now)

    anyio.run(compare, backend="trio")


@given(histories, quotas)
@settings(deadline=None)
def test_nobody_ever_exceeds_a_quota_by_adding(history: list[object], quota: Quota) -> None:
    async def check() -> None:
        store = MemoryStore(quota)
        _, now = await play(store, history)
        for key in (ALICE, BOB):
            held = [
                obj
                for kind in KINDS
                for obj in await store.list_objects(kind=kind, now=now, signer=key.identity)
                if obj.id in await store.scope_ids("catalog", now=now)
            ]
            assert len(held) <= quota.objects
            assert sum(len(obj.data) for obj in held) <= quota.bytes

    anyio.run(check, backend="trio")


def test_the_pool_runs_into_every_outcome() -> None:
    async def outcomes() -> set[PutOutcome]:
        store = MemoryStore(Quota(objects=3))
        return set(await store.put_objects([*POOL, *POOL], now=NOW))

    assert anyio.run(outcomes, backend="trio") == set(PutOutcome)
