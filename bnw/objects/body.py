"""The common part of every signed object's body.

A body is a CBOR map with a `version`, the time it was `created`, the time it `expires` (carriers drop it then), and the
fields of its kind. Every field is always present; what is absent is null. Unknown fields and versions are refused by
name (design section 6).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Self

from bnw.objects.fields import TIME, fail, read_fields, spec, write_fields
from bnw.wire.cbor import Value, decode_map, encode
from bnw.wire.limits import MAX_SIGNED_OBJECT

VERSION = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Body:
    """Base of the kinds. Times are milliseconds since the Unix epoch, lifetimes milliseconds."""

    KIND: ClassVar[str]
    MAX_LIFETIME: ClassVar[int]
    MIN_LIFETIME: ClassVar[int] = 1

    created: int = spec(TIME)
    expires: int = spec(TIME)

    def check(self) -> None:
        """Rules that concern more than one field; raises `InvalidError`. Kinds extend it."""
        lifetime = self.expires - self.created
        if not self.MIN_LIFETIME <= lifetime <= self.MAX_LIFETIME:
            raise fail(
                f"{self.KIND}.expires",
                f"a lifetime of {lifetime} ms, where {self.MIN_LIFETIME} to {self.MAX_LIFETIME} are allowed",
                "lifetime",
            )

    def encode(self) -> bytes:
        """The bytes that are signed."""
        return encode({"version": VERSION, **write_fields(self)})

    @classmethod
    def decode(cls, data: bytes) -> Self:
        """Read a body strictly; raises `InvalidError` that names the field."""
        value: dict[str, Value] = decode_map(data, max_size=MAX_SIGNED_OBJECT)
        version = value.get("version")
        if type(version) is not int or version != VERSION:
            raise fail(f"{cls.KIND}.version", f"version {version!r:.40} is not known; {VERSION} is", "unknown-version")
        body = cls(**read_fields(cls, value, cls.KIND, also=("version",)))
        body.check()
        return body
