"""Messages between peers: typed maps with a `type`, read as strictly as signed objects but neither signed nor kept."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, TypeVar

from bnw.objects.fields import read_fields, write_fields
from bnw.wire.cbor import Value
from bnw.wire.errors import InvalidError


@dataclass(frozen=True, slots=True)
class Message:
    """Base of messages; fields are declared with `bnw.objects.fields.spec`."""

    TYPE: ClassVar[str]

    def to_wire(self) -> dict[str, Value]:
        return {"type": self.TYPE, **write_fields(self)}


M = TypeVar("M", bound=Message)


def read_message(value: dict[str, Value] | None, *expected: type[M]) -> M:
    """Read one of the `expected` messages; raises `InvalidError`. None stands for a stream that ended."""
    names = " or ".join(cls.TYPE for cls in expected)
    if value is None:
        raise InvalidError("message", f"the stream ended where {names} was expected")
    found = value.get("type")
    for cls in expected:
        if found == cls.TYPE:
            fields: dict[str, Any] = read_fields(cls, value, cls.TYPE, also=("type",))
            return cls(**fields)
    raise InvalidError("message", f"a message {found!r:.40} where {names} was expected")
