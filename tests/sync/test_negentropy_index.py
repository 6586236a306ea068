"""The index: it answers like a sorted list, without reading the whole set."""

from __future__ import annotations

import tracemalloc
from bisect import bisect_left
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from negentropy_items import index_of, make_items

from bnw.sync.negentropy import index as index_module
from bnw.sync.negentropy.coding import INFINITY, START, item_key
from bnw.sync.negentropy.index import BlockedIndex

few_keys = st.builds(lambda time, byte: item_key(time, bytes([byte]) * 32), st.integers(0, 9), st.integers(0, 40))
changes = st.lists(st.tuples(st.sampled_from(["add", "add", "remove", "ask"]), few_keys), max_size=200)


def check(index: BlockedIndex, model: list[bytes]) -> None:
    numbers = [int.from_bytes(key[8:], "little") for key in model]
    assert len(index) == len(model)
    assert index.keys(0, len(model)) == model
    for rank in range(0, len(model) + 1, 7):
        assert index.sum_below(rank) == sum(numbers[:rank])
    for rank in range(0, len(model), 7):
        assert index.key(rank) == model[rank]
        assert index.rank(model[rank]) == rank
        assert index.rank(model[rank] + b"\0") == rank + 1
        assert index.keys(rank, rank + 3) == model[rank : rank + 3]


@pytest.fixture(autouse=True, scope="module")
def small_blocks() -> Iterator[None]:
    """Blocks so small that short histories cut and join them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(index_module, "BLOCK", 4)
        yield


@given(changes)
@settings(max_examples=60, deadline=None)
def test_it_answers_like_a_sorted_list_after_any_changes(history: list[tuple[str, bytes]]) -> None:
    index, model = BlockedIndex(), list[bytes]()
    for what, key in history:
        place = bisect_left(model, key)
        known = model[place : place + 1] == [key]
        assert (key in index) == known
        if what == "add":
            assert index.add(key) is not known
            if not known:
                model.insert(place, key)
        elif what == "remove":
            assert index.remove(key) is known
            if known:
                del model[place]
        else:
            assert index.rank(key) == place
            assert index.keys(0, len(model)) == model
            assert index.sum_below(place) == sum(int.from_bytes(key[8:], "little") for key in model[:place])
    check(index, model)


def test_it_stays_right_while_it_grows_and_shrinks() -> None:
    keys = [item_key(*item) for item in make_items(3000, "grow")]
    index = BlockedIndex()
    for key in keys:
        index.add(key)
    check(index, sorted(keys))
    for number, key in enumerate(keys[:2900]):
        index.remove(key)
        assert index.keys(len(index) - 1, len(index)) == [index.key(len(index) - 1)]
        if number % 100 == 0:
            check(index, sorted(keys[number + 1 :]))
    check(index, sorted(keys[2900:]))
    for key in keys[2900:]:
        index.remove(key)
    check(index, [])
    index.add(keys[0])
    check(index, keys[:1])


def test_all_items_lie_between_the_first_and_the_last_bound() -> None:
    index = index_of(make_items(100, "ends"))
    assert (index.rank(START), index.rank(INFINITY)) == (0, 100)


def test_a_question_reads_the_ids_of_half_a_block_at_most_and_a_change_those_of_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(index_module, "BLOCK", 32)
    index = index_of(make_items(10_000, "cost"))
    read: list[int] = []
    original = index_module._number
    monkeypatch.setattr(index_module, "_number", lambda key: read.append(1) or original(key))
    for rank in range(0, 10_000, 99):
        read.clear()
        index.sum_below(rank)
        assert len(read) <= 32
    for item in make_items(500, "changes"):
        read.clear()
        index.add(item_key(*item))
        index.sum_below(len(index) // 2)
        assert len(read) <= 4 * 32


def test_an_item_takes_about_100_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(index_module, "BLOCK", 32)
    items = make_items(20_000, "memory")
    tracemalloc.start()
    try:
        index = index_of(items)
        size, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert size / len(index) < 110
