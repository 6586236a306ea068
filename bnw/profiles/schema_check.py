"""JSON Schema: compile a schema from bytes, check a value, locate what is wrong.

Drafts 4 to 2020-12 as the schema's `$schema` says, 2020-12 without one; formats are checked, not only noted; `pattern`
means what ECMA 262 means by it. Nothing is ever fetched: a reference that leaves the document makes the schema
unusable, as does one that is not well formed.

The work that a hostile schema or value can cause is *not* bounded here (patterns backtrack, references recurse,
combinations multiply): call this in the worker process of `bnw.profiles.service`, which is bounded.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import islice
from typing import Final

import jsonschema_rs

from bnw.profiles.contract import MAX_ERRORS, LocatedError
from bnw.profiles.json_locate import shown
from bnw.profiles.json_reader import JsonError, JsonValue, read_json
from bnw.profiles.pointer import pointer
from bnw.wire.errors import InvalidError

MAX_MESSAGE: Final = 200
_BACKTRACK_LIMIT: Final = 200_000
"""Steps that one match of a pattern with look-around or back-references may take (others take linear time)."""

PATTERN_OPTIONS: Final = jsonschema_rs.FancyRegexOptions(backtrack_limit=_BACKTRACK_LIMIT)


class SchemaError(InvalidError):
    """The schema itself can't be used; nothing can be checked against it."""


def load_schema(data: bytes) -> dict[str, JsonValue] | bool:
    """A schema from its bytes; raises `SchemaError` (`schema-unusable`) unless it is an object or boolean."""
    try:
        schema = read_json(data)
    except JsonError as error:
        fault = error.faults[0]
        raise SchemaError("schema-unusable", f"the schema is not strict JSON: {fault.message}") from None
    if not isinstance(schema, dict | bool):
        raise SchemaError("schema-unusable", "the schema is neither a JSON object nor a boolean")
    return schema


def compile_schema(schema: dict[str, JsonValue] | bool) -> jsonschema_rs.Validator:
    """A validator; raises `SchemaError` (`schema-unusable`) if the schema breaks its meta-schema or refers outside."""
    try:
        return jsonschema_rs.validator_for(schema, validate_formats=True, offline=True, pattern_options=PATTERN_OPTIONS)
    except (jsonschema_rs.ValidationError, jsonschema_rs.ReferencingError, ValueError) as error:
        raise unusable(error) from None


def unusable(error: Exception) -> SchemaError:
    """What the library says of a bad schema, as an error of ours."""
    place = None
    if isinstance(error, jsonschema_rs.ValidationError):
        place = pointer(error.instance_path) or None
    message = _short(str(getattr(error, "message", error)))
    return SchemaError(
        "schema-unusable",
        f"the schema can't be used: {message}",
        place=place,
        cure="mend the schema; references must stay within it",
    )


def check(validator: jsonschema_rs.Validator, value: JsonValue) -> tuple[LocatedError, ...]:
    """The faults of `value`, at most `MAX_ERRORS` and then one that says that there are more."""
    if validator.is_valid(value):
        return ()
    faults: list[LocatedError] = []
    for error in islice(validator.iter_errors(value), MAX_ERRORS + 1):
        faults.extend(_located(error))
        if len(faults) > MAX_ERRORS:
            return (*faults[:MAX_ERRORS], LocatedError("", "too-many-errors", "there are more errors"))
    return tuple(faults)


def _located(error: jsonschema_rs.ValidationError) -> list[LocatedError]:
    kind = error.kind
    path = error.instance_path
    kinds = jsonschema_rs.ValidationErrorKind
    match kind:
        case kinds.Required(property=name):
            place = pointer([*path, name])
            return [LocatedError(place, "missing-field", f"the member {shown(name)} is missing", "add it")]
        case kinds.AdditionalProperties(unexpected=names) | kinds.UnevaluatedProperties(unexpected=names):
            return [_unknown(path, name) for name in names[: MAX_ERRORS + 1]]
        case kinds.Type(types=types):
            return [LocatedError(pointer(path), "wrong-type", f"expected here: {' or '.join(types)}")]
        case kinds.AnyOf(context=context) | kinds.OneOfNotValid(context=context):
            return [LocatedError(pointer(path), _code(kind.name), "fits none of the alternatives", _closest(context))]
        case kinds.OneOfMultipleValid():
            return [
                LocatedError(pointer(path), _code(kind.name), "fits several alternatives, where exactly one must fit")
            ]
        case kinds.FalseSchema():
            return [LocatedError(pointer(path), "schema-false", "nothing may stand here", "remove it")]
        case kinds.Pattern(pattern=pattern):
            return [LocatedError(pointer(path), "schema-pattern", f"does not match the pattern {shown(pattern)}")]
        case kinds.UniqueItems():
            return [LocatedError(pointer(path), "schema-unique-items", "has two equal items", "keep one of them")]
        case _:
            return [LocatedError(pointer(path), _code(kind.name), _short(error.message))]


def _unknown(path: Sequence[str | int], name: str) -> LocatedError:
    return LocatedError(pointer([*path, name]), "unknown-field", f"the member {shown(name)} is not allowed here")


def _closest(context: Sequence[Sequence[jsonschema_rs.ValidationError]]) -> str | None:
    """A hint from the alternative that came nearest: the one with the fewest faults, deepest inside the value."""
    branches = [branch for branch in context if branch]
    if not branches:
        return None
    nearest = min(branches, key=lambda branch: (len(branch), -len(branch[0].instance_path)))
    faults = _located(nearest[0])
    return f"nearest: {faults[0].pointer or 'the value'}: {faults[0].message}" if faults else None


def _code(keyword: str) -> str:
    return "schema-" + re.sub("[A-Z]", lambda letter: "-" + letter[0].lower(), keyword)


def _short(message: str) -> str:
    if len(message) <= MAX_MESSAGE:
        return message
    half = MAX_MESSAGE // 2
    return f"{message[:half]} ... {message[-half:]}"
