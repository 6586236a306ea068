"""The strict JSON reader: what it reads, what it refuses and where, and that no input hurts it."""

from __future__ import annotations

import json
import math
import tracemalloc
from time import process_time
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from bnw.profiles.json_reader import MAX_DEPTH, JsonError, JsonValue, read_json, salvage_json
from bnw.wire.limits import MAX_DESCRIPTOR, MAX_INTEGER

MIB = 1024 * 1024


def faults(data: bytes) -> list[tuple[str, str]]:
    with pytest.raises(JsonError) as caught:
        read_json(data)
    return [(fault.pointer, fault.code) for fault in caught.value.faults]


@pytest.mark.parametrize(
    ("data", "value"),
    [
        (b"null", None),
        (b" \t\r\n[ ] ", []),
        (b"{}", {}),
        (b'{"a":{"b":[1,"x",true,false,null]}}', {"a": {"b": [1, "x", True, False, None]}}),
        (b"9007199254740991", MAX_INTEGER),
        (b"-9007199254740991", -MAX_INTEGER),
        (b"-0", 0),
        (b"0.5", 0.5),
        (b"9007199254740991.0", float(MAX_INTEGER)),
        (b"1e-400", 0.0),
        (b'"\\u0000\\ud83d\\ude00\\/\\b"', "\0😀/\b"),
        ('"é😀\u2028"'.encode(), "é😀\u2028"),
        (b'"' + b"a" * (MIB - 2) + b'"', "a" * (MIB - 2)),
        (b'{"a":1,"A":2,"\\u0061\\u0061":3}', {"a": 1, "A": 2, "aa": 3}),
    ],
)
def test_strict_json_is_read(data: bytes, value: object) -> None:
    assert read_json(data) == value
    assert salvage_json(data) == (value, ())


@pytest.mark.parametrize(("text", "kind"), [("1", int), ("1.0", float), ("1e3", float), ("1E0", float), ("true", bool)])
def test_the_spelling_of_a_number_decides_its_type(text: str, kind: type) -> None:
    assert type(read_json(text.encode())) is kind


@pytest.mark.parametrize(
    ("data", "where"),
    [
        (b"", [("", "json-syntax")]),
        (b"{} {}", [("", "json-trailing")]),
        (b"[1,]", [("", "json-syntax")]),
        (b"[1 2]", [("", "json-syntax")]),
        (b'{"a":1,}', [("", "json-syntax")]),
        (b'{"a" 1}', [("/a", "json-syntax")]),
        (b'{"a":{"b":tru}}', [("/a/b", "json-syntax")]),
        (b"{a:1}", [("", "json-syntax")]),
        (b"[01]", [("", "json-syntax")]),
        (b"[1.]", [("", "json-syntax")]),
        (b"[.5]", [("/0", "json-syntax")]),
        (b"[-]", [("/0", "json-syntax")]),
        (b"[+1]", [("/0", "json-syntax")]),
        (b"[0x10]", [("", "json-syntax")]),
        (b'["\\u12g4"]', [("/0", "json-syntax")]),
        (b'["\\ud800"]', [("/0", "json-surrogate")]),
        (b'["\\ud800\\ud800"]', [("/0", "json-surrogate")]),
        (b'["\\udc00\\ud800"]', [("/0", "json-surrogate")]),
        (b'["\\ud800\\n"]', [("/0", "json-surrogate")]),
        (b'{"\\ud800":1}', [("", "json-surrogate")]),
        (b'["a\nb"]', [("/0", "json-syntax")]),
        (b"[NaN]", [("/0", "json-number")]),
        (b"[Infinity,-Infinity]", [("/0", "json-number"), ("/1", "json-number")]),
        (b"[9007199254740992]", [("/0", "json-number")]),
        (b"[1e16]", [("/0", "json-number")]),
        (b"[9007199254740993.0]", [("/0", "json-number")]),
        (b'{"a":1,"b":[{"a":1,"a":2}],"a":3}', [("/b/0/a", "json-duplicate"), ("/a", "json-duplicate")]),
        (b'{"a":1,"\\u0061":2}', [("/a", "json-duplicate")]),
        (b"\xef\xbb\xbf{}", [("", "json-encoding")]),
        (b"\xff\xfe{\x00}\x00", [("", "json-encoding")]),
        (b"{\x00}\x00", [("", "json-encoding")]),
        (b'"\xc3"', [("", "json-encoding")]),
        (b'"\xed\xa0\x80"', [("", "json-encoding")]),
        (b"// no\n{}", [("", "json-syntax")]),
        (b"\xc2\xa0{}", [("", "json-syntax")]),
        (b'{"a~b":{"c/d":[NaN]}}', [("/a~0b/c~1d/0", "json-number")]),
    ],
)
def test_what_parsers_read_differently_is_refused_at_its_place(data: bytes, where: list[tuple[str, str]]) -> None:
    assert faults(data) == where


def test_a_syntax_error_says_line_and_column() -> None:
    with pytest.raises(JsonError, match="line 3, column 8"):
        read_json(b'{\n  "a": 1,\n  "b": x\n}')


def test_64_levels_are_read_and_65_are_not() -> None:
    assert read_json(b"[" * MAX_DEPTH + b"]" * MAX_DEPTH) is not None
    assert faults(b"[" * (MAX_DEPTH + 1) + b"]" * (MAX_DEPTH + 1)) == [("/0" * MAX_DEPTH, "json-depth")]


