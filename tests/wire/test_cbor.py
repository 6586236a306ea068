"""Deterministic CBOR (design section 5): one encoding for each value, and nothing else is read."""

from __future__ import annotations

import math
import struct
import time
import tracemalloc
from enum import IntEnum
from typing import Any

import cbor2
import pytest
from golden_vectors import Vector, from_json, golden, refused, vectors
from hypothesis import example, given
from hypothesis import strategies as st

from bnw.wire.cbor import Value, decode, decode_map, encode
from bnw.wire.errors import InvalidError
from bnw.wire.limits import KIB, MAX_CBOR_DEPTH, MAX_INTEGER

LIMIT = 64 * KIB

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
scalars = st.none() | st.booleans() | st.integers(-MAX_INTEGER, MAX_INTEGER) | texts | st.binary(max_size=40)
values: st.SearchStrategy[Any] = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=5) | st.dictionaries(texts, inner, max_size=5), max_leaves=20
)


def encode_by_the_book(value: Any) -> bytes:
    """RFC 8949 sections 3 and 4.2.1 once more: heads as short as can be, keys in the order of their encodings."""

    def head(major: int, number: int) -> bytes:
        if number < 24:
            return bytes([major << 5 | number])
        for info, form, limit in ((24, ">B", 2**8), (25, ">H", 2**16), (26, ">I", 2**32), (27, ">Q", 2**64)):
            if number < limit:
                return bytes([major << 5 | info]) + struct.pack(form, number)
        raise AssertionError(number)

    match value:
        case False | True | None:
            return {False: b"\xf4", True: b"\xf5", None: b"\xf6"}[value]
        case int():
            return head(0, value) if value >= 0 else head(1, -1 - value)
        case bytes():
            return head(2, len(value)) + value
        case str():
            return head(3, len(value.encode())) + value.encode()
        case list():
            return head(4, len(value)) + b"".join(map(encode_by_the_book, value))
        case dict():
            pairs = sorted((encode_by_the_book(key), encode_by_the_book(item)) for key, item in value.items())
            return head(5, len(value)) + b"".join(key + item for key, item in pairs)
    raise AssertionError(value)


@golden("cbor.json", "accepted")
def test_a_value_has_exactly_this_encoding(vector: Vector) -> None:
    value, data = from_json(vector["value"]), vector.bytes_of("hex")
    assert decode(data, max_size=len(data)) == value
    assert encode(value) == data
    assert encode_by_the_book(value) == data


@golden("cbor.json", "refused")
def test_what_is_not_the_one_encoding_of_an_allowed_value_is_refused(vector: Vector) -> None:
    with refused(vector):
        decode(vector.bytes_of("hex"), max_size=LIMIT)


def test_all_81_examples_of_appendix_a_are_judged() -> None:
    judged = vectors("cbor.json", "accepted") + vectors("cbor.json", "refused")
    assert sum("appendix A" in vector["name"] for vector in judged) == 81


@given(values)
def test_what_is_encoded_decodes_to_the_same_value(value: Value) -> None:
    assert decode(encode(value), max_size=LIMIT) == value


@given(values)
def test_the_encoding_is_that_of_the_rfc(value: Value) -> None:
    assert encode(value) == encode_by_the_book(value)


@given(values, st.data())
def test_a_value_with_its_keys_in_any_order_is_encoded_the_same(value: Value, data: st.DataObject) -> None:
    if isinstance(value, dict):
        shuffled = dict(data.draw(st.permutations(list(value.items()))))
        assert encode(shuffled) == encode(value)


@given(st.binary(max_size=60) | values.map(cbor2.dumps))
@example(b"\xf9\x7e\x00")
@example(b"\x82\x01")
def test_bytes_are_refused_or_are_the_encoding_of_what_they_decode_to(data: bytes) -> None:
    try:
        value = decode(data, max_size=LIMIT)
    except InvalidError:
        return
    assert encode_by_the_book(value) == data


@given(values, st.data())
def test_no_change_of_a_byte_leaves_the_value_as_it_was(value: Value, data: st.DataObject) -> None:
    encoded = encode(value)
    at = data.draw(st.integers(0, len(encoded) - 1))
    changed = bytearray(encoded)
    changed[at] ^= data.draw(st.integers(1, 255))
    try:
        found = decode(bytes(changed), max_size=LIMIT)
    except InvalidError:
        return
    # Python holds True to equal 1, so types are compared by the encoding.
    assert encode_by_the_book(found) != encoded


@pytest.mark.parametrize("data", [vector["hex"] for vector in vectors("cbor.json", "accepted")])
def test_an_encoding_cut_short_or_followed_by_a_byte_is_refused(data: str) -> None:
    encoded = bytes.fromhex(data)
    for other in [encoded[:size] for size in range(len(encoded))] + [encoded + b"\0", encoded + encoded]:
        with pytest.raises(InvalidError):
            decode(other, max_size=LIMIT)


