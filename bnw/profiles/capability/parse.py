"""Reading `bnw.capability-profile/1`: bytes in, a `CapabilityProfile` or every fault out.

Unknown members are faults at every level, so that a misspelt security-relevant one can't silently disappear, and all
members are required (`schema` may be null), so that a document says everything it means.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Final

from bnw.profiles.capability.text import MAX_DESCRIPTION_LENGTH, MAX_NAME_LENGTH, check_text
from bnw.profiles.contract import MAX_ERRORS, LocatedError, Parsed
from bnw.profiles.json_locate import shown
from bnw.profiles.json_reader import JsonError, JsonValue, read_json
from bnw.profiles.pointer import MAX_POINTER, token
from bnw.profiles.suggest import suggest
from bnw.wire.content_id import ContentId, parse_content_id
from bnw.wire.errors import InvalidError
from bnw.wire.limits import MAX_MEDIA_TYPES, MAX_PAYLOAD
from bnw.wire.names import is_media_type, is_name

IDENTIFIER: Final = "bnw.capability-profile/1"

ROOT_MEMBERS: Final = ("profile", "name", "description", "operation")
OPERATION_MEMBERS: Final = ("name", "input", "output")
PAYLOAD_MEMBERS: Final = ("media_types", "schema", "max_bytes", "privacy")

_MAX_SUGGESTIONS: Final = 32
"""Unknown members of one document that get a suggestion; each costs a comparison with every known name."""


class Privacy(Enum):
    """How a payload may travel."""

    PUBLIC = "public"
    PARTICIPANT_ENCRYPTED = "participant-encrypted"
    EITHER = "either"


_PRIVACIES: Final = {privacy.value: privacy for privacy in Privacy}


@dataclass(frozen=True, slots=True)
class Payload:
    """What an input or output may be. `schema` is the content id of an application schema, which binds nobody."""

    media_types: tuple[str, ...]
    schema: ContentId | None
    max_bytes: int
    privacy: Privacy


@dataclass(frozen=True, slots=True)
class Operation:
    name: str
    input: Payload
    output: Payload


@dataclass(frozen=True, slots=True)
class CapabilityProfile:
    """A valid `bnw.capability-profile/1` document. One capability is exactly one operation."""

    name: str
    description: str
    operation: Operation


def claims(document: bytes) -> bool:
    """Whether the document's `profile` member is exactly this profile's identifier.

    Documents of the same kind under another identifier, a later version included, are somebody else's.
    """
    try:
        value = read_json(document)
    except JsonError as error:
        value = error.salvaged
    return isinstance(value, dict) and value.get("profile") == IDENTIFIER


def parse(document: bytes) -> Parsed[CapabilityProfile]:
    """The profile that `document` holds, or all of its faults, those of its JSON first."""
    reader = _Reader()
    try:
        value = read_json(document)
    except JsonError as error:
        value = error.salvaged
        if value is None:
            return Parsed(None, error.faults)
        reader.faults.extend(error.faults)
    known = {fault.pointer for fault in reader.faults}
    before = len(reader.faults)
    profile = reader.profile(value)
    if profile is not None and not reader.faults:
        return Parsed(profile)
    # Where the JSON itself is at fault, what the profile makes of the same place adds nothing.
    faults = reader.faults[:before] + [fault for fault in reader.faults[before:] if fault.pointer not in known]
    if reader.untold:
        faults.append(LocatedError("", "too-many-errors", f"{reader.untold:,} more errors"))
    return Parsed(None, tuple(faults))


class _Reader:
    """Checks one document. Each method returns None, having noted why, if its part is no good."""

    def __init__(self) -> None:
        self.faults: list[LocatedError] = []
        self.suggestions = 0
        self.untold = 0

    def note(self, place: str, code: str, message: str, hint: str | None = None) -> None:
        if len(self.faults) < MAX_ERRORS:
            self.faults.append(LocatedError(place, code, message, hint))
        else:
            self.untold += 1

    def profile(self, value: JsonValue) -> CapabilityProfile | None:
        root = self.members(value, "", ROOT_MEMBERS)
        if root is None:
            return None
        if "profile" in root and root["profile"] != IDENTIFIER:
            message = f"is {_brief(root['profile'])}, not {IDENTIFIER!r}"
            hint = f'write "{IDENTIFIER}"; a document of another format or version stays opaque to this profile'
            self.note("/profile", "profile-identifier", message, hint)
        name = self.text(root, "name", least=1, most=MAX_NAME_LENGTH)
        description = self.text(root, "description", least=0, most=MAX_DESCRIPTION_LENGTH)
        operation = self.operation(root["operation"]) if "operation" in root else None
        if name is None or description is None or operation is None:
            return None
        return CapabilityProfile(name, description, operation)

    def operation(self, value: JsonValue) -> Operation | None:
        members = self.members(value, "/operation", OPERATION_MEMBERS)
        if members is None:
            return None
        name = members.get("name")
        if isinstance(name, str):
            if not is_name(name):
                hint = "1 to 64 lowercase letters, digits and . _ - /, starting with a letter or digit, no empty part"
                self.note("/operation/name", "operation-name", f"{shown(name)} is not an operation name", hint)
        elif "name" in members:
            self.wrong_type("/operation/name", "a text", name)
        input_ = self.payload(members["input"], "/operation/input") if "input" in members else None
        output = self.payload(members["output"], "/operation/output") if "output" in members else None
        if not isinstance(name, str) or input_ is None or output is None:
            return None
        return Operation(name, input_, output)

    def payload(self, value: JsonValue, at: str) -> Payload | None:
        members = self.members(value, at, PAYLOAD_MEMBERS)
        if members is None:
            return None
        media_types = self.media_types(members["media_types"], f"{at}/media_types") if "media_types" in members else ()
        schema = self.schema(members["schema"], f"{at}/schema") if "schema" in members else None
        max_bytes = members.get("max_bytes")
        if type(max_bytes) is int:
            if not 1 <= max_bytes <= MAX_PAYLOAD:
                message = f"{max_bytes:,} is outside 1 to {MAX_PAYLOAD:,}"
                self.note(f"{at}/max_bytes", "max-bytes", message, "use 1 byte to 1 GiB")
        elif "max_bytes" in members:
            hint = "write the number of bytes as a plain integer, without a point or an exponent"
            self.wrong_type(f"{at}/max_bytes", "an integer", max_bytes, hint)
        privacy = self.privacy(members["privacy"], f"{at}/privacy") if "privacy" in members else None
        if privacy is None or type(max_bytes) is not int:
            return None
        return Payload(media_types, schema, max_bytes, privacy)

    def media_types(self, value: JsonValue, at: str) -> tuple[str, ...]:
        if not isinstance(value, list):
            self.wrong_type(at, "an array", value)
            return ()
        if not 1 <= len(value) <= MAX_MEDIA_TYPES:
            self.note(at, "media-type-count", f"{len(value):,} media types, where 1 to {MAX_MEDIA_TYPES} are allowed")
        seen: list[str] = []
        for index, item in enumerate(value[: MAX_MEDIA_TYPES + 1]):
            if not isinstance(item, str):
                self.wrong_type(f"{at}/{index}", "a text", item)
            elif item in seen:
                self.note(f"{at}/{index}", "media-type-duplicate", f"{shown(item)} stands here twice", "keep one")
            elif not is_media_type(item):
                hint = "a lowercase name such as application/json, without parameters (RFC 6838)"
                self.note(f"{at}/{index}", "media-type", f"{shown(item)} is not a media type", hint)
            else:
                seen.append(item)
        return tuple(seen)

    def schema(self, value: JsonValue, at: str) -> ContentId | None:
        if value is None:
            return None
        if not isinstance(value, str):
            self.wrong_type(at, "null or a text", value)
            return None
        try:
            return parse_content_id(value)
        except InvalidError as error:
            self.note(at, "content-id", error.cause, error.cure)
            return None

    def privacy(self, value: JsonValue, at: str) -> Privacy | None:
        if not isinstance(value, str):
            self.wrong_type(at, "a text", value)
            return None
        if value not in _PRIVACIES:
            near = suggest(value, _PRIVACIES)
            hint = f'did you mean "{near}"?' if near else "use public, participant-encrypted or either"
            self.note(at, "privacy", f"{shown(value)} is not a kind of privacy", hint)
            return None
        return _PRIVACIES[value]

    def text(self, members: Mapping[str, JsonValue], name: str, *, least: int, most: int) -> str | None:
        if name not in members:
            return None
        value = members[name]
        if not isinstance(value, str):
            self.wrong_type(f"/{name}", "a text", value)
            return None
        self.faults.extend(check_text(value, f"/{name}", least=least, most=most))
        return value

    def members(self, value: JsonValue, at: str, known: tuple[str, ...]) -> Mapping[str, JsonValue] | None:
        """`value` as an object with exactly the `known` members; None only if it is not an object."""
        if not isinstance(value, dict):
            self.wrong_type(at, "an object", value)
            return None
        if len(value) == len(known) and all(name in value for name in known):
            return value
        missing = [name for name in known if name not in value]
        for name in value:
            if name not in known:
                near = self.near(name, known)
                if near in missing:
                    missing.remove(near)  # one slip is one fault
                hint = f'did you mean "{near}"?' if near else f"only {', '.join(known)} may stand here"
                place = at + token(name)
                self.note(
                    place if len(place) <= MAX_POINTER else at,
                    "unknown-field",
                    f"{shown(name)} is not a member of this object",
                    hint,
                )
        for name in missing:
            self.note(f"{at}/{name}", "missing-field", f'the member "{name}" is missing', "every member is required")
        return value

    def near(self, name: str, known: tuple[str, ...]) -> str | None:
        if self.suggestions >= _MAX_SUGGESTIONS:
            return None
        self.suggestions += 1
        return suggest(name, known)

    def wrong_type(self, at: str, wanted: str, value: JsonValue, hint: str | None = None) -> None:
        self.note(at, "wrong-type", f"{wanted} is expected here, not {_brief(value)}", hint)


def _brief(value: JsonValue) -> str:
    """A value for a message: its text if short, else its type."""
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, str):
        return f"the text {shown(value)}"
    if isinstance(value, list):
        return "an array"
    if isinstance(value, dict):
        return "an object"
    return f"the number {value!r}"
