"""Vectors of deterministic CBOR: the examples of RFC 8949 appendices A and F, and what BNW adds to them."""

from __future__ import annotations

from bnw.wire.cbor import Value, encode
from bnw.wire.limits import MAX_INTEGER
from vector_cases.forms import Json, to_json

# RFC 8949 appendix A: what is in the subset and in its deterministic encoding, with the value.
APPENDIX_A: tuple[tuple[str, Value], ...] = (
    ("00", 0), ("01", 1), ("0a", 10), ("17", 23), ("1818", 24), ("1819", 25), ("1864", 100), ("1903e8", 1000),
    ("1a000f4240", 1000000), ("1b000000e8d4a51000", 1000000000000), ("20", -1), ("29", -10), ("3863", -100),
    ("3903e7", -1000), ("f4", False), ("f5", True), ("f6", None), ("40", b""), ("4401020304", b"\x01\x02\x03\x04"),
    ("60", ""), ("6161", "a"), ("6449455446", "IETF"), ("62225c", '"\\'), ("62c3bc", "\u00fc"), ("63e6b0b4", "\u6c34"),
    ("64f0908591", "\U00010151"), ("80", []), ("83010203", [1, 2, 3]), ("8301820203820405", [1, [2, 3], [4, 5]]),
    ("98190102030405060708090a0b0c0d0e0f101112131415161718181819", list(range(1, 26))), ("a0", {}),
    ("a26161016162820203", {"a": 1, "b": [2, 3]}), ("826161a161626163", ["a", {"b": "c"}]),
    ("a56161614161626142616361436164614461656145", {"a": "A", "b": "B", "c": "C", "d": "D", "e": "E"}),
)  # fmt: skip

# RFC 8949 appendix A: the rest of it, by what is wrong.
APPENDIX_A_REFUSED: tuple[tuple[str, str, str], ...] = (
    ("1bffffffffffffffff 3bffffffffffffffff", "cbor-integer", "an integer outside ±(2^53−1)"),
    ("c249010000000000000000 c349010000000000000000", "cbor-tag", "a big number, which is a tag"),
    ("f90000 f98000 f93c00 fb3ff199999999999a f93e00 f97bff fa47c35000 fa7f7fffff fb7e37e43c8800759c f90001 f90400 "
     "f9c400 fbc010666666666666 f97c00 f97e00 f9fc00 fa7f800000 fa7fc00000 faff800000 fb7ff0000000000000 "
     "fb7ff8000000000000 fbfff0000000000000", "cbor-type", "a floating-point number"),
    ("f7", "cbor-type", "undefined is not null"),
    ("f0 f8ff", "cbor-type", "a simple value without a meaning"),
    ("c074323031332d30332d32315432303a30343a30305a c11a514b67b0 c1fb41d452d9ec200000 d74401020304 d818456449455446 "
     "d82076687474703a2f2f7777772e6578616d706c652e636f6d", "cbor-tag", "a tag"),
    ("a201020304", "cbor", "a key that is not text"),
    ("5f42010243030405ff 7f657374726561646d696e67ff 9fff 9f018202039f0405ffff 9f01820203820405ff 83018202039f0405ff "
     "83019f0203ff820405 9f0102030405060708090a0b0c0d0e0f101112131415161718181819ff bf61610161629f0203ffff "
     "826161bf61626163ff bf6346756ef563416d7421ff", "cbor", "an indefinite length"),
)  # fmt: skip

# RFC 8949 appendix F: not well-formed.
APPENDIX_F: tuple[tuple[str, str], ...] = (
    ("18 19 1a 1b 1901 1a0102 1b01020304050607 38 58 78 98 9a01ff00 b8 d8 f8 f900 fa0000 fb000000", "it ends early"),
    ("41 61 5affffffff00 5bffffffffffffffff010203 7affffffff00 7b7fffffffffffffff010203", "a string is cut short"),
    ("81 818181818181818181 8200 a1 a20102 a100 a2000000", "an array or map is not finished"),
    ("c0", "a tag on nothing"),
    ("5f4100 7f6100 9f 9f0102 bf bf01020102 819f 9f8000 9f9f9f9f9fffffffff 9f819f819f9fffffff",
     "an indefinite length that does not end"),
    ("1c 1d 1e 3c 3d 3e 5c 5d 5e 7c 7d 7e 9c 9d 9e bc bd be dc dd de fc fd fe", "reserved additional information"),
    ("f800 f801 f818 f81f", "a simple value in two bytes that needs one or is reserved"),
    ("5f00ff 5f21ff 5f6100ff 5f80ff 5fa0ff 5fc000ff 5fe0ff 7f4100ff 5f5f4100ffff 7f7f6100ffff",
     "an indefinite string of parts that are no strings"),
    ("ff 81ff 8200ff a1ff a1ff00 a100ff a20000ff 9f81ff 9f829f819f9fffffffff bf00ff bf000000ff",
     "a break where none may be"),
    ("1f 3f df", "an indefinite length for what has no length"),
)  # fmt: skip

