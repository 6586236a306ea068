"""docs/profiles.md is true: its plug-in works, its example is valid, and its table has every code."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from profile_faults import faults

from bnw.node import descriptors, follow_records, followed, following
from bnw.profiles.capability.parse import parse
from bnw.profiles.contract import ENTRY_POINT_GROUP, describe

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/profiles.md").read_text()


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)


def test_the_example_plugin_works(monkeypatch: pytest.MonkeyPatch) -> None:
    (source,) = blocks("python")
    assert len(source.splitlines()) <= 32
    module = ModuleType("greeter")
    monkeypatch.setitem(sys.modules, "greeter", module)
    exec(source, vars(module))
    profile: Any = module.GreeterProfile()
    document = b"greeter 1\nAda"
    assert profile.claims(document)
    description = describe(profile, document)
    assert (description.profile, description.title, description.valid) == ("example.greeter/1", "Greets as Ada", True)
    assert description.limits is not None
    assert [error.code for error in describe(profile, b"greeter 1\n").errors] == ["greeter-name"]
    value = profile.parse(document).value
    assert profile.check_input(value, {}, "text/plain", b"hello") == ()
    assert [error.code for error in profile.check_input(value, {}, "text/plain", b"\xff")] == ["greeter-text"]
    assert f'[project.entry-points."{ENTRY_POINT_GROUP}"]' in PAGE


def test_the_example_descriptor_is_valid() -> None:
    (example,) = blocks("json")
    assert parse(example.encode()).errors == ()


def test_every_code_is_in_the_table() -> None:
    source = "".join(path.read_text() for path in sorted((ROOT / "bnw/profiles").rglob("*.py")))
    named = {fault.code for fault in faults()}
    named |= set(re.findall(r'"(openwop-[a-z0-9-]+|plugin-[a-z]+|json-[a-z]+|text-[a-z-]+|media-type[a-z-]*)"', source))
    named -= {"openwop-capabilities", "plugin-answer", "json-pointer"}
    named -= {code for code in named if code.startswith("openwop-auth-s")}  # names of the standard's own
    assert len(named) > 45
    assert sorted(code for code in named if f"`{code}`" not in PAGE) == []


def test_the_bounds_of_following_are_in_their_table() -> None:
    def row(name: str) -> str:
        (line,) = [line for line in PAGE.splitlines() if line.startswith("|") and f"`{name}`" in line]
        return line

    assert f"{follow_records.MAX_FOLLOWS}" in row("MAX_FOLLOWS")
    assert f"{follow_records.MAX_CAPABILITIES:,}; {following.MAX_OF_IDENTITY}" in row("MAX_CAPABILITIES")
    assert f"{descriptors.MAX_LINKS}; 1 MiB" in row("MAX_LINKS")
    assert f"{followed.MAX_ATTEMPTS}; {followed.FIRST_PAUSE:.0f} seconds doubling to" in row("MAX_ATTEMPTS")
    assert f"to {followed.LONGEST_PAUSE / 60:.0f} minutes" in row("LONGEST_PAUSE")
    assert f"{followed.CHANCE_PAUSE:.0f} seconds" in row("CHANCE_PAUSE")
    assert f"{following.MAX_AT_ONCE} capabilities" in row("MAX_AT_ONCE")
    assert f"{following.NEW_CONTENT_AT_ONCE:.0f}, then one a minute" in row("NEW_CONTENT_AT_ONCE")
    assert following.NEW_CONTENT_PER_SECOND == 1 / 60
    for state in (followed.WHOLE, followed.COMING, followed.GIVEN_UP, followed.ABSENT):
        assert f"| `{state}` |" in PAGE
