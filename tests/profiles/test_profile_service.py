"""The service: one door to the profiles that nothing behind it can break."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from datetime import UTC, datetime
from time import perf_counter
from typing import Any

import pytest
from profile_faults import EXAMPLE, SAMPLES

from bnw.profiles.service import MAX_FAILURES, ProfileService
from bnw.profiles.worker_client import Bounds
from bnw.wire.content_id import content_id

HOST = (SAMPLES / "openwop-host.json").read_bytes()
SCHEMA = {
    "type": "object",
    "required": ["symbol"],
    "properties": {
        "symbol": {"type": "string", "pattern": "^[A-Z]{1,5}$"},
        "day": {"type": "string", "format": "date"},
    },
    "additionalProperties": False,
}
JSON = "application/json"


@pytest.fixture(scope="module", params=["contained", "inline"])
def service(request: pytest.FixtureRequest) -> Iterator[ProfileService]:
    with ProfileService(mode=request.param) as service:
        yield service


@pytest.fixture(scope="module")
def contained() -> Iterator[ProfileService]:
    with ProfileService(bounds=Bounds(call_seconds=1.0, memory_bytes=400 * 1024 * 1024)) as service:
        yield service


def descriptor(schema: bytes | None, **changes: Any) -> bytes:
    """The example with an input schema and other changes to its input."""
    document = json.loads(EXAMPLE)
    document["operation"]["input"]["schema"] = None if schema is None else content_id(schema).hex()
    document["operation"]["input"].update(changes)
    return json.dumps(document).encode()


def check(service: ProfileService, schema: Any, value: Any) -> list[tuple[str, str]]:
    """The places and codes of an input's faults; a value that is not bytes is sent as JSON."""
    blob = schema if isinstance(schema, bytes) else json.dumps(schema).encode()
    data = value if isinstance(value, bytes) else json.dumps(value).encode()
    errors = service.check_input(descriptor(blob), {content_id(blob): blob}, JSON, data)
    return [(error.pointer, error.code) for error in errors]


def test_a_descriptor_is_described_with_its_links_and_limits(service: ProfileService) -> None:
    blob = json.dumps(SCHEMA).encode()
    description = service.describe(descriptor(blob))
    assert description is not None
    assert (description.profile, description.title, description.valid) == (
        "bnw.capability-profile/1",
        "Finance lookup",
        True,
    )
    assert service.links(descriptor(blob)) == (content_id(blob),)
    limits = service.limits(descriptor(blob))
    assert limits is not None
    assert limits.input.schema == content_id(blob)


def test_an_openwop_document_is_described_and_has_no_limits(service: ProfileService) -> None:
    description = service.describe(HOST)
    assert description is not None
    assert (description.profile, description.title) == ("openwop.capabilities", "sample-host 3.1.0")
    blocks = {fact.label: fact.value for fact in description.facts}["blocks"]
    assert "aiProviders" in blocks
    assert (service.links(HOST), service.limits(HOST), service.starter(HOST, {})) == ((), None, None)
    assert service.check_input(HOST, {}, "anything/at-all", b"\x00" * 1000) == ()


@pytest.mark.parametrize(
    "data", [b"", b"\x00\xff", b"{}", b'{"profile":"other/1"}', b"x" * (1024 * 1024 + 1), b"[" * 1000]
)
def test_bytes_that_nobody_claims_are_opaque(service: ProfileService, data: bytes) -> None:
    assert service.describe(data) is None
    assert (service.links(data), service.limits(data), service.starter(data, {})) == ((), None, None)
    assert service.check_input(data, {}, JSON, b"whatever") == ()
    assert service.check_output(data, {}, JSON, b"whatever") == ()


def test_an_invalid_descriptor_is_described_with_its_errors_and_refuses_all_input(service: ProfileService) -> None:
    document = EXAMPLE.replace(b"Finance lookup", b"")
    description = service.describe(document)
    assert description is not None
    assert [error.pointer for error in description.errors] == ["/name"]
    assert service.links(document) == ()
    assert [error.code for error in service.check_input(document, {}, JSON, b"{}")] == ["descriptor-invalid"]


