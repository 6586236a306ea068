"""The JSON Schema in `proto/` and the parser say the same of every document, save the two rules it has no words for."""

from __future__ import annotations

import copy
import json
import unicodedata
from pathlib import Path
from typing import Any

import jsonschema_rs
from hypothesis import event, given, settings
from hypothesis import strategies as st
from profile_faults import EXAMPLE, faults

from bnw.profiles.capability.parse import parse
from bnw.profiles.capability.text import FORBIDDEN_RANGES
from bnw.profiles.json_reader import JsonError, read_json
from bnw.wire.limits import MAX_MEDIA_TYPE, MAX_PAYLOAD

SCHEMA_FILE = Path(__file__).parents[2] / "proto/capability-profile-1.schema.json"
SCHEMA = json.loads(SCHEMA_FILE.read_text())
VALIDATOR = jsonschema_rs.Draft202012Validator(SCHEMA)


def beyond_json_schema(document: Any) -> bool:
    """Whether the document breaks one of the two rules that JSON Schema can't state."""
    root = document if isinstance(document, dict) else {}
    for name in ("name", "description"):
        text = root.get(name)
        if isinstance(text, str) and not unicodedata.is_normalized("NFC", text):
            return True
    operation = root.get("operation")
    for side in ("input", "output"):
        payload = operation.get(side) if isinstance(operation, dict) else None
        if isinstance(payload, dict) and isinstance(payload.get("max_bytes"), float):
            return True  # an integer by value, but not as written
    return False


MARKS = st.sampled_from(
    "aZ0 é\u0301\n\x00\x7f\u00a0\u00ad\u200b\u2028\u202e\u2066\u200f\u3164\u2800\ufeff😀\U000e0041\U0001bca0"
)
TEXT = st.text(MARKS, max_size=6) | st.sampled_from(["a" * 128, "a" * 129, "é" * 4096, "a" * 4097])
NAMES = st.text(st.sampled_from("a0.-_/A \n"), max_size=6) | st.sampled_from(["a" * 64, "a" * 65, "tools/call"])
MEDIA_TYPES = st.sampled_from(
    ["text/plain", "a/b", "application/vnd.x+json", "A/b", "a", "a/", "a/b;c", "a/b\n", "x/" + "y" * 125,
     "x/" + "y" * 126, "x/" + "y" * 127, "y" * 127 + "/" + "y" * 127, "!a/b", "a/-b", "a/b!#$&^_.+-"]
)  # fmt: skip
TOO_MANY = [f"a/{number}" for number in range(17)]
ANYTHING = st.sampled_from([None, True, False, 0, 1, -1, 1.0, 1.5, "", "x", [], {}, [1], {"a": 1}])
HEX = st.sampled_from(["0" * 64, "f" * 64, "F" * 64, "0" * 63, "0" * 65, "g" * 64, "0" * 64 + "\n", ""])
BYTES = st.sampled_from([0, 1, 1024, MAX_PAYLOAD, MAX_PAYLOAD + 1, -5, 1024.0, 2.0**30, 0.5])
PRIVACY = st.sampled_from(["public", "participant-encrypted", "either", "Public", "", "none"])
PLACES: dict[tuple[str, ...], st.SearchStrategy[Any]] = {
    ("profile",): st.sampled_from(["bnw.capability-profile/1", "bnw.capability-profile/2"]),
    ("name",): TEXT,
    ("description",): TEXT,
    ("operation", "name"): NAMES,
}
for side in ("input", "output"):
    PLACES[("operation", side, "media_types")] = st.lists(MEDIA_TYPES, max_size=4) | st.just(
        [f"a/{n}" for n in range(17)]
    )
    PLACES[("operation", side, "schema")] = st.none() | HEX
    PLACES[("operation", side, "max_bytes")] = BYTES
    PLACES[("operation", side, "privacy")] = PRIVACY
OBJECTS: tuple[tuple[str, ...], ...] = ((), ("operation",), ("operation", "input"), ("operation", "output"))


@st.composite
def documents(draw: st.DrawFn) -> Any:
    """The example, changed in up to three ways: another value, a value of any kind, a member less or more."""
    document = copy.deepcopy(json.loads(EXAMPLE))
    for _ in range(draw(st.integers(0, 3))):
        way = draw(st.sampled_from(["value", "value", "value", "anything", "remove", "add"]))
        path = draw(st.sampled_from(OBJECTS if way == "add" else list(PLACES)))
        parent: Any = document
        for name in path if way == "add" else path[:-1]:
            parent = parent.get(name) if isinstance(parent, dict) else None
        if not isinstance(parent, dict):
            continue
        if way == "add":
            parent[draw(st.sampled_from(["extra", "Name", "nam", "x-a", ""]))] = draw(ANYTHING)
        elif way == "remove":
            parent.pop(path[-1], None)
        else:
            parent[path[-1]] = draw(PLACES[path] if way == "value" else ANYTHING)
    return document


def verdicts(document: Any) -> tuple[bool, bool]:
    """What the parser and the schema say."""
    return parse(json.dumps(document).encode()).value is not None, VALIDATOR.is_valid(document)


@settings(max_examples=1500)
@given(documents() | ANYTHING)
def test_schema_and_parser_agree_both_ways(document: Any) -> None:
    parser, schema = verdicts(document)
    if beyond_json_schema(document):
        event("beyond JSON Schema")
        assert not parser
    else:
        event("valid" if parser else "invalid")
        assert parser == schema


def test_schema_and_parser_agree_on_every_single_fault_that_is_readable() -> None:
    judged = 0
    for fault in faults():
        try:
            document = read_json(fault.document)
        except JsonError:
            continue
        if not beyond_json_schema(document):
            assert not VALIDATOR.is_valid(document), fault.name
            judged += 1
    assert judged > 150
    assert VALIDATOR.is_valid(json.loads(EXAMPLE))


def test_the_two_exceptions_are_just_these() -> None:
    decomposed = {**json.loads(EXAMPLE), "name": "e\u0301"}
    assert verdicts(decomposed) == (False, True)
    pointed = json.loads(EXAMPLE)
    pointed["operation"]["input"]["max_bytes"] = 1024.0
    assert verdicts(pointed) == (False, True)


def test_the_schema_has_the_parsers_tables_and_limits() -> None:
    assert SCHEMA["properties"]["name"]["not"]["pattern"] == f"[{FORBIDDEN_RANGES}]"
    payload = SCHEMA["$defs"]["payload"]["properties"]
    assert payload["media_types"]["items"]["maxLength"] == MAX_MEDIA_TYPE
    assert payload["max_bytes"]["maximum"] == MAX_PAYLOAD
    jsonschema_rs.meta.validate(SCHEMA)
