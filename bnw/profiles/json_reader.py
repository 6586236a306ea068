"""The one strict JSON reader of all profiles (and of the inputs they check).

JSON is looser than it looks: parsers disagree on duplicate keys, big numbers, NaN, byte order marks and half a
surrogate pair, and a descriptor that two nodes read differently is an attack. So a document is read only if every
parser would read it alike:

- at most `max_bytes` (1 MiB) and `MAX_DEPTH` levels, checked before a value is built;
- UTF-8 without a byte order mark;
- no duplicate keys, no trailing data, no NaN or infinity, no lone surrogate;
- numbers within ±(2^53−1). A number with a point or an exponent becomes a float, so that a profile that wants an
  integer can refuse `1.0` and `1e3`; `true` is a bool.

Two readers agree on that. The fast one is the standard library's scanner with hooks that object to what it would let
pass. It says only *that* something is wrong; then `json_locate` reads again, slowly, and says what and where.
"""

from __future__ import annotations

import re
from json import JSONDecodeError, JSONDecoder
from typing import Any, Final, NoReturn, TypeAlias, Union

from bnw.profiles.contract import LocatedError
from bnw.wire.errors import InvalidError
from bnw.wire.limits import MAX_DESCRIPTOR, MAX_INTEGER

JsonValue: TypeAlias = Union[bool, int, float, str, "list[JsonValue]", "dict[str, JsonValue]", None]

MAX_DEPTH: Final = 64
"""Objects and arrays within each other, the outermost included."""
MAX_INTEGER_DIGITS: Final = len(str(MAX_INTEGER))
BOM: Final = b"\xef\xbb\xbf"


class JsonError(InvalidError):
    """The bytes are not strict JSON. `faults` locates every one that could be found.

    A fault that leaves the rest readable (a duplicate key, a number out of range) still leaves a value, `salvaged`, so
    that a profile can report its own faults along with it. It is None if nothing could be read.
    """

    def __init__(self, faults: tuple[LocatedError, ...], salvaged: JsonValue) -> None:
        first = faults[0]
        super().__init__(first.code, first.message, place=first.pointer or None, cure=first.hint)
        self.faults = faults
        self.salvaged = salvaged


class _Objection(Exception):
    """Something that the standard scanner would let pass."""


def read_json(data: bytes, *, max_bytes: int = MAX_DESCRIPTOR) -> JsonValue:
    """The value that `data` holds; raises `JsonError` unless it is strict JSON of at most `max_bytes` bytes."""
    if len(data) <= max_bytes and not data.startswith(BOM) and not _too_deep(data):
        try:
            text = data.decode()
            value: JsonValue = _decode(text)
        except (UnicodeDecodeError, JSONDecodeError, _Objection, RecursionError):
            pass
        else:
            if _SURROGATE_ESCAPE.search(data) is None or not holds_surrogate(value):
                return value
    salvaged, faults = salvage_json(data, max_bytes=max_bytes)
    raise JsonError(faults or (LocatedError("", "json-syntax", "is not strict JSON"),), salvaged)


def salvage_json(data: bytes, *, max_bytes: int = MAX_DESCRIPTOR) -> tuple[JsonValue, tuple[LocatedError, ...]]:
    """What can be made of `data`, and all its faults; none exactly if `read_json` accepts it."""
    from bnw.profiles.json_locate import locate  # only documents with a fault need it

    return locate(data, max_bytes)


def holds_surrogate(value: JsonValue) -> bool:
    """Whether a text in `value`, keys included, has half a surrogate pair."""
    stack: list[Any] = [value]
    while stack:
        item = stack.pop()
        if isinstance(item, str):
            if _SURROGATE.search(item) is not None:
                return True
        elif isinstance(item, list):
            stack.extend(item)
        elif isinstance(item, dict):
            stack.extend(item)
            stack.extend(item.values())
    return False


_SURROGATE = re.compile("[\ud800-\udfff]")
_SURROGATE_ESCAPE = re.compile(rb"\\u[dD][89a-fA-F]")

# Matches from a quote to the end of the string, or of the data: it never fails, so that hostile quotes and backslashes
# can't make the search start again and again.
_STRING = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"?', re.DOTALL)
_BRACKETS = re.compile(rb"[\[{]+|[\]}]+")


def _too_deep(data: bytes) -> bool:
    if data.count(b"[") + data.count(b"{") <= MAX_DEPTH:
        return False
    depth = 0
    for run in _BRACKETS.finditer(_STRING.sub(b"", data)):
        length = run.end() - run.start()
        if run[0][0] in b"[{":
            depth += length
            if depth > MAX_DEPTH:
                return True
        else:
            depth -= length
    return False


def _object(pairs: list[tuple[str, JsonValue]]) -> dict[str, JsonValue]:
    value = dict(pairs)
    if len(value) != len(pairs):
        raise _Objection
    return value


def _integer(text: str) -> int:
    # The length first: turning a million digits into an integer takes for ever.
    if len(text) > MAX_INTEGER_DIGITS + 1:
        raise _Objection
    value = int(text)
    if not -MAX_INTEGER <= value <= MAX_INTEGER:
        raise _Objection
    return value


def _float(text: str) -> float:
    value = float(text)
    if not -MAX_INTEGER <= value <= MAX_INTEGER:
        raise _Objection
    return value


def _constant(text: str) -> NoReturn:
    raise _Objection


_decode = JSONDecoder(
    object_pairs_hook=_object, parse_int=_integer, parse_float=_float, parse_constant=_constant
).decode
