"""What a delegation grants, and what is left of that below other delegations. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TypeVar

from bnw.identity.keys import IdentityId, did_key
from bnw.objects.authority import Delegation
from bnw.wire.content_id import ContentId

_LAST_SHOWN = 253_402_300_799_000
"""The end of the year 9999; signed times may lie beyond it."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Problem:
    """Why a link does not carry a call. `code` is stable and in the alphabet of names; the rest is for people."""

    code: str
    cause: str
    cure: str


@dataclass(frozen=True, slots=True)
class Bounds:
    """Rights, the time in which they hold (from `not_before` up to, not including, `expires`), and limits.

    Of one delegation, or of a chain: then the tightest of each in all its links. Null means no limit.
    """

    rights: frozenset[str]
    not_before: int
    expires: int
    capability: ContentId | None
    publisher: IdentityId | None
    max_calls: int | None
    max_calls_per_hour: int | None
    max_input_bytes: int | None

    @classmethod
    def of(cls, delegation: Delegation) -> Bounds:
        caveats = delegation.caveats
        return cls(
            rights=frozenset(delegation.rights),
            not_before=delegation.not_before,
            expires=delegation.expires,
            capability=caveats.capability,
            publisher=caveats.publisher,
            max_calls=caveats.max_calls,
            max_calls_per_hour=caveats.max_calls_per_hour,
            max_input_bytes=caveats.max_input_bytes,
        )

    def narrowed_by(self, child: Bounds) -> Bounds:
        """What both grant. Where two exact names differ, the upper one stays: then `excess_of` has found the fault."""
        return Bounds(
            rights=self.rights & child.rights,
            not_before=max(self.not_before, child.not_before),
            expires=min(self.expires, child.expires),
            capability=child.capability if self.capability is None else self.capability,
            publisher=child.publisher if self.publisher is None else self.publisher,
            max_calls=_tighter(self.max_calls, child.max_calls),
            max_calls_per_hour=_tighter(self.max_calls_per_hour, child.max_calls_per_hour),
            max_input_bytes=_tighter(self.max_input_bytes, child.max_input_bytes),
        )

    def excess_of(self, child: Bounds) -> list[Problem]:
        """How `child` goes beyond these bounds: `exceeds-parent` and `outlives-parent`. Empty if it only narrows."""
        wider = [f"the right to {right}" for right in sorted(child.rights - self.rights)]
        if _differs(self.capability, child.capability):
            wider.append("another capability")
        if _differs(self.publisher, child.publisher):
            wider.append("another publisher")
        for above, below, unit in (
            (self.max_calls, child.max_calls, "calls"),
            (self.max_calls_per_hour, child.max_calls_per_hour, "calls an hour"),
            (self.max_input_bytes, child.max_input_bytes, "bytes of input"),
        ):
            if above is not None and below is not None and below > above:
                wider.append(f"{below:,} {unit}, where {above:,} are left")
        problems = []
        if wider:
            problems.append(
                Problem(
                    "exceeds-parent",
                    f"grants more than stands above it: {'; '.join(wider)}",
                    "ask its issuer for one that stays within what the issuer was granted",
                )
            )
        if child.expires > self.expires or child.not_before < self.not_before:
            problems.append(
                Problem(
                    "outlives-parent",
                    f"holds {_span_text(child)}, but what stands above it only {_span_text(self)}",
                    "ask its issuer for one that begins no earlier and ends no later than the issuer's own",
                )
            )
        return problems

    def __str__(self) -> str:
        parts = [", ".join(sorted(self.rights))]
        if self.capability is not None:
            parts.append(f"only capability {self.capability.hex()}")
        if self.publisher is not None:
            parts.append(f"only what {did_key(self.publisher)} publishes")
        if self.max_calls is not None:
            parts.append(f"at most {self.max_calls:,} calls")
        if self.max_calls_per_hour is not None:
            parts.append(f"at most {self.max_calls_per_hour:,} calls an hour")
        if self.max_input_bytes is not None:
            parts.append(f"inputs of at most {self.max_input_bytes:,} bytes")
        return "; ".join([*parts, _span_text(self)])


def moment_text(time: int) -> str:
    """Milliseconds since the Unix epoch as a date and time in UTC, or as they are if no calendar goes that far."""
    if time > _LAST_SHOWN:
        return f"{time} ms"
    return f"{datetime.fromtimestamp(time / 1000, UTC):%Y-%m-%d %H:%M:%S} UTC"


def _span_text(bounds: Bounds) -> str:
    return f"from {moment_text(bounds.not_before)} until {moment_text(bounds.expires)}"


def _tighter(above: int | None, below: int | None) -> int | None:
    if above is None or below is None:
        return below if above is None else above
    return min(above, below)


def _differs(above: T | None, below: T | None) -> bool:
    return above is not None and below is not None and above != below
