"""Bytes of Negentropy messages: known answers, and refusal of what is malformed."""

from __future__ import annotations

import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st
from negentropy_items import index_of, make_items

from bnw.sync.negentropy.coding import (
    FINGERPRINT,
    ID_LIST,
    INFINITY,
    MAX_TIMESTAMP,
    SKIP,
    MessageReader,
    MessageWriter,
    bound_between,
    encode_varint,
    item_key,
)
from bnw.sync.negentropy.reconciler import Initiator, Responder, range_fingerprint
from bnw.wire.errors import InvalidError

timestamps = st.one_of(st.integers(0, MAX_TIMESTAMP), st.integers(0, 300))
ids = st.binary(min_size=32, max_size=32)
keys = st.builds(item_key, timestamps, ids)


@pytest.mark.parametrize(
    ("number", "encoded"),
    [
        (0, "00"),
        (1, "01"),
        (127, "7f"),
        (128, "8100"),
        (300, "822c"),
        (16_383, "ff7f"),
        (16_384, "818000"),
        (1_700_000_000_001, "b1bcff95d001"),
        (2**64 - 1, "81ffffffffffffffff7f"),
    ],
)
def test_integers_are_base_128_with_the_most_significant_digit_first(number: int, encoded: str) -> None:
    assert encode_varint(number).hex() == encoded
    assert MessageReader(b"\x61" + bytes.fromhex(encoded)).varint() == number


def test_the_first_message_of_an_empty_set_is_an_empty_list_up_to_infinity() -> None:
    assert Initiator(index_of([])).start().hex() == "61" + "00" + "00" + "02" + "00"


def test_the_first_message_of_a_small_set_lists_its_ids_in_order() -> None:
    items = [(7, b"\x02" * 32), (7, b"\x01" * 32), (5, b"\x03" * 32)]
    message = Initiator(index_of(items)).start()
    assert message.hex() == "61" + "0000" + "02" + "03" + "03" * 32 + "01" * 32 + "02" * 32


def test_a_fingerprint_hashes_the_little_endian_sum_of_the_ids_and_their_number() -> None:
    """Worked out byte by byte with a carry, not with large integers."""
    items = make_items(200, "sum")
    total = [0] * 32
    for _, id in items:
        carry = 0
        for place, byte in enumerate(id):
            carry += total[place] + byte
            total[place] = carry & 0xFF
            carry >>= 8
    expected = hashlib.sha256(bytes(total) + b"\x81\x48").digest()[:16]
    assert range_fingerprint(index_of(items).sum_below(200), 200) == expected


def test_timestamps_are_written_as_differences_and_ids_only_as_far_as_they_are_needed() -> None:
    writer = MessageWriter(0)
    writer.skip(item_key(999, bytes(32))[:8])
    writer.add(item_key(1000, b"\xaa\xbb" + bytes(30))[:10], FINGERPRINT, bytes(16))
    writer.add(item_key(1000, b"\xcc" + bytes(31))[:9], FINGERPRINT, bytes(16))
    assert writer.finish(INFINITY, b"\x01" * 16).hex() == (
        "61"
        "8768" "00" "00"  # 999 + 1, no id, skip
        "02" "02aabb" "01" + "00" * 16 +  # 1 later
        "01" "01cc" "01" + "00" * 16 +  # at the same time
        "00" "00" "01" + "01" * 16
    )  # fmt: skip


def test_a_range_that_does_not_fit_leaves_no_trace_and_room_for_the_rest() -> None:
    bounds = [item_key(1000 * number, bytes([number]) * 32) for number in range(1, 6)]
    writer = MessageWriter(300)
    assert writer.add(bounds[0], ID_LIST, b"\x01" + bytes(32))
    writer.skip(bounds[1])
    assert not writer.add(bounds[2], ID_LIST, b"\x08" + bytes(8 * 32))
    message = writer.finish(bounds[4], bytes(16))
    assert len(message) <= 300
    reader = MessageReader(message)
    assert (reader.bound(), reader.varint(), reader.ids()) == (bounds[0], ID_LIST, [bytes(32)])
    assert (reader.bound(), reader.varint()) == (bounds[1], SKIP)
    assert (reader.bound(), reader.varint(), reader.take(16)) == (bounds[4], FINGERPRINT, bytes(16))
    assert reader.at_end


