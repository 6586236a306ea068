"""Kinds that grant and take back authority: delegations and revocations (design sections 6 and 11)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from bnw.identity.keys import IdentityId
from bnw.objects.body import Body
from bnw.objects.fields import CONTENT_ID, IDENTITY, TIME, array, choice, fail, integer, optional, record, spec
from bnw.wire.content_id import ContentId
from bnw.wire.limits import (
    CANCELLING_LIFETIME_MAX,
    CANCELLING_LIFETIME_MIN,
    DELEGATION_LIFETIME,
    MAX_PAYLOAD,
)

RIGHT_DELEGATE = "delegate"
RIGHT_INVOKE = "invoke"
RIGHT_PROVIDE = "provide"


@dataclass(frozen=True, slots=True)
class Caveats:
    """What narrows a delegation; null means no narrowing."""

    capability: ContentId | None = spec(optional(CONTENT_ID))
    max_calls: int | None = spec(optional(integer(1)))
    max_calls_per_hour: int | None = spec(optional(integer(1)))
    max_input_bytes: int | None = spec(optional(integer(0, MAX_PAYLOAD)))
    publisher: IdentityId | None = spec(optional(IDENTITY))


@dataclass(frozen=True, slots=True, kw_only=True)
class Delegation(Body):
    """The signer lets `audience` use `rights` from `not_before` until the delegation expires, within `caveats`."""

    KIND: ClassVar[str] = "delegation"
    MAX_LIFETIME: ClassVar[int] = DELEGATION_LIFETIME

    audience: IdentityId = spec(IDENTITY)
    caveats: Caveats = spec(record(Caveats))
    not_before: int = spec(TIME)
    parent: ContentId | None = spec(optional(CONTENT_ID))
    rights: tuple[str, ...] = spec(
        array(choice(RIGHT_DELEGATE, RIGHT_INVOKE, RIGHT_PROVIDE), 1, 3, ascending=True),
    )

    def check(self) -> None:
        Body.check(self)
        if self.not_before >= self.expires:
            raise fail(f"{self.KIND}.not_before", "the delegation ends before it begins")


@dataclass(frozen=True, slots=True, kw_only=True)
class Revocation(Body):
    """The signer's `delegation`, and all below it, no longer hold. Lives longer than any delegation can."""

    KIND: ClassVar[str] = "revocation"
    MIN_LIFETIME: ClassVar[int] = CANCELLING_LIFETIME_MIN
    MAX_LIFETIME: ClassVar[int] = CANCELLING_LIFETIME_MAX

    delegation: ContentId = spec(CONTENT_ID)
