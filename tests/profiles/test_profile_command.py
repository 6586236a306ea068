"""`bnw-profile`: output, exit status and JSON of each command."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from profile_faults import EXAMPLE, SAMPLES, Fault, faults

from bnw.profiles.command import main
from bnw.wire.content_id import content_id

ROOT = Path(__file__).parents[2]
EXAMPLE_ID = content_id(EXAMPLE).hex()
SCHEMA = b'{"type":"object","required":["symbol"],"properties":{"symbol":{"type":"string","examples":["ABC"]}}}'


def run(*arguments: str | Path, data: bytes = b"") -> Result:
    return CliRunner().invoke(main, [str(argument) for argument in arguments], input=data)


def answer(*arguments: str | Path, data: bytes = b"", status: int = 0) -> Any:
    result = run(*arguments, "--json", data=data)
    assert result.exit_code == status, result.output
    return json.loads(result.stdout)


@pytest.fixture
def example(tmp_path: Path) -> Path:
    path = tmp_path / "capability.json"
    path.write_bytes(EXAMPLE)
    return path


def linked(schema: bytes) -> bytes:
    document = json.loads(EXAMPLE)
    document["operation"]["input"]["schema"] = content_id(schema).hex()
    return json.dumps(document).encode()


def test_validate_accepts_the_seed_example_and_prints_its_content_id() -> None:
    command = [sys.executable, "-c", "from bnw.profiles.command import main; main()", "validate"]
    result = subprocess.run([*command, "-"], input=EXAMPLE, capture_output=True, cwd=ROOT, check=False, timeout=60)
    assert (result.returncode, result.stderr) == (0, b"")
    assert result.stdout.decode().split() == ["valid", "bnw.capability-profile/1", EXAMPLE_ID]


@pytest.mark.parametrize("fault", faults(), ids=lambda fault: fault.name)
def test_validate_refuses_every_single_fault_and_names_its_place(fault: Fault) -> None:
    result = run("validate", data=fault.document)
    assert result.exit_code == 1
    places = [line.split(": ")[1] for line in result.stdout.splitlines() if line.startswith("error: ")]
    assert places == [fault.pointer or "(document)"]
    assert f"[{fault.code}]" in result.stdout


def test_validate_reports_as_json(example: Path) -> None:
    assert answer("validate", example) == {
        "valid": True, "id": EXAMPLE_ID, "profile": "bnw.capability-profile/1", "errors": [], "warnings": [],
    }  # fmt: skip
    refused = answer("validate", data=EXAMPLE.replace(b'"privacy"', b'"privcy"', 1), status=1)
    assert refused["valid"] is False
    assert refused["errors"] == [
        {
            "pointer": "/operation/input/privcy",
            "code": "unknown-field",
            "message": "'privcy' is not a member of this object",
            "hint": 'did you mean "privacy"?',
        }
    ]


def test_validate_knows_openwop_documents_even_when_they_are_not_claimed() -> None:
    host = (SAMPLES / "openwop-host.json").read_bytes()
    assert answer("validate", data=host)["profile"] == "openwop.capabilities"
    partial = answer("validate", data=b'{"protocolVersion":"1.0"}', status=1)
    assert partial["profile"] == "openwop.capabilities"
    assert "/limits" in [error["pointer"] for error in partial["errors"]]


def test_validate_by_a_named_profile_and_as_of_a_day() -> None:
    host = json.loads((SAMPLES / "openwop-host.json").read_bytes())
    assert answer("validate", "--profile", "openwop.capabilities", data=EXAMPLE, status=1)["valid"] is False
    host["multiAgent"]["executionModel"] |= {"tier": "experimental", "experimentalUntil": "2026-06-01"}
    data = json.dumps(host).encode()
    assert answer("validate", "--at", "2026-01-01", data=data)["valid"] is True
    assert answer("validate", "--at", "2026-07-01", data=data, status=1)["valid"] is False
    assert run("validate", "--profile", "nobody/9", data=EXAMPLE).exit_code == 2


@pytest.mark.parametrize(
    "arguments",
    [["validate", "/no/such/file"], ["inspect", "/"], ["id", "/no/such/file"], ["validate", "--no-such-option"],
     ["frob"], ["validate", "--at", "yesterday"], ["strip", "/no/such/file"], ["template", "/no/such/file"], []],
)  # fmt: skip
def test_wrong_usage_and_unreadable_input_exit_2(arguments: list[str]) -> None:
    assert run(*arguments).exit_code == 2


def test_an_unreadable_file_is_reported_as_json_too() -> None:
    error = answer("validate", "/no/such/file", status=2)["error"]
    assert (error["code"], error["place"]) == ("unreadable", "/no/such/file")


def test_inspect_shows_a_descriptor(example: Path) -> None:
    result = run("inspect", example)
    assert result.exit_code == 0
    for expected in (EXAMPLE_ID, "Finance lookup", "tools/call", "participant-encrypted", "1048576 bytes"):
        assert expected in result.stdout
    shown = answer("inspect", data=linked(SCHEMA))
    assert shown["links"] == [content_id(SCHEMA).hex()]
    assert shown["limits"]["input"]["schema"] == content_id(SCHEMA).hex()
    assert shown["limits"]["operation"] == "tools/call"


def test_inspect_shows_unknown_formats_as_opaque_bytes() -> None:
    assert answer("inspect", data=b"\x00\x01") == {"id": content_id(b"\x00\x01").hex(), "size": 2, "profile": None}
    assert "opaque" in run("inspect", data=b"\x00\x01").stdout


def test_inspect_of_an_invalid_descriptor_exits_1() -> None:
    assert answer("inspect", data=EXAMPLE.replace(b"Finance lookup", b""), status=1)["errors"][0]["pointer"] == "/name"


def test_template_is_made_from_a_descriptors_schema_or_a_schema_alone(tmp_path: Path) -> None:
    schema = tmp_path / "schema.json"
    schema.write_bytes(SCHEMA)
    assert answer("template", "--schema", schema, data=linked(SCHEMA)) == {"template": {"symbol": "ABC"}}
    assert json.loads(run("template", schema).stdout) == {"symbol": "ABC"}
    assert answer("template", data=linked(SCHEMA), status=1)["error"]["code"] == "schema-missing"
    assert answer("template", data=b'{"not":{}}', status=1)["error"]["code"] == "no-template"
    assert run("template", data=EXAMPLE.replace(b"Finance lookup", b"")).exit_code == 1


def test_new_writes_a_commented_starting_point_that_strip_makes_valid(tmp_path: Path) -> None:
    draft = tmp_path / "draft.jsonc"
    assert run("new", draft).exit_code == 0
    assert "// For people" in draft.read_text()
    refused = run("validate", draft)
    assert refused.exit_code == 1
    assert "bnw-profile strip" in refused.stdout
    stripped = run("strip", draft)
    assert run("validate", data=stripped.stdout_bytes).exit_code == 0
    assert run("new", draft).exit_code == 1, "an existing file is not overwritten"
    assert run("new", draft, "--force", "--bare").exit_code == 0
    assert run("validate", draft).exit_code == 0


@pytest.mark.parametrize("profile", ["bnw.capability-profile/1", "openwop.capabilities"])
def test_every_profiles_bare_draft_is_valid(profile: str) -> None:
    bare = run("new", "--bare", "--profile", profile)
    assert answer("validate", data=bare.stdout_bytes)["profile"] == profile
    assert answer("new", "--profile", profile)["document"] == json.loads(bare.stdout)
    assert run("new", "--profile", "nobody/9").exit_code == 1


def test_list_names_the_profiles() -> None:
    profiles = [entry["profile"] for entry in answer("list")["profiles"]]
    assert profiles[:2] == ["bnw.capability-profile/1", "openwop.capabilities"]
    assert "bnw.capability-profile/1" in run("list").stdout


def test_id_prints_the_content_id_of_anything(example: Path) -> None:
    assert run("id", example).stdout == EXAMPLE_ID + "\n"
    assert answer("id", data=b"") == {"id": content_id(b"").hex(), "size": 0}


def test_hostile_text_does_not_reach_the_terminal() -> None:
    document = json.loads(EXAMPLE)
    document["\x1b[2J\u202e"] = 1
    result = run("validate", data=json.dumps(document).encode())
    assert "\x1b" not in result.output
    assert "\u202e" not in result.output
    assert "/\\x1b[2J\\u202e" in result.output
    host = json.loads((SAMPLES / "openwop-host.json").read_bytes())
    host["implementation"]["vendor"] = "\x1b]0;owned\x07"
    assert "\x1b" not in run("inspect", data=json.dumps(host).encode()).output