@given(st.lists(keys, min_size=1, max_size=20, unique=True))
def test_bounds_are_read_as_they_were_written(bounds: list[bytes]) -> None:
    bounds.sort()
    writer = MessageWriter(0)
    for bound in [*bounds, INFINITY]:
        assert writer.add(bound, SKIP, b"")
    reader = MessageReader(writer.finish())
    for bound in [*bounds, INFINITY]:
        assert reader.bound() == bound
        assert reader.varint() == SKIP
    assert reader.at_end


@given(st.lists(keys, min_size=2, max_size=2, unique=True))
def test_a_bound_between_two_items_parts_them_and_is_as_short_as_can_be(pair: list[bytes]) -> None:
    before, after = sorted(pair)
    bound = bound_between(before, after)
    assert before < bound <= after
    assert len(bound) == 8 or not before < bound[:-1] <= after


@pytest.mark.parametrize(
    ("message", "what"),
    [
        ("", "begin with a version"),
        ("70", "begin with a version"),
        ("6100", "cut off"),
        ("610000", "cut off"),
        ("61000003", "mode 3"),
        ("61000001" + "00" * 15, "15 bytes where 16"),
        ("6100000202" + "00" * 63, "63 bytes where 64"),
        ("61000002ffffffff7f", "are announced"),
        ("610021" + "00" * 33 + "00", "33 bytes of an id"),
        ("6180", "cut off"),
        ("61" + "ff" * 9 + "7f0000", "exceeds 64 bits"),
        ("6181ffffffffffffffff7f0000020000", "exceeds 64 bits"),
        ("61000000000000", "begins at infinity"),
        ("610801bb000101aa00", "ends before it begins"),
    ],
)
def test_malformed_messages_are_refused_by_both_sides_with_the_place(message: str, what: str) -> None:
    for take in (Responder(index_of([])).answer, Initiator(index_of([])).take):
        with pytest.raises(InvalidError) as caught:
            take(bytes.fromhex(message))
        assert caught.value.code == "negentropy"
        assert what in caught.value.cause


@given(st.binary(max_size=200), st.integers(0, 40))
def test_any_bytes_are_answered_or_refused_and_nothing_else(data: bytes, count: int) -> None:
    for take in (Responder(index_of(make_items(count, "any"))).answer, Initiator(index_of([])).take):
        try:
            take(b"\x61" + data)
        except InvalidError as error:
            assert error.code in ("negentropy", "negentropy-duplicate")


def test_trailing_zeros_do_not_make_a_bound_fall() -> None:
    """JavaScript implementations write a bound that they have read with all 32 bytes of its id."""
    reader = MessageReader(bytes.fromhex("610802bb00000101bb00"))
    reader.bound()
    reader.varint()
    assert reader.bound() == item_key(7, b"\xbb" + bytes(31))[:9]


@pytest.mark.parametrize(("timestamp", "id"), [(-1, bytes(32)), (2**64 - 1, bytes(32)), (0, bytes(31))])
def test_items_have_a_timestamp_below_infinity_and_an_id_of_32_bytes(timestamp: int, id: bytes) -> None:
    with pytest.raises(InvalidError):
        item_key(timestamp, id)


def test_lists_are_read_whole() -> None:
    reader = MessageReader(bytes.fromhex("6102" + "01" * 32 + "02" * 32))
    assert reader.ids() == [b"\x01" * 32, b"\x02" * 32]
    assert ID_LIST == 2
