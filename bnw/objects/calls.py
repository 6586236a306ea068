"""Kinds of one call: invocation, update, cancellation and receipt (design section 11)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from bnw.identity.keys import IdentityId
from bnw.objects.body import Body
from bnw.objects.fields import (
    CONTENT_ID,
    IDENTITY,
    NAME,
    STAGE,
    TIME,
    array,
    choice,
    fail,
    integer,
    optional,
    record,
    spec,
    text,
)
from bnw.wire.content_id import ContentId
from bnw.wire.limits import INBOX_OBJECT_LIFETIME, MAX_DELEGATION_CHAIN, MAX_NOTE_LENGTH

STATUS_COMPLETED = "completed"
STATUS_FAILED = "failed"
STATUS_REJECTED = "rejected"
STATUS_CANCELLED = "cancelled"
STATUS_EXPIRED = "expired"
STATUS_INTERRUPTED = "interrupted"
STATUSES = (
    STATUS_COMPLETED,
    STATUS_FAILED,
    STATUS_REJECTED,
    STATUS_CANCELLED,
    STATUS_EXPIRED,
    STATUS_INTERRUPTED,
)
FRACTION_WHOLE = 1000
"""Progress is counted in thousandths, because floats are not allowed in signed bytes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Invocation(Body):
    """The signer asks `provider` to run `capability` on `input`. The id of this object is the invocation id.

    `deadline` is when the answer is no longer wanted; `inactivity`, in milliseconds, how long without an update.
    `delegations` is the chain from the root to the signer.
    """

    KIND: ClassVar[str] = "invocation"
    MAX_LIFETIME: ClassVar[int] = INBOX_OBJECT_LIFETIME

    capability: ContentId = spec(CONTENT_ID)
    deadline: int = spec(TIME)
    delegations: tuple[ContentId, ...] = spec(array(CONTENT_ID, 0, MAX_DELEGATION_CHAIN))
    inactivity: int | None = spec(optional(integer(1)))
    input: ContentId = spec(CONTENT_ID)
    provider: IdentityId = spec(IDENTITY)

    def check(self) -> None:
        Body.check(self)
        if not self.created < self.deadline <= self.expires:
            raise fail(f"{self.KIND}.deadline", "the deadline is not between creation and expiry")
        if len(set(self.delegations)) != len(self.delegations):
            raise fail(f"{self.KIND}.delegations", "a delegation is there twice")


@dataclass(frozen=True, slots=True, kw_only=True)
class InvocationUpdate(Body):
    """How far the provider has come. The update with the highest sequence counts."""

    KIND: ClassVar[str] = "invocation-update"
    MAX_LIFETIME: ClassVar[int] = INBOX_OBJECT_LIFETIME

    fraction: int | None = spec(optional(integer(0, FRACTION_WHOLE)))
    invocation: ContentId = spec(CONTENT_ID)
    note: str | None = spec(optional(text(1, MAX_NOTE_LENGTH)))
    recipient: IdentityId = spec(IDENTITY)
    sequence: int = spec(integer(1))
    stage: str = spec(STAGE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Cancellation(Body):
    """The requester no longer wants the answer. A request; the receipt is the truth."""

    KIND: ClassVar[str] = "cancellation"
    MAX_LIFETIME: ClassVar[int] = INBOX_OBJECT_LIFETIME

    invocation: ContentId = spec(CONTENT_ID)
    reason: str | None = spec(optional(text(1, MAX_NOTE_LENGTH)))
    recipient: IdentityId = spec(IDENTITY)


@dataclass(frozen=True, slots=True)
class Fault:
    """Why a call did not complete. Anyone who carries the receipt can read it, so it never quotes input or output."""

    code: str = spec(NAME)
    message: str = spec(text(1, MAX_NOTE_LENGTH))


@dataclass(frozen=True, slots=True, kw_only=True)
class Receipt(Body):
    """The provider's final word on an invocation.

    `output` of a completed call is the answer; of any other, a sealed problem document (RFC 9457) with details that
    are only for the requester.
    """

    KIND: ClassVar[str] = "receipt"
    MAX_LIFETIME: ClassVar[int] = INBOX_OBJECT_LIFETIME

    fault: Fault | None = spec(optional(record(Fault)))
    finished: int = spec(TIME)
    invocation: ContentId = spec(CONTENT_ID)
    output: ContentId | None = spec(optional(CONTENT_ID))
    received: int = spec(TIME)
    recipient: IdentityId = spec(IDENTITY)
    started: int | None = spec(optional(TIME))
    status: str = spec(choice(*STATUSES))

    def check(self) -> None:
        Body.check(self)
        completed = self.status == STATUS_COMPLETED
        if completed != (self.fault is None):
            raise fail(f"{self.KIND}.fault", "a fault is stated exactly when the call did not complete")
        if completed and (self.output is None or self.started is None):
            raise fail(f"{self.KIND}.output", "a completed call has an output and a time at which it started")
        if self.finished < (self.started or self.received) or (self.started or self.received) < self.received:
            raise fail(f"{self.KIND}.finished", "received, started and finished are not in this order")
