"""The provider's policy as a TOML text: strict, so that a word spelt wrong opens or closes no door unnoticed. Pure.

[capability."finance/lookup"]
allow = ["listed", "delegated"]     # or "anyone"; nobody without it
listed = ["did:key:..."]
calls_per_minute = 60               # per identity, like at_once
at_once = 4
max_input_bytes = 65536
max_output_bytes = 1048576
max_run_time = "30s"
environment = { API_URL = "..." }   # for a program
directory = "/srv/lookup"

[default]                           # for every capability without a section of its own; the same settings
"""

from __future__ import annotations

import difflib
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from bnw.identity.keys import parse_did_key
from bnw.invoke.policy import DEFAULT_AT_ONCE, CallPolicy
from bnw.wire.content_id import CONTENT_ID_SIZE, ContentId
from bnw.wire.errors import ExitStatus, InvalidError, LocalError
from bnw.wire.limits import DAY, KIB, MAX_PAYLOAD
from bnw.wire.names import check_name

MAX_POLICY_FILE: Final = 1024 * KIB
MAX_CAPABILITIES: Final = 1000
MAX_LISTED: Final = 10_000
MAX_VARIABLES: Final = 256
SETTINGS: Final = (
    "allow",
    "listed",
    "calls_per_minute",
    "at_once",
    "max_input_bytes",
    "max_output_bytes",
    "max_run_time",
    "environment",
    "directory",
)
WAYS: Final = ("anyone", "listed", "delegated")
_UNITS = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_DURATION = re.compile(r"(\d{1,9})(ms|s|m|h|d)")


@dataclass(frozen=True, slots=True)
class CapabilityPolicy:
    """What the file says of one capability. `environment` and `directory` are for programs, None where not set."""

    calls: CallPolicy = CallPolicy()
    environment: Mapping[str, str] | None = None
    directory: str | None = None


@dataclass(frozen=True, slots=True)
class ProviderPolicy:
    capabilities: Mapping[str, CapabilityPolicy] = field(default_factory=dict)
    default: CapabilityPolicy = CapabilityPolicy()

    def of(self, name: str, id: ContentId) -> CapabilityPolicy:
        """The policy of a capability, by its manifest id if the file names that, else by its name."""
        return self.capabilities.get(id.hex()) or self.capabilities.get(name) or self.default


def parse_policy(data: bytes) -> ProviderPolicy:
    """Read a policy file. Raises `LocalError` (`policy`), which names the section and the setting."""
    if len(data) > MAX_POLICY_FILE:
        raise _fault("the file", f"a policy file has at most {MAX_POLICY_FILE:,} bytes")
    try:
        text = tomllib.loads(data.decode())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise _fault("the file", f"not readable as TOML: {error}") from error
    _known(text, ("capability", "default"), "the file")
    sections = text.get("capability", {})
    if not isinstance(sections, dict) or len(sections) > MAX_CAPABILITIES:
        raise _fault("[capability]", f"a table of at most {MAX_CAPABILITIES} capabilities is needed")
    capabilities = {name: _section(value, f'[capability."{name}"]') for name, value in sections.items()}
    for name in capabilities:
        if not (len(name) == 2 * CONTENT_ID_SIZE and re.fullmatch("[0-9a-f]+", name)):
            try:
                check_name(name, "capability name")
            except InvalidError as error:
                raise _fault(f'[capability."{name}"]', error.cause) from None
    return ProviderPolicy(capabilities, _section(text.get("default", {}), "[default]"))


def _section(value: object, place: str) -> CapabilityPolicy:
    if not isinstance(value, dict):
        raise _fault(place, "a table is needed")
    _known(value, SETTINGS, place)
    allow = value.get("allow", [])
    ways = [allow] if isinstance(allow, str) else allow
    if not isinstance(ways, list) or any(way not in WAYS for way in ways):
        raise _fault(f"{place} allow", f"one or several of {', '.join(WAYS)} are known")
    listed = value.get("listed", [])
    if not isinstance(listed, list) or len(listed) > MAX_LISTED or not all(isinstance(who, str) for who in listed):
        raise _fault(f"{place} listed", f"a list of at most {MAX_LISTED:,} identities is needed")
    if listed and "listed" not in ways:
        raise _fault(f"{place} listed", 'identities are listed, but allow does not say "listed"')
    try:
        identities = frozenset(parse_did_key(who) for who in listed)
    except InvalidError as error:
        raise _fault(f"{place} listed", error.cause) from None
    calls = CallPolicy(
        anyone="anyone" in ways,
        listed=identities,
        delegated="delegated" in ways,
        calls_per_minute=_number(value, "calls_per_minute", place, 1_000_000),
        at_once=_number(value, "at_once", place, 10_000) or DEFAULT_AT_ONCE,
        max_input_bytes=_number(value, "max_input_bytes", place, MAX_PAYLOAD, least=0),
        max_output_bytes=_number(value, "max_output_bytes", place, MAX_PAYLOAD, least=0),
        max_run_time=_duration(value, "max_run_time", place),
    )
    directory = value.get("directory")
    if directory is not None and not isinstance(directory, str):
        raise _fault(f"{place} directory", "a path is needed")
    return CapabilityPolicy(calls, _environment(value.get("environment"), f"{place} environment"), directory)


def _environment(value: object, place: str) -> Mapping[str, str] | None:
    if value is None:
        return None
    if (
        not isinstance(value, dict)
        or len(value) > MAX_VARIABLES
        or not all(isinstance(text, str) and "\0" not in text for text in value.values())
    ):
        raise _fault(place, f"a table of at most {MAX_VARIABLES} texts is needed")
    return value


def _number(section: Mapping[str, Any], key: str, place: str, most: int, *, least: int = 1) -> int | None:
    value = section.get(key)
    if value is not None and (type(value) is not int or not least <= value <= most):
        raise _fault(f"{place} {key}", f"a whole number from {least} to {most:,} is needed")
    return value


def _duration(section: Mapping[str, Any], key: str, place: str) -> int | None:
    value = section.get(key)
    if value is None:
        return None
    match = _DURATION.fullmatch(value) if isinstance(value, str) else None
    if match is None or not 0 < int(match[1]) * _UNITS[match[2]] <= 30 * DAY:
        raise _fault(f"{place} {key}", 'a duration such as "30s" or "5m" is needed, of at most 30 days')
    return int(match[1]) * _UNITS[match[2]]


def _known(table: Mapping[str, object], known: tuple[str, ...], place: str) -> None:
    for key in table:
        if key not in known:
            near = difflib.get_close_matches(key, known, n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"known are {', '.join(known)}"
            raise _fault(place, f"unknown setting {key!r}", hint)


def _fault(place: str, cause: str, cure: str = "mend the file; until then the last good one holds") -> LocalError:
    return LocalError("policy", cause, place=place, cure=cure, exit_status=ExitStatus.USAGE)
