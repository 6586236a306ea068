"""How questions and answers cross the border to a worker process: deterministic CBOR with a length in front.

A worker runs other people's code, so what comes back is read as strictly as anything from a peer: sizes first, then
form. Whatever does not fit raises `InvalidError`, and the plug-in counts as failed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, cast

from bnw.profiles.contract import (
    MAX_ERRORS,
    Description,
    DescriptorLimits,
    Fact,
    LocatedError,
    PayloadLimits,
)
from bnw.wire.cbor import Value
from bnw.wire.content_id import CONTENT_ID_SIZE, ContentId, content_id_text, parse_content_id
from bnw.wire.errors import InvalidError
from bnw.wire.limits import MAX_DESCRIPTOR, MAX_MEDIA_TYPES, MAX_PAYLOAD, MIB
from bnw.wire.names import is_media_type, is_name

MAX_REQUEST: Final = 24 * MIB
"""Bytes: a payload of 16 MiB, its descriptor and schemas."""
MAX_REPLY: Final = 16 * MIB
MAX_LINKS: Final = 64
MAX_FACTS: Final = 256
MAX_TEXT: Final = 8192
"""Characters of one message, hint, pointer or fact."""
_PRIVACIES: Final = ("public", "participant-encrypted", "either")


def schemas_to_value(schemas: Mapping[ContentId, bytes]) -> dict[str, Value]:
    return {content_id_text(schema): data for schema, data in schemas.items() if len(data) <= MAX_DESCRIPTOR}


def schemas_from_value(value: Value) -> dict[ContentId, bytes]:
    return {parse_content_id(text): _bytes(data) for text, data in _map(value).items()}


def errors_to_value(errors: Sequence[LocatedError]) -> list[Value]:
    shown = list(errors[:MAX_ERRORS])
    if len(errors) > MAX_ERRORS:
        shown.append(LocatedError("", "too-many-errors", f"{len(errors) - MAX_ERRORS:,} more errors"))
    return [
        [_cut(error.pointer), _cut(error.code), _cut(error.message), None if error.hint is None else _cut(error.hint)]
        for error in shown
    ]


def errors_from_value(value: Value) -> tuple[LocatedError, ...]:
    errors = []
    for item in _list(value, MAX_ERRORS + 1):
        pointer, code, message, hint = _exactly(item, 4)
        errors.append(LocatedError(_text(pointer), _text(code), _text(message), None if hint is None else _text(hint)))
    return tuple(errors)


def description_to_value(description: Description) -> dict[str, Value]:
    if len(description.links) > MAX_LINKS:
        raise InvalidError("plugin-answer", f"links to {len(description.links)} blobs, where {MAX_LINKS} are allowed")
    limits = description.limits
    facts: list[Value] = []
    for fact in description.facts[:MAX_FACTS]:
        value = fact.value
        shown: Value = _cut(value) if isinstance(value, str) else [_cut(item) for item in value[:MAX_FACTS]]
        facts.append([_cut(fact.label), shown])
    return {
        "profile": _cut(description.profile),
        "title": _cut(description.title),
        "facts": facts,
        "errors": errors_to_value(description.errors),
        "warnings": errors_to_value(description.warnings),
        "links": [bytes(link) for link in description.links],
        "limits": None
        if limits is None
        else [limits.operation, _payload_to_value(limits.input), _payload_to_value(limits.output)],
    }


def description_from_value(value: Value) -> Description:
    answer = _map(value)
    if set(answer) != {"profile", "title", "facts", "errors", "warnings", "links", "limits"}:
        raise InvalidError("plugin-answer", "the description lacks or has unknown members")
    facts = []
    for item in _list(answer["facts"], MAX_FACTS):
        label, shown = _exactly(item, 2)
        fact_value: str | tuple[str, ...] = (
            tuple(_text(part) for part in shown[:MAX_FACTS]) if isinstance(shown, list) else _text(shown)
        )
        facts.append(Fact(_text(label), fact_value))
    limits = None
    if answer["limits"] is not None:
        operation, input_, output = _exactly(answer["limits"], 3)
        if not is_name(_text(operation)):
            raise InvalidError("plugin-answer", "the operation's name is not one")
        limits = DescriptorLimits(_text(operation), _payload_from_value(input_), _payload_from_value(output))
    return Description(
        _text(answer["profile"]),
        _text(answer["title"]),
        tuple(facts),
        errors_from_value(answer["errors"]),
        errors_from_value(answer["warnings"]),
        tuple(_content_id(link) for link in _list(answer["links"], MAX_LINKS)),
        limits,
    )


def _payload_to_value(payload: PayloadLimits) -> list[Value]:
    schema = None if payload.schema is None else bytes(payload.schema)
    return [list(payload.media_types), payload.max_bytes, payload.privacy, schema]


def _payload_from_value(value: Value) -> PayloadLimits:
    media_types, max_bytes, privacy, schema = _exactly(value, 4)
    names = tuple(_text(item) for item in _list(media_types, MAX_MEDIA_TYPES))
    if not names or not all(is_media_type(name) for name in names):
        raise InvalidError("plugin-answer", "the media types are not 1 to 16 media types")
    if type(max_bytes) is not int or not 1 <= max_bytes <= MAX_PAYLOAD:
        raise InvalidError("plugin-answer", "the size limit is out of range")
    if privacy not in _PRIVACIES:
        raise InvalidError("plugin-answer", "the privacy is not one of the known kinds")
    return PayloadLimits(names, max_bytes, _text(privacy), None if schema is None else _content_id(schema))


def _cut(text: str) -> str:
    """`text`, made fit to send: short enough, and without half surrogate pairs."""
    return text[:MAX_TEXT].encode("utf-8", "replace").decode()


def _map(value: Value) -> dict[str, Value]:
    if not isinstance(value, dict):
        raise InvalidError("plugin-answer", "a map is expected in a plug-in's answer")
    return value


def _list(value: Value, most: int) -> list[Value]:
    if not isinstance(value, list) or len(value) > most:
        raise InvalidError("plugin-answer", f"a list of at most {most} items is expected in a plug-in's answer")
    return value


def _exactly(value: Value, count: int) -> list[Value]:
    items = _list(value, count)
    if len(items) != count:
        raise InvalidError("plugin-answer", f"a list of {count} items is expected in a plug-in's answer")
    return items


def _text(value: Value) -> str:
    if not isinstance(value, str) or len(value) > MAX_TEXT:
        raise InvalidError(
            "plugin-answer", f"a text of at most {MAX_TEXT} characters is expected in a plug-in's answer"
        )
    return value


def _bytes(value: Value) -> bytes:
    if not isinstance(value, bytes):
        raise InvalidError("plugin-answer", "bytes are expected in a plug-in's answer")
    return value


def _content_id(value: Value) -> ContentId:
    if len(_bytes(value)) != CONTENT_ID_SIZE:
        raise InvalidError("plugin-answer", "a content id has 32 bytes")
    return ContentId(cast(bytes, value))
