"""Checking an input or output against what a descriptor says of it: media type, size, JSON Schema.

Plug-ins for formats that name a schema share this. The provider runs it on every input; nothing is enforced on the
requester. A check that cannot be carried out (the schema is missing, or is no usable JSON Schema) is a failed check.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from typing import Final

import jsonschema_rs

from bnw.profiles.contract import LocatedError, PayloadLimits
from bnw.profiles.json_locate import shown
from bnw.profiles.json_reader import JsonError, read_json
from bnw.profiles.schema_check import SchemaError, check, compile_schema, load_schema
from bnw.wire.content_id import ContentId, content_id_text
from bnw.wire.limits import MIB

MAX_CHECKED: Final = 16 * MIB
"""Bytes of JSON that are checked against a schema. A larger payload of a capability with a schema fails its check."""
_MAX_COMPILED: Final = 16


def is_json(media_type: str) -> bool:
    """Whether a payload of this media type is one JSON document, so that a JSON Schema can speak of it."""
    return media_type in ("application/json", "text/json") or media_type.endswith("+json")


def outer_faults(limits: PayloadLimits, media_type: str, size: int) -> tuple[LocatedError, ...]:
    """What is wrong with a payload to see from outside: its media type, and its size in bytes."""
    if media_type not in limits.media_types:
        message = f"{shown(media_type)} is not accepted"
        return (LocatedError("", "media-type-refused", message, f"send {' or '.join(limits.media_types)}"),)
    if size > limits.max_bytes:
        message = f"{size:,} bytes, where at most {limits.max_bytes:,} are accepted"
        return (LocatedError("", "payload-too-large", message, "send less"),)
    return ()


def has_schema(limits: PayloadLimits, media_type: str) -> bool:
    """Whether a schema speaks of the content of a payload of this media type."""
    return limits.schema is not None and is_json(media_type)


def too_large_to_check(size: int) -> LocatedError:
    message = f"{size:,} bytes; at most {MAX_CHECKED:,} can be checked"
    return LocatedError("", "payload-too-large", message, "send less")


class PayloadCheck:
    """Checks payloads, and keeps the last few compiled schemas."""

    def __init__(self) -> None:
        self._compiled: OrderedDict[ContentId, jsonschema_rs.Validator] = OrderedDict()

    def faults(
        self, limits: PayloadLimits, schemas: Mapping[ContentId, bytes], media_type: str, data: bytes
    ) -> tuple[LocatedError, ...]:
        """Why `data` is not a payload within `limits`; empty if it is."""
        faults = outer_faults(limits, media_type, len(data))
        if faults or limits.schema is None or not has_schema(limits, media_type):
            return faults
        return self._against_schema(limits.schema, schemas, data)

    def _against_schema(
        self, schema: ContentId, schemas: Mapping[ContentId, bytes], data: bytes
    ) -> tuple[LocatedError, ...]:
        if len(data) > MAX_CHECKED:
            return (too_large_to_check(len(data)),)
        try:
            validator = self._validator(schema, schemas)
        except SchemaError as error:
            return (LocatedError("", error.code, error.cause, error.cure),)
        if validator is None:
            message = f"the schema {content_id_text(schema)} is not at hand, so nothing can be checked"
            return (LocatedError("", "schema-missing", message, "try again once the node has fetched it"),)
        try:
            value = read_json(data, max_bytes=MAX_CHECKED)
        except JsonError as error:
            return error.faults
        return check(validator, value)

    def _validator(self, schema: ContentId, schemas: Mapping[ContentId, bytes]) -> jsonschema_rs.Validator | None:
        data = schemas.get(schema)
        if data is None:
            return None  # even if it was at hand before: the answer must not depend on what was asked earlier
        validator = self._compiled.get(schema)
        if validator is None:
            validator = compile_schema(load_schema(data))
            self._compiled[schema] = validator
            while len(self._compiled) > _MAX_COMPILED:
                self._compiled.popitem(last=False)
        else:
            self._compiled.move_to_end(schema)
        return validator