def test_many_brackets_side_by_side_or_in_strings_are_not_depth() -> None:
    assert len(read_json(b"[" + b"[[]]," * 1000 + b"[]]")) == 1001  # type: ignore[arg-type]  # it is a list
    assert read_json(b'"' + b"[{" * 1000 + b'"') == "[{" * 1000
    assert read_json(b'["\\"' + b"[{" * 1000 + b'"]') == ['"' + "[{" * 1000]


def test_one_byte_more_than_a_mebibyte_is_too_much() -> None:
    assert read_json(b" " * (MAX_DESCRIPTOR - 2) + b"{}") == {}
    assert faults(b" " * (MAX_DESCRIPTOR - 1) + b"{}") == [("", "json-size")]


HOSTILE = {
    "open brackets": b"[" * MIB,
    "open objects": b'{"a":' * (MIB // 5),
    "quotes and backslashes": b'"' + b'\\"' * (MIB // 2 - 1),
    "many open strings": b'["' * (MIB // 2),
    "only quotes": b'"' * MIB,
    "only backslashes": b"\\" * MIB,
    "a million digits": b"1" * MIB,
    "a million digits after the point": b"0." + b"1" * (MIB - 2),
    "a huge exponent": b"1e" + b"9" * (MIB - 2),
    "duplicate keys": b"{" + b'"a":1,' * (MIB // 6 - 1) + b'"a":1}',
    "faults below a long name": b'{"' + b"k" * (MIB // 2) + b'":[' + b"NaN," * (MIB // 8 - 10) + b"1]}",
    "half pairs": b'["' + b'\\ud800","' * (MIB // 9 - 1) + b'"]',
    "white space": b" " * MIB,
    "empty arrays": b"[" + b"[]," * (MIB // 3 - 1) + b"[]]",
    "line breaks and faults": b"[" + b"\nNaN," * (MIB // 5 - 1) + b"1]",
    "colliding keys": b"{" + b",".join(b'"%d":0' % (i * (2**61 - 1)) for i in range(30_000)) + b"}",
}


@pytest.mark.parametrize("name", HOSTILE)
def test_no_mebibyte_hangs_or_exhausts_memory(name: str) -> None:
    data = HOSTILE[name]
    assert len(data) <= MIB
    start = process_time()
    value, found = salvage_json(data)
    try:
        assert read_json(data) == value
    except JsonError as error:
        assert 1 <= len(error.faults) <= 1001
        assert found
    assert process_time() - start < 5


@pytest.mark.parametrize("name", ["faults below a long name", "half pairs", "line breaks and faults"])
def test_reporting_the_faults_of_a_mebibyte_takes_little_memory(name: str) -> None:
    tracemalloc.start()
    try:
        salvage_json(HOSTILE[name])
        assert tracemalloc.get_traced_memory()[1] < 100 * MIB
    finally:
        tracemalloc.stop()


TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
NUMBERS = st.integers(-MAX_INTEGER, MAX_INTEGER) | st.floats(-MAX_INTEGER, MAX_INTEGER, allow_nan=False)
VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | NUMBERS | TEXT,
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(TEXT, inner, max_size=5),
    max_leaves=20,
)


def same(left: Any, right: Any) -> bool:
    """Equal, and of the same types: 1, 1.0 and true differ, and so do 0.0 and -0.0."""
    if type(left) is not type(right):
        return False
    if isinstance(left, dict):
        return list(left) == list(right) and all(same(left[key], right[key]) for key in left)
    if isinstance(left, list):
        return len(left) == len(right) and all(map(same, left, right))
    if isinstance(left, float):
        return left == right and math.copysign(1, left) == math.copysign(1, right)
    return bool(left == right)


@given(VALUES, st.booleans(), st.sampled_from([None, 1]))
def test_what_a_json_writer_writes_is_read_back(value: Any, ascii_only: bool, indent: int | None) -> None:
    data = json.dumps(value, ensure_ascii=ascii_only, indent=indent).encode()
    assert same(read_json(data), value)


FRAGMENTS = st.sampled_from(
    [b"{", b"}", b"[", b"]", b",", b":", b'"', b'"a"', b'"a":', b"\\", b"\\u", b"\\ud83d", b"\\ude00", b"\\ud800", b"0",
     b"1", b"-", b"1e5", b"1.5", b".", b"e", b"true", b"null", b"NaN", b"-Infinity", b" ", b"\n", b"\x00", b"\xc3\xa9",
     b"\xff", b"9007199254740991", b"9007199254740992", b"\xef\xbb\xbf", b"//", b"0123", b"\xf0\x9f\x98\x80"]
)  # fmt: skip


@settings(max_examples=400)
@given(st.lists(FRAGMENTS, max_size=14).map(b"".join))
@example(b'"\\ud83d\\ude00"')
@example(b'{"a":1,"a":1}')
def test_both_readers_accept_the_same_and_read_it_alike(data: bytes) -> None:
    value, found = salvage_json(data)
    try:
        fast: JsonValue = read_json(data)
    except JsonError as error:
        assert found == error.faults != ()
    else:
        assert found == ()
        assert same(fast, value)
        assert same(fast, json.loads(data))