@pytest.mark.parametrize(
    ("value", "faults"),
    [
        ({"symbol": "ABC"}, []),
        ({"symbol": "ABC", "day": "2026-02-28"}, []),
        ({}, [("/symbol", "missing-field")]),
        ({"symbol": "abc"}, [("/symbol", "schema-pattern")]),
        ({"symbol": "ABC\n"}, [("/symbol", "schema-pattern")]),
        ({"symbol": "ABC", "day": "2026-02-30"}, [("/day", "schema-format")]),
        ({"symbol": "ABC", "a/b": 1}, [("/a~1b", "unknown-field")]),
        ({"symbol": 5, "x": 1}, [("/symbol", "wrong-type"), ("/x", "unknown-field")]),
        ([], [("", "wrong-type")]),
        (b"{", [("", "json-syntax")]),
        (b'{"symbol":"A","symbol":"B"}', [("/symbol", "json-duplicate")]),
        (b"\xff", [("", "json-encoding")]),
    ],
)
def test_an_inputs_faults_are_located(service: ProfileService, value: Any, faults: list[tuple[str, str]]) -> None:
    assert sorted(check(service, SCHEMA, value)) == sorted(faults)


def test_media_type_and_size_are_checked_before_the_content(service: ProfileService) -> None:
    blob = json.dumps(SCHEMA).encode()
    document = descriptor(blob, media_types=[JSON, "text/plain", "application/x+json"], max_bytes=20)
    known = {content_id(blob): blob}
    assert [error.code for error in service.check_input(document, known, "text/html", b"")] == ["media-type-refused"]
    assert [error.code for error in service.check_input(document, known, JSON, b" " * 21)] == ["payload-too-large"]
    assert service.check_input(document, known, "text/plain", b"not JSON") == ()
    assert [error.code for error in service.check_input(document, known, "application/x+json", b"no")] == [
        "json-syntax"
    ]
    assert service.check_input(descriptor(None), {}, JSON, b"no schema, no opinion") == ()


def test_a_check_that_cannot_be_made_has_failed(service: ProfileService) -> None:
    blob = json.dumps(SCHEMA).encode()
    codes = [error.code for error in service.check_input(descriptor(blob), {}, JSON, b"{}")]
    assert codes == ["schema-missing"]
    bad = [b"<xs:schema/>", b"5", b'{"type":"strin"}', b'{"pattern":"("}', b'{"$ref":"#/x"}']
    for unusable in [*bad, b'{"$ref":"http://127.0.0.1/x"}']:
        assert check(service, unusable, {}) == [("", "schema-unusable")]


def test_an_output_is_checked_by_its_own_schema(service: ProfileService) -> None:
    blob = b'{"type":"integer"}'
    document = json.loads(EXAMPLE)
    document["operation"]["output"]["schema"] = content_id(blob).hex()
    data = json.dumps(document).encode()
    known = {content_id(blob): blob}
    assert service.check_output(data, known, JSON, b"5") == ()
    assert [error.code for error in service.check_output(data, known, JSON, b'"5"')] == ["wrong-type"]
    assert service.check_input(data, known, JSON, b'"5"') == ()


def test_a_starter_document_passes_the_input_check(service: ProfileService) -> None:
    blob = json.dumps(SCHEMA).encode()
    document = service.starter(descriptor(blob), {content_id(blob): blob})
    assert document is not None
    assert check(service, SCHEMA, document) == []
    assert service.starter(descriptor(blob), {}) is None
    assert service.starter(descriptor(blob, max_bytes=5), {content_id(blob): blob}) is None
    assert service.starter(descriptor(None), {}) is None


def test_dates_are_judged_by_the_time_that_is_handed_in() -> None:
    document = json.loads(HOST)
    document["multiAgent"]["executionModel"] |= {"tier": "experimental", "experimentalUntil": "2026-06-01"}
    data = json.dumps(document).encode()
    day = [datetime(2026, 1, 1, tzinfo=UTC)]
    with ProfileService(mode="inline", now_ms=lambda: int(day[0].timestamp() * 1000)) as service:
        now = service.describe(data)
        day[0] = datetime(2026, 6, 2, tzinfo=UTC)
        later = service.describe(data)
    assert now is not None
    assert later is not None
    assert (now.valid, [error.code for error in later.errors]) == (True, ["openwop-experimental-until"])


