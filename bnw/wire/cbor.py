"""Deterministic CBOR: the subset of RFC 8949 section 4.2 that BNW signs and sends (design section 5).

Allowed: maps with text keys, arrays, text, byte strings, booleans, null, and integers in ±(2^53−1). Decoding is strict
in two steps. The decoder itself refuses tags, indefinite lengths, duplicate keys and depth before it builds anything a
peer could blow up; then the value is encoded again and compared, so that every value has exactly one encoding and
nothing is ever verified over a re-serialised form.
"""

from __future__ import annotations

from typing import Any, NoReturn, TypeAlias, Union, cast

import cbor2

from bnw.wire.errors import InvalidError
from bnw.wire.limits import MAX_CBOR_DEPTH, MAX_INTEGER

Value: TypeAlias = Union[bool, int, str, bytes, "list[Value]", "dict[str, Value]", None]


def _refuse_tag(*_: object) -> NoReturn:
    raise InvalidError("cbor-tag", "CBOR tags are not allowed here")


# Tags that the library would decode by itself. Two of them (28 and 29, shared values) turn a few hundred bytes into a
# structure that takes for ever to walk, so they must be refused while decoding and not afterwards.
_LIBRARY_TAGS = dict.fromkeys([*range(64), 100, *range(256, 270), 1004, 43000, 55799], _refuse_tag)
_BYTES = 2 << 5
"""Major type 2 in the first byte of an item."""
_MAX_LIBRARY_MESSAGE = 200
"""Characters of the library's own error text that are repeated; it may quote a peer's bytes."""


def encode(value: Value) -> bytes:
    """Encode `value`; raises `InvalidError` for a value outside the subset."""
    _check(value, 0)
    # For text keys, the shorter-first order of `canonical` and the bytewise order of RFC 8949 section 4.2.1 agree,
    # because the length is in the head of the encoded key.
    return cbor2.dumps(value, canonical=True)


def decode(data: bytes, *, max_size: int) -> Value:
    """Decode `data` strictly; raises `InvalidError` unless it is the one encoding of an allowed value.

    `max_size` is in bytes and is checked before anything is read.
    """
    if len(data) > max_size:
        raise InvalidError("too-large", f"{len(data):,} bytes of CBOR where at most {max_size:,} are allowed")
    value = read_untagged(data, "value", max_depth=MAX_CBOR_DEPTH)
    _check(value, 0)
    # The same as comparing with the canonical encoding, in a third of the time: without `canonical` the library keeps
    # the order of the keys, and all else that could differ (floats) is not of the subset.
    if cbor2.dumps(value) != data or not _is_ordered(value):
        raise InvalidError("cbor-not-deterministic", "not the deterministic encoding of its value (RFC 8949 4.2)")
    return cast(Value, value)


def decode_map(data: bytes, *, max_size: int) -> dict[str, Value]:
    """Like `decode`, for bytes that must hold a map."""
    value = decode(data, max_size=max_size)
    if not isinstance(value, dict):
        raise InvalidError("cbor-type", f"a map is expected, not {type_name(value)}")
    return value


def read_untagged(data: bytes, what: str, *, max_depth: int, text_keys: bool = True) -> Any:
    """Read one CBOR item of definite lengths without tags and duplicate keys; raises `InvalidError` naming `what`.

    For callers that go on to check the form and that there is no other encoding. Tags are never decoded, not even
    where the result would be refused anyhow: 64 KiB of a regular expression (tag 35) take minutes to compile.
    """
    try:
        return cbor2.loads(
            data,
            tag_hook=_refuse_tag,
            semantic_decoders=_LIBRARY_TAGS,
            max_depth=max_depth,
            allow_indefinite=False,
            allow_duplicate_keys=False,
            strict_hashable_types=text_keys,
        )
    except InvalidError:
        raise
    except Exception as error:  # noqa: BLE001 - whatever the library raises on hostile bytes means the bytes are bad
        if isinstance(error.__cause__, InvalidError):
            raise error.__cause__ from None
        raise InvalidError("cbor", f"the {what} is not well-formed CBOR: {error!s:.{_MAX_LIBRARY_MESSAGE}}") from None


def encode_bytes(data: bytes) -> bytes:
    """Encode a byte string: the same as `encode` in a fraction of the time, for what is mostly byte strings."""
    size = len(data)
    if size < 24:
        return bytes((_BYTES | size,)) + data
    if size < 1 << 8:
        return bytes((_BYTES | 24, size)) + data
    if size < 1 << 16:
        return bytes((_BYTES | 25,)) + size.to_bytes(2) + data
    return bytes((_BYTES | 26,)) + size.to_bytes(4) + data


def type_name(value: object) -> str:
    """The CBOR name of a value's type, for messages."""
    if value is None:
        return "null"
    names = {bool: "a boolean", int: "an integer", str: "text", bytes: "bytes", list: "an array", dict: "a map"}
    return names.get(type(value), f"a {type(value).__name__}")


def _check(value: object, depth: int) -> None:
    """Refuse what the subset does not allow. Exact types: a subclass could encode as something else."""
    # Every byte that a node sends or receives passes here, so the common leaves cost no call of their own.
    kind = type(value)
    if kind is dict:
        _check_depth(depth)
        for key, item in cast("dict[object, object]", value).items():
            if type(key) is not str:
                raise InvalidError("cbor-key", f"a map key is {type_name(key)}; keys must be text")
            if not key.isascii():
                _check_text(key)
            if type(item) is not bytes and item is not None:
                _check(item, depth + 1)
    elif kind is list:
        _check_depth(depth)
        for item in cast("list[object]", value):
            if type(item) is not bytes:
                _check(item, depth + 1)
    elif kind is int:
        if not -MAX_INTEGER <= cast(int, value) <= MAX_INTEGER:
            raise InvalidError("cbor-integer", "an integer is outside ±(2^53−1)")
    elif kind is str:
        _check_text(cast(str, value))
    elif value is not None and kind is not bool and kind is not bytes:
        raise InvalidError("cbor-type", f"{type_name(value)} cannot be part of a BNW message")


def _is_ordered(value: object) -> bool:
    """Whether the keys of every map ascend by the bytes of their encoding: shorter ones first."""
    if type(value) is list:
        return all(_is_ordered(item) for item in value if type(item) is dict or type(item) is list)
    if type(value) is not dict:
        return True
    last, last_size = "", -1
    for key, item in value.items():
        size = len(key) if key.isascii() else len(key.encode())
        # UTF-8 has the order of the code points.
        if size < last_size or (size == last_size and key <= last):
            return False
        last, last_size = key, size
        if (type(item) is dict or type(item) is list) and not _is_ordered(item):
            return False
    return True


def _check_text(text: str) -> None:
    if text.isascii():
        return
    try:
        text.encode()
    except UnicodeEncodeError:
        raise InvalidError("cbor-text", "text holds a lone surrogate") from None


def _check_depth(depth: int) -> None:
    if depth >= MAX_CBOR_DEPTH:
        raise InvalidError("cbor-depth", f"more than {MAX_CBOR_DEPTH} levels of nesting")
