"""How values, objects and refusals are written as JSON, and the fixed keys and times that vectors share."""

from __future__ import annotations

from typing import Any

from bnw.identity.keys import IdentityId, SigningKey
from bnw.objects.body import VERSION, Body
from bnw.objects.fields import write_fields
from bnw.wire.cbor import Value
from bnw.wire.content_id import ContentId, content_id

Json = dict[str, Any]

NOW = 1_800_000_000_000
"""15 January 2027, 08:00 UTC, in milliseconds since the Unix epoch."""

PUBLISHER, PROVIDER, REQUESTER, STRANGER = (SigningKey(bytes([number]) * 32) for number in (1, 2, 3, 4))


def an_id(text: str) -> ContentId:
    """The content id of some text, where a vector needs an id and nothing that it belongs to."""
    return content_id(text.encode())


def ascending(*identities: IdentityId) -> tuple[IdentityId, ...]:
    return tuple(sorted(identities))


def value_of(body: Body) -> dict[str, Value]:
    """The map that a body is encoded from."""
    return {"version": VERSION, **write_fields(body)}


def to_json(value: Value) -> Any:
    """A CBOR value as JSON."""
    if isinstance(value, bytes):
        return {"$bytes": value.hex()}
    if isinstance(value, list):
        return [to_json(item) for item in value]
    if isinstance(value, dict):
        return {key: to_json(item) for key, item in value.items()}
    return value