def hostile_openwop() -> bytes:
    """Its faults take more memory to list than there is: each names a path of 300,000 characters."""
    document = json.loads((SAMPLES / "openwop-minimal.json").read_bytes())
    document["aiProviders"] = {"authModes": {"k" * 300_000: ["x"] * 140_000}}
    return json.dumps(document).encode()


def test_a_document_that_exhausts_its_reader_is_refused_and_harms_nobody(contained: ProfileService) -> None:
    data = hostile_openwop()
    assert len(data) < 1024 * 1024
    description = contained.describe(data)
    assert description is not None
    assert description.errors[0].code in ("plugin-crashed", "plugin-hung")
    failures = len(contained.faults())
    for _ in range(3):
        contained.describe(data)
    assert len(contained.faults()) == failures + 1, "what failed twice is not tried a third time"
    fine = contained.describe(HOST)
    assert fine is not None
    assert fine.valid


def test_hostile_schemas_and_inputs_are_refused_within_the_deadline(contained: ProfileService) -> None:
    doubling = {f"d{n}": {"allOf": [{"$ref": f"#/$defs/d{n + 1}"}] * 2} for n in range(40)}
    cases: list[tuple[Any, Any]] = [
        ({"pattern": "^(?=(a+)+$)(a|aa)+$"}, "a" * 5000 + "b"),
        ({"pattern": "(" * 500 + ")" * 500}, "a"),
        ({"$defs": {**doubling, "d40": {"type": "integer"}}, "$ref": "#/$defs/d0"}, "x"),
        ({"items": {"uniqueItems": True, "items": False}}, [[[n] for n in range(500)] for _ in range(100)]),
        ({"items": False}, [0] * 200_000),
    ]
    for schema, value in cases:
        start = perf_counter()
        assert check(contained, schema, value) != []
        assert perf_counter() - start < 8
    for _ in range(MAX_FAILURES + 1):
        check(contained, cases[2][0], "x")
    assert check(contained, SCHEMA, {"symbol": "ABC"}) == [], "BNW's own plug-ins are never switched off"


def test_many_threads_may_ask_at_once(contained: ProfileService) -> None:
    wrong: list[Any] = []

    def ask(number: int) -> None:
        for _ in range(20):
            answer = check(contained, SCHEMA, {"symbol": "A" * (number % 8)})
            if (answer == []) != (1 <= number % 8 <= 5):
                wrong.append((number, answer))

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_a_warm_check_costs_about_a_millisecond_at_most(contained: ProfileService) -> None:
    blob = json.dumps(SCHEMA).encode()
    document, known = descriptor(blob), {content_id(blob): blob}
    contained.check_input(document, known, JSON, b'{"symbol":"ABC"}')
    durations = []
    for _ in range(200):
        start = perf_counter()
        contained.check_input(document, known, JSON, b'{"symbol":"ABC"}')
        durations.append(perf_counter() - start)
    assert sorted(durations)[100] < 0.003


def test_a_large_input_is_checked_and_a_larger_one_refused(contained: ProfileService) -> None:
    blob = b'{"type":"array","items":{"type":"string"}}'
    document, known = descriptor(blob, max_bytes=1 << 30), {content_id(blob): blob}
    large = b'["' + b"x" * (8 << 20) + b'"]'
    assert contained.check_input(document, known, JSON, large) == ()
    too_large = b'["' + b"x" * (16 << 20) + b'"]'
    assert [error.code for error in contained.check_input(document, known, JSON, too_large)] == ["payload-too-large"]
    assert contained.check_input(descriptor(None, max_bytes=1 << 30), {}, JSON, too_large) == ()


def test_read_as_judges_whatever_is_claimed(service: ProfileService) -> None:
    description = service.read_as(b'{"profile":"bnw.capability-profile/2"}', "bnw.capability-profile/1")
    assert description is not None
    assert "/profile" in [error.pointer for error in description.errors]
    assert service.read_as(EXAMPLE, "no such profile") is None


def test_the_same_question_gets_the_same_answer_from_memory(service: ProfileService) -> None:
    assert service.describe(EXAMPLE) is service.describe(bytes(bytearray(EXAMPLE)))
