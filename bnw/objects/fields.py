"""Codecs for the fields of signed objects: each reads a decoded CBOR value strictly and writes it back.

Every reader gets the place of the value ("receipt.error.code"), so that a refusal names the field it is about.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Generic, TypeVar, cast

from bnw.identity.keys import IDENTITY_ID_SIZE, IdentityId
from bnw.wire.cbor import Value, type_name
from bnw.wire.content_id import CONTENT_ID_SIZE, ContentId
from bnw.wire.errors import InvalidError
from bnw.wire.limits import MAX_INTEGER
from bnw.wire.names import check_name, is_media_type, is_name, is_plain_text

T = TypeVar("T")


@dataclasses.dataclass(frozen=True, slots=True)
class Codec(Generic[T]):
    """How one field is read and written. `read` gets the value and its place; raises `InvalidError`."""

    read: Callable[[Value, str], T]
    write: Callable[[T], Value]


def spec(codec: Codec[T], *, secret: bool = False) -> T:
    """Declare a dataclass field with its codec. A `secret` one does not show in the repr."""
    return cast(T, dataclasses.field(repr=not secret, metadata={"codec": codec}))


def codecs_of(cls: type[Any]) -> Mapping[str, Codec[Any]]:
    """The codecs of a dataclass, by field name."""
    codecs = _CODECS.get(cls)
    if codecs is None:
        codecs = _CODECS[cls] = {field.name: field.metadata["codec"] for field in dataclasses.fields(cls)}
    return codecs


_CODECS: dict[type[Any], Mapping[str, Codec[Any]]] = {}
"""What `codecs_of` has found out; one entry for each class in the program."""


def fail(at: str, cause: str, code: str = "field") -> InvalidError:
    return InvalidError(code, cause, place=at)


def integer(minimum: int = 0, maximum: int = MAX_INTEGER) -> Codec[int]:
    def read(value: Value, at: str) -> int:
        if type(value) is not int:
            raise fail(at, f"an integer is expected, not {type_name(value)}")
        if not minimum <= value <= maximum:
            raise fail(at, f"{value} is not between {minimum} and {maximum}")
        return value

    return Codec(read, lambda value: value)


def raw_bytes(minimum: int, maximum: int) -> Codec[bytes]:
    def read(value: Value, at: str) -> bytes:
        if not isinstance(value, bytes):
            raise fail(at, f"bytes are expected, not {type_name(value)}")
        if not minimum <= len(value) <= maximum:
            raise fail(at, f"{len(value)} bytes, where {minimum} to {maximum} are allowed")
        return value

    return Codec(read, lambda value: value)


def text(minimum: int, maximum: int) -> Codec[str]:
    """Plain text (`bnw.wire.names.is_plain_text`) of `minimum` to `maximum` bytes of UTF-8."""

    def read(value: Value, at: str) -> str:
        if not isinstance(value, str):
            raise fail(at, f"text is expected, not {type_name(value)}")
        if not minimum <= len(value.encode()) <= maximum:
            raise fail(at, f"{len(value.encode())} bytes of text, where {minimum} to {maximum} are allowed")
        if not is_plain_text(value):
            raise fail(at, "the text holds control characters, line breaks or direction controls")
        return value

    return Codec(read, lambda value: value)


def _name(what: str) -> Codec[str]:
    def read(value: Value, at: str) -> str:
        if not isinstance(value, str):
            raise fail(at, f"text is expected, not {type_name(value)}")
        try:
            return check_name(value, what)
        except InvalidError as error:
            raise InvalidError(error.code, error.cause, place=at, cure=error.cure) from None

    return Codec(read, lambda value: value)


def choice(*allowed: str) -> Codec[str]:
    def read(value: Value, at: str) -> str:
        if not isinstance(value, str) or value not in allowed:
            raise fail(at, f"one of {', '.join(allowed)} is expected, not {value!r:.80}")
        return value

    return Codec(read, lambda value: value)


def optional(codec: Codec[T]) -> Codec[T | None]:
    """Null or what `codec` reads. Every field is always present, so that a value has one encoding."""
    return Codec(
        lambda value, at: None if value is None else codec.read(value, at),
        lambda value: None if value is None else codec.write(value),
    )


def array(codec: Codec[T], minimum: int, maximum: int, *, ascending: bool = False) -> Codec[tuple[T, ...]]:
    """An array; with `ascending`, its items are strictly ascending, which also means none is there twice."""

    def read(value: Value, at: str) -> tuple[T, ...]:
        if not isinstance(value, list):
            raise fail(at, f"an array is expected, not {type_name(value)}")
        if not minimum <= len(value) <= maximum:
            raise fail(at, f"{len(value)} items, where {minimum} to {maximum} are allowed")
        items = tuple(codec.read(item, f"{at}[{number}]") for number, item in enumerate(value))
        if ascending and any(not _is_before(a, b) for a, b in itertools.pairwise(items)):
            raise fail(at, "the items are not in strictly ascending order")
        return items

    return Codec(read, lambda items: [codec.write(item) for item in items])


def _is_before(a: Any, b: Any) -> bool:
    return bool(a < b)


def record(cls: type[T]) -> Codec[T]:
    """A nested dataclass whose fields are declared with `spec`."""

    def read(value: Value, at: str) -> T:
        if not isinstance(value, dict):
            raise fail(at, f"a map is expected, not {type_name(value)}")
        return cls(**read_fields(cls, value, at))

    def write(value: T) -> Value:
        return write_fields(value)

    return Codec(read, write)


def read_fields(cls: type[Any], value: dict[str, Value], at: str, *, also: Sequence[str] = ()) -> dict[str, Any]:
    """Read exactly the fields of `cls`; `also` names keys that the caller has read itself."""
    codecs = codecs_of(cls)
    if value.keys() != {*codecs, *also}:
        _check_names(codecs, value, at, also)
    return {name: codec.read(value[name], f"{at}.{name}") for name, codec in codecs.items()}


def _check_names(codecs: Mapping[str, Codec[Any]], value: dict[str, Value], at: str, also: Sequence[str]) -> None:
    for key in value:
        if key not in codecs and key not in also:
            # The key is a peer's text, and the place goes to logs and terminals.
            shown = key if is_name(key) else f"{key!a:.64}"
            raise fail(f"{at}.{shown}", "this field is not known", "unknown-field")
    for name in codecs:
        if name not in value:
            raise fail(f"{at}.{name}", "this field is missing", "missing-field")


def write_fields(value: object) -> dict[str, Value]:
    codecs = codecs_of(type(value))
    return {name: codec.write(getattr(value, name)) for name, codec in codecs.items()}


def _media_type() -> Codec[str]:
    def read(value: Value, at: str) -> str:
        if not isinstance(value, str) or not is_media_type(value):
            raise fail(at, f"{value!r:.80} is not a lowercase media type without parameters")
        return value

    return Codec(read, lambda value: value)


TIME = integer(1)
SEQUENCE = integer(1)
NAME = _name("name")
STAGE = _name("stage")
MEDIA_TYPE = _media_type()
IDENTITY: Codec[IdentityId] = cast("Codec[IdentityId]", raw_bytes(IDENTITY_ID_SIZE, IDENTITY_ID_SIZE))
CONTENT_ID: Codec[ContentId] = cast("Codec[ContentId]", raw_bytes(CONTENT_ID_SIZE, CONTENT_ID_SIZE))
BOOLEAN: Codec[bool]


def _boolean(value: Value, at: str) -> bool:
    if not isinstance(value, bool):
        raise fail(at, f"a boolean is expected, not {type_name(value)}")
    return value


BOOLEAN = Codec(_boolean, lambda value: value)
