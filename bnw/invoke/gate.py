"""The checks that cost next to nothing, before anything of a call is kept: policy, rate, room. Pure but for its memory.

What they refuse costs a signature and a journal entry; what has no room even for that is turned away without a word.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Final

from bnw.identity.keys import IdentityId
from bnw.invoke.answer import Verdict, refused
from bnw.invoke.policy import CallPolicy
from bnw.objects.calls import Invocation
from bnw.objects.signed import SignedObject
from bnw.wire.errors import InvalidError
from bnw.wire.limits import MINUTE
from bnw.wire.rate_limit import RateLimiter

MAX_RUNNING: Final = 8
"""Calls that run at once."""
MAX_WAITING: Final = 256
"""Calls that are accepted and wait for their turn. Beyond that they are refused with `busy`."""
MAX_RATES: Final = 256
"""Different rates in policies whose use is remembered."""
BUSY_HINT: Final = 2000
"""Milliseconds after which a refused requester is told to try again."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """How much a provider takes on, over all capabilities."""

    running: int = MAX_RUNNING
    waiting: int = MAX_WAITING


@dataclass(slots=True)
class Gate:
    """Says at once what becomes of an arriving call. `live` counts the calls that are not finished, by identity."""

    bounds: Bounds
    live: Counter[IdentityId] = field(default_factory=Counter)
    _live_in_all: int = 0
    _limiters: dict[int, RateLimiter] = field(default_factory=dict)

    def enter(self, requester: IdentityId) -> None:
        self.live[requester] += 1
        self._live_in_all += 1

    def leave(self, requester: IdentityId) -> None:
        self.live[requester] -= 1
        self._live_in_all -= 1
        if not self.live[requester]:
            del self.live[requester]

    def refuse(self, invocation: SignedObject, policy: CallPolicy | None, *, now_ms: int, now: float) -> Verdict | None:
        """Why the call is refused, or None. `now` is in seconds, monotonic; `policy` None for what is not provided."""
        body = invocation.body
        assert isinstance(body, Invocation)
        requester = invocation.signer
        if policy is None:
            return refused("not-provided", "this node does not provide the capability")
        try:
            policy.check(requester, shows_delegations=bool(body.delegations))
        except InvalidError as error:
            title = "the provider's policy does not let this identity call; ask the provider to allow your identity"
            return refused(error.code, title)
        if now_ms >= body.deadline:
            return refused("deadline-passed", "the deadline of this call has passed")
        if policy.calls_per_minute is not None and not self._within_rate(policy.calls_per_minute, requester, body, now):
            wait = MINUTE // policy.calls_per_minute
            return refused("rate-limited", "this identity calls too often", retry_after=max(wait, 1))
        if self.live[requester] >= policy.at_once:
            return refused("busy", f"{policy.at_once} calls of this identity are under way", retry_after=BUSY_HINT)
        if self._live_in_all >= self.bounds.running + self.bounds.waiting:
            return refused("busy", "as many calls wait as may", retry_after=BUSY_HINT)
        return None

    def _within_rate(self, rate: int, requester: IdentityId, body: Invocation, now: float) -> bool:
        limiter = self._limiters.get(rate)
        if limiter is None:
            if len(self._limiters) >= MAX_RATES:
                self._limiters.pop(next(iter(self._limiters)))
            limiter = self._limiters[rate] = RateLimiter(rate=rate / 60, burst=max(1, rate // 4))
        return limiter.allows(requester.hex() + body.capability.hex(), now)


def shows_that_it_is_new(invocation: SignedObject, *, started: int) -> bool:
    """Whether the call cannot have run before this node started, at `started` by its own clock.

    No call runs before this node's clock has passed the time at which it says it was created (`ServedCall` waits for
    that). So whatever ran before this start had an earlier time, and what has a later one has not run. This holds
    however wrong the requester's clock is, and fails only if this node's own clock was set back over a restore.
    """
    return invocation.body.created >= started
