"""What can be asked of a plug-in, in one place for both ways of asking: in this process, and in a worker.

A plug-in's typed value never leaves the process that made it, so each question carries the document and parses it
again; that costs microseconds and leaves no state to keep in step.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bnw.profiles.contract import Description, LocatedError, Profile, describe
from bnw.wire.content_id import ContentId


def describe_document(
    profile: Profile[Any], document: bytes, now_ms: int | None, *, whoever: bool = False
) -> Description | None:
    """The description of a document that `profile` claims, or None. `whoever` reads it even if it is not claimed."""
    if not whoever and not profile.claims(document):
        return None
    return describe(profile, document, now_ms)


def check_payload(
    profile: Profile[Any],
    document: bytes,
    schemas: Mapping[ContentId, bytes],
    media_type: str,
    data: bytes,
    *,
    output: bool,
) -> tuple[LocatedError, ...]:
    """The faults of an input or output of the capability that `document` describes."""
    value = profile.parse(document).value
    if value is None:
        return (DESCRIPTOR_INVALID,)
    check = profile.check_output if output else profile.check_input
    return check(value, schemas, media_type, data)


def starter_document(profile: Profile[Any], document: bytes, schemas: Mapping[ContentId, bytes]) -> bytes | None:
    """An input to start from, or None."""
    value = profile.parse(document).value
    return None if value is None else profile.starter(value, schemas)


DESCRIPTOR_INVALID = LocatedError(
    "",
    "descriptor-invalid",
    "the descriptor itself is invalid, so nothing can be checked against it",
    "ask the publisher to mend it",
)
