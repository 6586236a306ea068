"""`bnw.capability-profile/1`: what a valid document says, and where each fault is found."""

from __future__ import annotations

import json

import pytest
from profile_faults import EXAMPLE, Fault, changed, faults

from bnw.profiles.capability.parse import IDENTIFIER, CapabilityProfile, Operation, Payload, Privacy, claims, parse
from bnw.profiles.capability.plugin import CapabilityProfilePlugin
from bnw.profiles.contract import DescriptorLimits, PayloadLimits
from bnw.wire.content_id import ContentId

FAULTS = faults()


def accepted(document: bytes) -> CapabilityProfile:
    parsed = parse(document)
    assert parsed.errors == ()
    assert parsed.value is not None
    return parsed.value


def test_the_seed_example_is_read_into_a_typed_immutable_value() -> None:
    payload = Payload(("application/json",), None, 1_048_576, Privacy.PARTICIPANT_ENCRYPTED)
    value = accepted(EXAMPLE)
    assert value == CapabilityProfile(
        "Finance lookup", "Looks up one public market symbol.", Operation("tools/call", payload, payload)
    )
    with pytest.raises(AttributeError):
        value.name = "other"  # type: ignore[misc]  # that it can't be assigned is the point


def test_the_table_has_at_least_150_single_faults_with_different_names() -> None:
    assert len({fault.name for fault in FAULTS}) == len(FAULTS) >= 150


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_a_single_fault_is_one_error_at_its_place(fault: Fault) -> None:
    parsed = parse(fault.document)
    assert parsed.value is None
    assert [(error.pointer, error.code) for error in parsed.errors] == [(fault.pointer, fault.code)]


def test_several_faults_are_all_reported() -> None:
    document = json.loads(EXAMPLE)
    document["name"] = ""
    document["operation"]["name"] = "UPPER"
    document["operation"]["input"]["max_bytes"] = 0
    document["operation"]["output"]["privacy"] = "secret"
    document["price"] = 5
    pointers = [error.pointer for error in parse(json.dumps(document).encode()).errors]
    assert sorted(pointers) == [
        "/name", "/operation/input/max_bytes", "/operation/name", "/operation/output/privacy", "/price",
    ]  # fmt: skip


def test_faults_of_the_json_and_of_the_profile_are_reported_together() -> None:
    document = EXAMPLE.replace(b'"profile"', b'"name": "x", "profile"').replace(b"tools/call", b"TOOLS")
    assert [(error.pointer, error.code) for error in parse(document).errors] == [
        ("/name", "json-duplicate"),
        ("/operation/name", "operation-name"),
    ]


def test_a_misspelt_member_is_suggested_and_not_reported_as_missing_too() -> None:
    parsed = parse(EXAMPLE.replace(b'"privacy"', b'"privaci"', 1))
    (error,) = parsed.errors
    assert error.hint == 'did you mean "privacy"?'


def test_a_misspelt_privacy_is_suggested() -> None:
    (error,) = parse(changed(("operation", "input", "privacy"), "participant-encryptd")).errors
    assert error.hint == 'did you mean "participant-encrypted"?'


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("name",), "a"),
        (("name",), "x" * 128),
        (("name",), "😀" * 128),
        (("name",), "שלום\u200f"),
        (("description",), ""),
        (("description",), "é" * 4096),
        (("operation", "name"), "a" * 64),
        (("operation", "name"), "0.a_b-c/d..e/-"),
        (("operation", "input", "max_bytes"), 1),
        (("operation", "input", "max_bytes"), 1_073_741_824),
        (("operation", "input", "schema"), "0123456789abcdef" * 4),
        (("operation", "input", "privacy"), "either"),
        (("operation", "output", "privacy"), "public"),
        (("operation", "input", "media_types"), [f"text/x{number}" for number in range(16)]),
        (
            ("operation", "input", "media_types"),
            ["application/vnd.a-b+json", "image/svg+xml", "x/!#$&-^_.+".replace("!", "a")],
        ),
    ],
)
def test_values_at_the_edge_are_accepted(path: tuple[str, ...], value: object) -> None:
    accepted(changed(path, value))


def test_member_order_and_space_do_not_matter() -> None:
    document = json.loads(EXAMPLE)
    reversed_ = dict(reversed(list(document.items())))
    assert accepted(json.dumps(reversed_, indent=7).encode()) == accepted(json.dumps(document).encode())


@pytest.mark.parametrize("identifier", ["bnw.capability-profile/2", "other/1", "bnw.capability-profile/1 "])
def test_another_version_or_format_is_not_claimed(identifier: str) -> None:
    assert claims(EXAMPLE)
    assert not claims(changed(("profile",), identifier))


@pytest.mark.parametrize("document", [b"", b"\xff", b"[]", b"{}", b"null", b'["profile"]'])
def test_bytes_of_no_known_kind_are_not_claimed(document: bytes) -> None:
    assert not claims(document)


def test_an_invalid_document_that_names_the_identifier_is_claimed() -> None:
    assert claims(b'{"profile": "bnw.capability-profile/1", "name": 5}')
    assert claims(b'{"profile": "bnw.capability-profile/1", "a": 1, "a": 1}')


def test_errors_are_bounded_however_many_faults_there_are() -> None:
    many = {f"k{number}": 1 for number in range(50_000)}
    parsed = parse(json.dumps(many).encode())
    assert len(parsed.errors) == 1001
    assert parsed.errors[-1].code == "too-many-errors"


def test_links_are_the_schemas_each_once() -> None:
    plugin = CapabilityProfilePlugin()
    one, two = "11" * 32, "22" * 32
    document = json.loads(EXAMPLE)
    assert plugin.links(accepted(json.dumps(document).encode())) == ()
    document["operation"]["input"]["schema"] = one
    document["operation"]["output"]["schema"] = two
    assert plugin.links(accepted(json.dumps(document).encode())) == (bytes.fromhex(one), bytes.fromhex(two))
    document["operation"]["output"]["schema"] = one
    assert plugin.links(accepted(json.dumps(document).encode())) == (bytes.fromhex(one),)


def test_limits_are_what_the_document_says() -> None:
    value = accepted(changed(("operation", "input", "schema"), "11" * 32))
    schema = ContentId(b"\x11" * 32)
    assert CapabilityProfilePlugin().limits(value) == DescriptorLimits(
        "tools/call",
        PayloadLimits(("application/json",), 1_048_576, "participant-encrypted", schema),
        PayloadLimits(("application/json",), 1_048_576, "participant-encrypted", None),
    )


def test_the_draft_is_a_valid_document_once_its_comments_are_gone() -> None:
    draft = CapabilityProfilePlugin().draft()
    assert parse(draft.encode()).value is None
    lines = [line for line in draft.splitlines() if not line.lstrip().startswith("//")]
    assert accepted("\n".join(lines).encode()).name == "My capability"
    assert IDENTIFIER in draft