# Encoding


class Colour(IntEnum):
    RED = 1


class Text(str):
    __slots__ = ()


@pytest.mark.parametrize(
    ("value", "code"),
    [
        (1.0, "cbor-type"),
        (math.nan, "cbor-type"),
        ((1, 2), "cbor-type"),
        ({1}, "cbor-type"),
        (bytearray(b"x"), "cbor-type"),
        (memoryview(b"x"), "cbor-type"),
        (Colour.RED, "cbor-type"),
        (Text("x"), "cbor-type"),
        (object(), "cbor-type"),
        (cbor2.undefined, "cbor-type"),
        (cbor2.CBORTag(1, 1), "cbor-type"),
        (MAX_INTEGER + 1, "cbor-integer"),
        (-MAX_INTEGER - 1, "cbor-integer"),
        (10**100, "cbor-integer"),
        ("\ud800", "cbor-text"),
        ({"\udfff": 1}, "cbor-text"),
        ({1: 2}, "cbor-key"),
        ({b"a": 2}, "cbor-key"),
        ({None: 2}, "cbor-key"),
        ({Text("x"): 2}, "cbor-key"),
        ([[1.5]], "cbor-type"),
    ],
)
def test_a_value_outside_the_subset_is_not_encoded(value: Any, code: str) -> None:
    with pytest.raises(InvalidError) as caught:
        encode(value)
    assert caught.value.code == code


def nested(levels: int) -> Any:
    value: Any = []
    for _ in range(levels - 1):
        value = {"a": value}
    return value


def test_sixteen_levels_are_encoded_and_read_and_seventeen_are_not() -> None:
    assert MAX_CBOR_DEPTH == 16
    assert decode(encode(nested(16)), max_size=LIMIT) == nested(16)
    with pytest.raises(InvalidError, match="16 levels"):
        encode(nested(17))
    for levels in (17, 18, 100, 1000):
        with pytest.raises(InvalidError):
            decode(cbor2.dumps(nested(levels)), max_size=LIMIT)


def test_a_list_that_holds_itself_is_refused_and_not_followed() -> None:
    endless: list[Any] = []
    endless.append(endless)
    with pytest.raises(InvalidError, match="16 levels"):
        encode(endless)


# Decoding


def test_size_is_judged_before_anything_is_read() -> None:
    with pytest.raises(InvalidError) as caught:
        decode(b"\xff" * 11, max_size=10)
    assert caught.value.code == "too-large"
    assert decode(b"\x60", max_size=1) == ""


@pytest.mark.parametrize("data", [b"\x80", b"\x00", b"\xf6", b"\x60", b"\x40"])
def test_where_a_map_is_expected_nothing_else_is_read(data: bytes) -> None:
    with pytest.raises(InvalidError, match="a map is expected") as caught:
        decode_map(data, max_size=LIMIT)
    assert caught.value.code == "cbor-type"
    assert decode_map(b"\xa0", max_size=LIMIT) == {}


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(bytes.fromhex("9bffffffffffffffff"), id="an array of 2^64 items"),
        pytest.param(bytes.fromhex("bb7fffffffffffffff"), id="a map of 2^63 items"),
        pytest.param(bytes.fromhex("5b000000ffffffffff"), id="a string of a terabyte"),
        pytest.param(bytes.fromhex("9a7fffffff") * 16, id="nested arrays of 2^31 items"),
        pytest.param(b"\x81" * LIMIT, id="65,536 levels"),
        pytest.param(b"\xd8\x1c" * (LIMIT // 2), id="shared values within each other"),
        pytest.param(b"\x82\xd8\x1c\x80" + b"\xd8\x1d\x00" * 1000, id="references to a shared value"),
        pytest.param(b"\xd8\x23\x79\x10\x00" + b"(a*)*b" * 683, id="a regular expression"),
        pytest.param(b"\xc2\x59\xf0\x00" + b"\xff" * 0xF000, id="a big number of 60 KiB"),
        pytest.param(b"\xd8\x19" + b"\x00", id="a reference into a table of strings"),
        pytest.param(b"\x9f" + b"\x80" * (LIMIT - 1), id="an array that does not end"),
        pytest.param(b"\x99\xff\xff" + b"\x80" * 60_000, id="an array with fewer items than it says"),
    ],
)
def test_hostile_bytes_cost_little_time_and_memory(data: bytes) -> None:
    tracemalloc.start()
    started = time.perf_counter()
    with pytest.raises(InvalidError) as caught:
        decode(data, max_size=LIMIT)
    took = time.perf_counter() - started
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert took < 1
    assert peak < 10_000_000
    # The text may quote a peer's bytes: it stays short, whatever they are.
    assert len(str(caught.value)) < 400
