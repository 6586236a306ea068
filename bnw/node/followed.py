"""One capability that a node follows: which version it is about, how far that is, when it is tried next.

    absent ──► coming ──► whole        absent: the catalog has no live manifest (withdrawn, expired, not heard of)
       ▲         │ ▲        │          coming: something is missing; the next attempt has its time
       │         ▼ │        │          given-up: `MAX_ATTEMPTS` failed; only a new version, a new neighbour, an offer,
       └──── given-up ◄─────┘                    a restart or the user gives it another chance

A new version starts from `coming` whatever the state was, and a withdrawal leads to `absent`. Times are seconds of
`anyio.current_time()`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Final

import anyio

from bnw.identity.keys import IdentityId
from bnw.node.follow_records import Follow, Pins, follow_key
from bnw.objects.signed import SignedObject
from bnw.wire.content_id import ContentId

MAX_ATTEMPTS: Final = 20
"""Attempts at one version before it is given up: over about two hours."""
FIRST_PAUSE: Final = 2.0
LONGEST_PAUSE: Final = 600.0
"""Between attempts: doubled each time from the first to the longest, and varied by a quarter."""
CHANCE_PAUSE: Final = 15.0
"""Between an attempt and one that a new neighbour or an offer calls for."""

ABSENT: Final = "absent"
COMING: Final = "coming"
WHOLE: Final = "whole"
GIVEN_UP: Final = "given-up"


@dataclass(frozen=True, slots=True)
class FollowedCapability:
    """How things stand. `problem` is why the content is not whole; `attempts` have failed so far."""

    publisher: IdentityId
    name: str
    state: str
    manifest: SignedObject | None
    """The current version in the catalog."""
    whole_manifest: ContentId | None
    """The version whose content is here: an older one than `manifest` as long as that is coming."""
    blobs: tuple[ContentId, ...]
    """What is pinned."""
    attempts: int
    problem: str | None


@dataclass(frozen=True, slots=True)
class FollowView:
    """One follow and what it covers. `left_out` capabilities are over a bound and not kept."""

    follow: Follow
    capabilities: tuple[FollowedCapability, ...]
    left_out: int


@dataclass(slots=True, eq=False)
class Capability:
    """See the module docstring."""

    publisher: IdentityId
    name: str
    pins: Pins
    manifest: SignedObject | None = None
    state: str = ABSENT
    attempts: int = 0
    tried_at: float = -math.inf
    due: float = math.inf
    """When to try next; infinity if there is nothing to try."""
    problem: str | None = None
    over: anyio.Event = field(default_factory=anyio.Event)
    """Set once the current version has been tried, or there is none."""

    @property
    def key(self) -> bytes:
        return follow_key(self.publisher, self.name)

    def is_about(self, manifest: SignedObject | None) -> bool:
        return (self.manifest and self.manifest.id) == (manifest and manifest.id)

    def turn_to(self, manifest: SignedObject | None, now: float) -> None:
        """Take `manifest` as the current version; None if there is none now. No attempt may be under way."""
        if self.is_about(manifest) and manifest is not None:
            return
        # Nobody needs to wait any longer for the version before.
        self.over.set()
        self.manifest, self.attempts, self.problem = manifest, 0, None
        if manifest is None:
            self.state, self.due = ABSENT, math.inf
        else:
            self.state, self.due, self.over = COMING, now, anyio.Event()

    def give_chance(self, now: float, *, pause: float = CHANCE_PAUSE) -> bool:
        """Try sooner what is not whole, `pause` after the attempt before; whether the next attempt has moved."""
        due = max(now, self.tried_at + pause)
        if self.state not in {COMING, GIVEN_UP} or due >= self.due:
            return False
        self.due = due
        return True

    def insist(self, now: float) -> None:
        """The user asks for it: try what is not whole now, as if for the first time."""
        if self.state in {COMING, GIVEN_UP}:
            self.attempts, self.due, self.over = 0, now, anyio.Event()

    def succeeded(self) -> None:
        self.state, self.attempts, self.problem, self.due = WHOLE, 0, None, math.inf
        self.over.set()

    def failed(self, problem: str, now: float, *, variation: float) -> None:
        """An attempt has failed; `variation` from 0 to 1 spreads the next one."""
        self.problem, self.due = problem, math.inf
        self.attempts = min(self.attempts + 1, MAX_ATTEMPTS)
        self.state = GIVEN_UP if self.attempts == MAX_ATTEMPTS else COMING
        if self.state == COMING:
            pause = min(FIRST_PAUSE * 2 ** (self.attempts - 1), LONGEST_PAUSE)
            self.due = now + pause * (0.75 + variation / 2)
        self.over.set()

    def wait(self, problem: str, until: float) -> None:
        """Not tried now, for a reason of this node's own."""
        self.problem, self.due = problem, until
        self.over.set()

    def view(self) -> FollowedCapability:
        pinned = tuple(dict.fromkeys((*self.pins.held, *self.pins.coming)))
        return FollowedCapability(
            self.publisher,
            self.name,
            self.state,
            self.manifest,
            self.pins.manifest,
            pinned,
            self.attempts,
            self.problem,
        )
