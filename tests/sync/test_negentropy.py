"""Reconciliation by messages: it finds exactly the difference, at little cost, whatever the sets and limits are."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from negentropy_items import Item, index_of, make_items, only_in, reconcile

from bnw.sync.negentropy.coding import FINGERPRINT, SKIP, MessageWriter, item_key
from bnw.sync.negentropy.reconciler import MAX_MESSAGE, MIN_FRAME_LIMIT, Initiator, Responder, range_fingerprint
from bnw.wire.errors import InvalidError
from bnw.wire.limits import KIB

limits = st.sampled_from([0, MIN_FRAME_LIMIT, 10_000])


def sides(ours: list[Item], theirs: list[Item], limit: int = 0) -> tuple[Initiator, Responder]:
    return Initiator(index_of(ours), frame_limit=limit), Responder(index_of(theirs), frame_limit=limit)


@given(st.data(), limits, limits)
@settings(max_examples=60, deadline=None)
def test_any_two_sets_are_told_apart_exactly(data: st.DataObject, our_limit: int, their_limit: int) -> None:
    pool = make_items(data.draw(st.sampled_from([0, 1, 5, 40, 400, 2000])), "pool", per_timestamp=4)
    seed = data.draw(st.integers(0, 1000))
    shares = data.draw(st.sampled_from([(1, 1), (0, 1), (1, 0), (0.5, 0.5), (0.99, 0.99), (0.01, 0.99)]))
    draw = random.Random(seed)
    ours, theirs = ([item for item in pool if draw.random() < share] for share in shares)
    outcome = reconcile(
        Initiator(index_of(ours), frame_limit=our_limit), Responder(index_of(theirs), frame_limit=their_limit)
    )
    assert sorted(set(outcome.have)) == only_in(ours, theirs)
    assert sorted(set(outcome.need)) == only_in(theirs, ours)
    assert not our_limit or max(outcome.sent) <= our_limit
    assert not their_limit or max(outcome.received) <= their_limit


def test_a_hundred_differences_in_a_hundred_thousand_take_four_round_trips_and_100_kb_at_most() -> None:
    common = make_items(99_950, "common", per_timestamp=1)
    ours, theirs = common + make_items(50, "ours"), common + make_items(50, "theirs")
    outcome = reconcile(*sides(ours, theirs))
    assert sorted(set(outcome.have)) == only_in(ours, theirs)
    assert sorted(set(outcome.need)) == only_in(theirs, ours)
    assert outcome.round_trips <= 4
    assert sum(outcome.sent) + sum(outcome.received) <= 100_000


def test_equal_sets_take_one_round_trip_and_few_bytes() -> None:
    items = make_items(10_000, "same")
    outcome = reconcile(*sides(items, items))
    assert (outcome.round_trips, outcome.received) == (1, [1])
    assert sum(outcome.sent) < 500


def test_an_object_with_an_old_date_is_found_the_next_time_however_often_its_time_has_been_compared() -> None:
    items = make_items(1000, "common")
    ours, theirs = index_of(items), index_of(items)
    initiator, responder = Initiator(ours), Responder(theirs)
    for _ in range(3):
        assert reconcile(initiator, responder).need == []
    backdated = (1, b"\x42" * 32)
    theirs.add(item_key(*backdated))
    assert reconcile(initiator, responder).need == [backdated[1]]


def test_items_at_the_same_time_are_told_apart_by_id() -> None:
    items = [(7, bytes([number // 256, number % 256]) + bytes(30)) for number in range(2000)]
    outcome = reconcile(*sides(items[:1500], items[500:]))
    assert sorted(set(outcome.have)) == only_in(items[:1500], items[500:])
    assert sorted(set(outcome.need)) == only_in(items[500:], items[:1500])


def test_the_sets_may_change_between_messages() -> None:
    common, late = make_items(2000, "common"), make_items(200, "late")
    ours, theirs = index_of(common), index_of(common + make_items(300, "theirs"))
    initiator, responder = Initiator(ours), Responder(theirs)
    message: bytes | None = initiator.start()
    needed: set[bytes] = set()
    rounds = 0
    while message is not None:
        for key in late[rounds * 10 : rounds * 10 + 10]:
            theirs.add(item_key(*key))
        for key in common[rounds * 5 : rounds * 5 + 5]:
            theirs.remove(item_key(*key))
            ours.remove(item_key(*key))
        step = initiator.take(responder.answer(message))
        needed.update(step.need)
        message = step.message
        rounds += 1
    assert {id for _, id in make_items(300, "theirs")} <= needed


def test_a_change_before_the_place_where_a_message_goes_on_is_not_overlooked() -> None:
    """The second message begins, after a skip, at the very rank at which the first one ended."""
    items = sorted(make_items(100, "cache", per_timestamp=1))
    index = index_of(items)
    responder = Responder(index)
    middle, end = item_key(items[50][0], items[50][1]), item_key(items[90][0], items[90][1])

    def message(first_mode: int, second: bytes | None) -> bytes:
        writer = MessageWriter(0)
        if first_mode == FINGERPRINT:
            writer.add(middle, FINGERPRINT, bytes(16))
        else:
            writer.skip(middle)
        if second is not None:
            writer.add(end, FINGERPRINT, second)
        return writer.finish()

    responder.answer(message(FINGERPRINT, None))
    index.remove(item_key(*items[3]))
    index.add(item_key(items[3][0], b"\x01" * 32))
    total = index.sum_below(90) - index.sum_below(50)
    assert responder.answer(message(SKIP, range_fingerprint(total, 40))) == b"\x61"


def test_an_empty_side_gets_everything_within_the_frame_limit() -> None:
    theirs = make_items(10_000, "theirs")
    outcome = reconcile(*sides([], theirs, 64 * KIB))
    assert sorted(set(outcome.need)) == only_in(theirs, [])
    assert max(outcome.received) <= 64 * KIB
    assert outcome.round_trips <= 6


def test_another_version_is_answered_with_ours_alone_and_an_initiator_says_which_one_it_got() -> None:
    assert Responder(index_of([])).answer(b"\x62" + bytes(10)) == b"\x61"
    with pytest.raises(InvalidError) as caught:
        Initiator(index_of([])).take(b"\x60")
    assert caught.value.code == "negentropy-version"
    assert "version 0" in caught.value.cause


def test_an_id_that_is_twice_in_a_list_is_refused() -> None:
    with pytest.raises(InvalidError) as caught:
        Initiator(index_of([])).take(bytes.fromhex("61000002" + "02" + "11" * 64))
    assert caught.value.code == "negentropy-duplicate"


def test_a_message_above_the_limit_is_refused_before_it_is_read() -> None:
    message = b"\x61" + bytes(MAX_MESSAGE)
    for take in (Responder(index_of([])).answer, Initiator(index_of([])).take):
        with pytest.raises(InvalidError) as caught:
            take(message)
        assert caught.value.code == "negentropy-too-large"


def test_a_frame_limit_that_allows_no_progress_is_refused() -> None:
    with pytest.raises(InvalidError) as caught:
        Responder(index_of([]), frame_limit=MIN_FRAME_LIMIT - 1)
    assert caught.value.code == "negentropy-limit"


def test_wrong_fingerprints_make_a_session_long_and_never_wrong() -> None:
    """A responder that lies in every fingerprint learns our ids; we neither have nor need anything for it."""
    items = make_items(500, "common")
    responder = Responder(index_of(items))
    responder._fingerprint = lambda lower, upper: bytes(16)  # type: ignore[method-assign]  # the hostile side replaces its own method
    outcome = reconcile(Initiator(index_of(items)), responder, most=64)
    assert (outcome.have, outcome.need) == ([], [])