NESTED_16 = "81" * 15 + "80"
OWN: tuple[tuple[str, Value], ...] = (
    ("the largest integer", MAX_INTEGER), ("the smallest integer", -MAX_INTEGER),
    ("the last integer in one byte", 255), ("the first in two", 256), ("the last in two", 65535),
    ("the first in four", 65536), ("the last in four", 2**32 - 1), ("the first in eight", 2**32),
    ("the smallest in one byte", -256), ("the smallest in two", -65536),
    ("text of 23 bytes", "x" * 23), ("text of 24 bytes", "x" * 24), ("bytes of 256", bytes(256)),
    ("a shorter key before an earlier letter", {"b": 1, "aa": 2}),
    ("keys of 23 and 24 bytes", {"x" * 23: 1, "a" * 24: 2}),
    ("the empty key", {"": 0, "a": 1}),
    ("keys in the order of their bytes and not of a language", {"Z": 1, "a": 2, "é": 3}),
    ("the same text composed and decomposed", {"\u00e9": 1, "e\u0301": 2}),
)  # fmt: skip

OWN_REFUSED: tuple[tuple[str, str, str, str], ...] = (
    ("no bytes", "", "cbor", "there is nothing"),
    ("zero in two bytes", "1800", "cbor-not-deterministic", "an integer is longer than it need be"),
    ("23 in three bytes", "190017", "cbor-not-deterministic", "an integer is longer than it need be"),
    ("65,535 in five bytes", "1a0000ffff", "cbor-not-deterministic", "an integer is longer than it need be"),
    ("2^32−1 in nine bytes", "1b00000000ffffffff", "cbor-not-deterministic", "an integer is longer than it need be"),
    ("−1 in two bytes", "3800", "cbor-not-deterministic", "an integer is longer than it need be"),
    ("a length of text in two bytes", "780161", "cbor-not-deterministic", "a length is longer than it need be"),
    ("a length of bytes in two bytes", "580100", "cbor-not-deterministic", "a length is longer than it need be"),
    ("a length of an array in two bytes", "980100", "cbor-not-deterministic", "a length is longer than it need be"),
    ("a length of a map in two bytes", "b801616100", "cbor-not-deterministic", "a length is longer than it need be"),
    ("a length of a key in two bytes", "a178016100", "cbor-not-deterministic", "a length is longer than it need be"),
    ("keys out of order", "a2616201616102", "cbor-not-deterministic", "b stands before a"),
    ("a longer key first", "a262616101616202", "cbor-not-deterministic", "aa stands before b"),
    ("a key twice", "a2616101616102", "cbor", "a key is there twice"),
    ("a key twice with the same value", "a2616101616101", "cbor", "a key is there twice"),
    ("a byte after the value", "0000", "cbor-not-deterministic", "something follows the value"),
    ("2^53", "1b0020000000000000", "cbor-integer", "an integer outside ±(2^53−1)"),
    ("−2^53", "3b001fffffffffffff", "cbor-integer", "an integer outside ±(2^53−1)"),
    ("17 levels", "81" + NESTED_16, "cbor-depth", "more than 16 levels"),
    ("17 levels, of maps", "a16161" * 16 + "a0", "cbor-depth", "more than 16 levels"),
    ("a byte string as a key", "a1416101", "cbor-key", "a key that is not text"),
    ("null as a key", "a1f601", "cbor", "a key that is not text"),
    ("an array as a key", "a1810001", "cbor", "a key that is not text"),
    ("a shared value", "d81c80", "cbor-tag", "a tag; this one would let a few bytes stand for a huge structure"),
    ("a regular expression", "d82361 2e", "cbor-tag", "a tag; this one would make the reader compile a pattern"),
    ("the tag of CBOR itself", "d9d9f700", "cbor-tag", "a tag"),
    ("a tag as a key", "a1c0616100", "cbor-tag", "a tag"),
    ("text that is not UTF-8", "62c328", "cbor", "text that is not UTF-8"),
    ("a surrogate in text", "63eda080", "cbor", "text that is not UTF-8"),
    ("text in more bytes than it needs", "62c080", "cbor", "text that is not UTF-8"),
    ("an array of 2^63 items", "9b8000000000000000", "cbor", "it says more than there is"),
)  # fmt: skip


def deterministic_cbor() -> Json:
    accepted = [(f"RFC 8949 appendix A: {data}", data, value) for data, value in APPENDIX_A]
    accepted += [(name, encode(value).hex(), value) for name, value in OWN]
    accepted.append(("16 levels", NESTED_16, _nested(16)))
    refused = [
        (f"RFC 8949 appendix A: {data}", data, code, reason)
        for group, code, reason in APPENDIX_A_REFUSED
        for data in group.split()
    ]
    refused += [
        (f"RFC 8949 appendix F: {data}", data, "cbor", reason) for group, reason in APPENDIX_F for data in group.split()
    ]
    refused += [(name, data.replace(" ", ""), code, reason) for name, data, code, reason in OWN_REFUSED]
    return {
        "about": "Deterministic CBOR: the subset of RFC 8949 section 4.2.1 that is signed and sent.",
        "accepted": [{"name": name, "hex": data, "value": to_json(value)} for name, data, value in accepted],
        "refused": [
            {"name": name, "hex": data, "code": code, "reason": reason} for name, data, code, reason in refused
        ],
    }


def _nested(levels: int) -> Value:
    value: Value = []
    for _ in range(levels - 1):
        value = [value]
    return value
