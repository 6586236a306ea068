"""Starter documents: from an input's JSON Schema, a small document of the right shape to begin with.

It has the required members, with the values that the schema itself offers (`const`, `default`, `examples`, `enum`)
where it offers any, and otherwise the plainest values within the bounds. Satisfying a JSON Schema is hard in general
(as hard as SAT), so this is a search that gives up early: `build` proposes values for each part, the real validator
judges them, and a document is handed out only if the validator accepts the whole of it. Nobody is held to it: it helps
whoever writes a request, and the provider checks the request whatever it was made from.

Nothing outside the schema is ever read: a schema with a reference that leaves it has no starter document.
"""

from __future__ import annotations

import json
from itertools import islice
from typing import Final

import jsonschema_rs

from bnw.profiles.json_reader import JsonError, read_json
from bnw.profiles.schema_check import PATTERN_OPTIONS, SchemaError, compile_schema, load_schema
from bnw.profiles.starter.build import Builder
from bnw.profiles.starter.references import Schema
from bnw.profiles.starter.views import Views
from bnw.wire.limits import KIB

MAX_STARTER: Final = 256 * KIB
"""Bytes of a starter document."""
_DEPTHS: Final = (1, 2, 3, 4, 6, 8, 12, 16, 32, 60)
"""Levels of nesting tried one after the other, so that a recursive schema gets the shallowest document it allows."""


def starter_document(schema: bytes) -> bytes | None:
    """A document that is valid against `schema` (its bytes), or None if the search finds none.

    Deterministic. The number of steps is bounded, but not what a hostile schema makes the validator do in one of them:
    call this in the worker process of `bnw.profiles.service`.
    """
    try:
        root = load_schema(schema)
        whole = compile_schema(root)
        checked = _parts(root, formats=True)
    except (SchemaError, ValueError, jsonschema_rs.ReferencingError):
        return None
    views = Views(root)
    # Some validators check `format` and some only note it. A document that satisfies both is sought first.
    ways: list[tuple[jsonschema_rs.ValidatorMap, ...]] = [(checked,)]
    if b"format" in schema:
        ways.insert(0, (checked, _parts(root, formats=False)))
    for parts in ways:
        for depth in _DEPTHS:
            for value in islice(Builder(views, parts, unlikely=depth == _DEPTHS[-1]).values(("",), depth), 1):
                data = json.dumps(value, ensure_ascii=False, indent=2).encode()
                if len(data) <= MAX_STARTER and whole.is_valid(value) and _is_strict(data):
                    return data
    return None


def _parts(root: Schema, *, formats: bool) -> jsonschema_rs.ValidatorMap:
    return jsonschema_rs.validator_map_for(
        root, validate_formats=formats, offline=True, pattern_options=PATTERN_OPTIONS
    )


def _is_strict(data: bytes) -> bool:
    try:
        read_json(data, max_bytes=MAX_STARTER)
    except JsonError:
        return False
    return True
