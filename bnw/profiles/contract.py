"""What a profile plug-in is, and the values that cross its border.

A plug-in judges bytes. It answers with plain frozen values, never with exceptions: what is wrong with a document is a
list of `LocatedError`s, so that a person can mend all of it at once. A plug-in must not read files, the clock, the
network or random numbers; the time comes as an argument. One that crashes or hangs costs its own answer and nothing
else (`bnw.profiles.service`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from bnw.wire.content_id import ContentId

ENTRY_POINT_GROUP = "bnw.profiles"

MAX_ERRORS = 1000
"""Errors and warnings reported for one document; what lies beyond is summed up in one more."""


@dataclass(frozen=True, slots=True)
class LocatedError:
    """One fault, at the place where a person would mend it.

    `pointer` is an RFC 6901 JSON pointer ("" is the whole document); a missing member is located where it should
    stand. `code` is stable, lowercase, and fit for programs. `message` says what is wrong, `hint` how to mend it.
    """

    pointer: str
    code: str
    message: str
    hint: str | None = None

    def to_json(self) -> dict[str, str | None]:
        return {"pointer": self.pointer, "code": self.code, "message": self.message, "hint": self.hint}


@dataclass(frozen=True, slots=True)
class PayloadLimits:
    """What one direction of a call may carry. `privacy` is `public`, `participant-encrypted` or `either`."""

    media_types: tuple[str, ...]
    max_bytes: int
    privacy: str
    schema: ContentId | None = None


@dataclass(frozen=True, slots=True)
class DescriptorLimits:
    """What a node must hold a call of this capability to."""

    operation: str
    input: PayloadLimits
    output: PayloadLimits


@dataclass(frozen=True, slots=True)
class Fact:
    """One line of a summary for people; `value` is one text or a list of them."""

    label: str
    value: str | tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Summary:
    """What a person wants to know of a descriptor at a glance."""

    title: str
    facts: tuple[Fact, ...] = ()


@dataclass(frozen=True, slots=True)
class Description:
    """Everything that a profile says about one descriptor that it claims.

    With `errors` the document is invalid, and `links`, `limits` and the facts are empty.
    """

    profile: str
    title: str = ""
    facts: tuple[Fact, ...] = ()
    errors: tuple[LocatedError, ...] = ()
    warnings: tuple[LocatedError, ...] = ()
    links: tuple[ContentId, ...] = ()
    limits: DescriptorLimits | None = None

    @property
    def valid(self) -> bool:
        return not self.errors


Value = TypeVar("Value")


@dataclass(frozen=True, slots=True)
class Parsed(Generic[Value]):
    """The outcome of a strict parse: a typed, immutable value, or the reasons why there is none."""

    value: Value | None
    errors: tuple[LocatedError, ...] = ()
    warnings: tuple[LocatedError, ...] = ()


class Profile(Protocol[Value]):
    """A descriptor format. The entry point names a class (or function) that makes one when called without arguments.

    `Value` is the plug-in's own type; the service only hands it back. `schemas` holds the linked blobs that the node
    has, by content id. All bytes may be hostile.
    """

    @property
    def identifier(self) -> str:
        """The profile's name with its version, as in `bnw.capability-profile/1`."""
        ...

    def claims(self, document: bytes) -> bool:
        """Whether `document` says it is of this very format and version; it may be invalid all the same."""
        ...

    def parse(self, document: bytes, *, now_ms: int | None = None) -> Parsed[Value]:
        """Read strictly. `now_ms` (milliseconds since the Unix epoch) judges dates; None leaves them unjudged."""
        ...

    def links(self, value: Value) -> tuple[ContentId, ...]:
        """Further blobs that belong to the descriptor."""
        ...

    def limits(self, value: Value) -> DescriptorLimits | None:
        """What a call may carry, or None if the format does not describe one call."""
        ...

    def summary(self, value: Value) -> Summary: ...

    def check_input(
        self, value: Value, schemas: Mapping[ContentId, bytes], media_type: str, data: bytes
    ) -> tuple[LocatedError, ...]:
        """Faults of one input; pointers are into `data`. Empty means that the provider may run it."""
        ...

    def check_output(
        self, value: Value, schemas: Mapping[ContentId, bytes], media_type: str, data: bytes
    ) -> tuple[LocatedError, ...]: ...

    def starter(self, value: Value, schemas: Mapping[ContentId, bytes]) -> bytes | None:
        """An input to start from that would pass `check_input`, or None if none can be built."""
        ...

    def draft(self) -> str | None:
        """A commented starting point for a new descriptor: JSON with `//` comment lines, or None."""
        ...


class BaseProfile(Generic[Value]):
    """Answers for everything a plug-in may leave out. With it, a plug-in is `identifier`, `claims` and `parse`."""

    def links(self, value: Value) -> tuple[ContentId, ...]:
        return ()

    def limits(self, value: Value) -> DescriptorLimits | None:
        return None

    def summary(self, value: Value) -> Summary:
        return Summary("")

    def check_input(
        self, value: Value, schemas: Mapping[ContentId, bytes], media_type: str, data: bytes
    ) -> tuple[LocatedError, ...]:
        return ()

    def check_output(
        self, value: Value, schemas: Mapping[ContentId, bytes], media_type: str, data: bytes
    ) -> tuple[LocatedError, ...]:
        return ()

    def starter(self, value: Value, schemas: Mapping[ContentId, bytes]) -> bytes | None:
        return None

    def draft(self) -> str | None:
        return None


def describe(profile: Profile[Value], document: bytes, now_ms: int | None = None) -> Description:
    """Ask `profile` everything about one document that it claims, or that a person says is of its format."""
    parsed = profile.parse(document, now_ms=now_ms)
    if parsed.value is None:
        return Description(profile.identifier, errors=parsed.errors, warnings=parsed.warnings)
    summary = profile.summary(parsed.value)
    return Description(
        profile.identifier,
        title=summary.title,
        facts=summary.facts,
        warnings=parsed.warnings,
        links=profile.links(parsed.value),
        limits=profile.limits(parsed.value),
    )
