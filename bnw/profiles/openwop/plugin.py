"""OpenWOP capabilities documents as a profile plug-in."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from itertools import islice
from typing import Final

import jsonschema_rs

from bnw.profiles.contract import MAX_ERRORS, BaseProfile, Fact, LocatedError, Parsed, Summary
from bnw.profiles.json_locate import shown
from bnw.profiles.json_reader import JsonError, JsonValue, read_json
from bnw.profiles.openwop import rules, version2
from bnw.profiles.openwop.draft import DRAFT
from bnw.profiles.pointer import pointer
from bnw.profiles.schema_check import PATTERN_OPTIONS, check
from bnw.profiles.suggest import suggest

IDENTIFIER: Final = "openwop.capabilities"

_MARKS: Final = ("protocolVersion", "supportedEnvelopes", "schemaVersions", "limits")
_MAX_SUGGESTIONS: Final = 32


@dataclass(frozen=True, slots=True)
class OpenWopCapabilities:
    """What a valid document says of its host, as far as BNW needs it. `major` is 1 or 2."""

    major: int
    version: str
    versions: tuple[str, ...]
    name: str
    vendor: str
    blocks: tuple[str, ...]


class OpenWopPlugin(BaseProfile[OpenWopCapabilities]):
    """See `bnw.profiles.contract.Profile`. One plug-in for both versions, since a host serves them at one address."""

    identifier = IDENTIFIER

    def claims(self, document: bytes) -> bool:
        """Two of the four members that version 1 requires, or the two that version 2 does."""
        try:
            root = read_json(document)
        except JsonError as error:
            root = error.salvaged
        if not isinstance(root, dict):
            return False
        marks = sum(name in root for name in _MARKS)
        return marks >= 2 or ("protocolVersions" in root and "preferredVersion" in root)

    def parse(self, document: bytes, *, now_ms: int | None = None) -> Parsed[OpenWopCapabilities]:
        errors: list[LocatedError] = []
        try:
            root = read_json(document)
        except JsonError as error:
            root = error.salvaged
            errors.extend(error.faults)
        if not isinstance(root, dict):
            errors = errors or [LocatedError("", "wrong-type", "an object is expected here")]
            return Parsed(None, tuple(errors))
        if version2.is_version_2(root):
            errors.extend(islice(version2.faults(root), MAX_ERRORS))
            return Parsed(None if errors else _value(2, root), tuple(errors), (version2.UNCHECKED,))
        errors.extend(check(_validator(), root))
        errors.extend(islice(rules.faults(root, _families(), now_ms), MAX_ERRORS))
        warnings = (*rules.warnings(root, _families()), *_unknown(root))[:MAX_ERRORS]
        if len(errors) > MAX_ERRORS:
            errors = [*errors[:MAX_ERRORS], LocatedError("", "too-many-errors", "there are more errors")]
        return Parsed(None if errors else _value(1, root), tuple(errors), warnings)

    def summary(self, value: OpenWopCapabilities) -> Summary:
        facts = [Fact("OpenWOP version", str(value.major)), Fact("protocol version", value.version)]
        if value.versions:
            facts.append(Fact("protocol versions", value.versions))
        if value.vendor:
            facts.append(Fact("vendor", value.vendor))
        facts.append(Fact("blocks", value.blocks))
        return Summary(value.name, tuple(facts))

    def draft(self) -> str:
        return DRAFT


def _value(major: int, root: Mapping[str, JsonValue]) -> OpenWopCapabilities:
    versions = root.get("protocolVersions")
    implementation = root.get("implementation")
    host: Mapping[str, JsonValue] = implementation if isinstance(implementation, dict) else {}
    name = " ".join(str(host[key]) for key in ("name", "version") if key in host)
    return OpenWopCapabilities(
        major,
        str(root["protocolVersion"] if "protocolVersion" in root else root.get("preferredVersion", "")),
        tuple(str(version) for version in versions) if isinstance(versions, list) else (),
        name or "OpenWOP host",
        str(host.get("vendor", "")),
        tuple(root),
    )


def _unknown(root: Mapping[str, JsonValue]) -> list[LocatedError]:
    """A warning for each root member that the standard does not know; the root is open, so it may be an extension."""
    found: list[LocatedError] = []
    known = _families()
    for name in root:
        if name in known or name == "capabilities":
            continue
        near = suggest(name, _sorted_families()) if len(found) < _MAX_SUGGESTIONS else None
        if near is not None:
            message = f"{shown(name)} is not a member of the standard"
            found.append(LocatedError(pointer([name]), "likely-typo", message, f'did you mean "{near}"?'))
        else:
            found.append(LocatedError(pointer([name]), "unknown-root-key", f"{shown(name)} is an extension"))
    return found


@cache
def _constraints() -> dict[str, JsonValue]:
    constraints: dict[str, JsonValue] = json.loads(files(__package__).joinpath("constraints.json").read_bytes())
    return constraints


@cache
def _validator() -> jsonschema_rs.Validator:
    return jsonschema_rs.validator_for(
        _constraints(), validate_formats=True, offline=True, pattern_options=PATTERN_OPTIONS
    )


@cache
def _families() -> frozenset[str]:
    properties = _constraints()["properties"]
    return frozenset(properties) if isinstance(properties, dict) else frozenset()


@cache
def _sorted_families() -> tuple[str, ...]:
    """In a fixed order, so that a suggestion does not depend on the hash seed."""
    return tuple(sorted(_families()))
