"""How often a delegation was used: all calls, and those of the last hour. Pure; time is handed in.

The last hour is counted in whole minutes, rounded towards strictness: two calls that lie an hour or less apart always
count together, and a call counts for at most 61 minutes. So never more than the stated number of calls fall into any
hour, a state has at most `MAX_MINUTES` entries however large that number is, and there is nothing to tune.
"""

from __future__ import annotations

from dataclasses import dataclass

from bnw.wire.limits import HOUR, MINUTE

_SPAN = HOUR // MINUTE
MAX_MINUTES = 2 * _SPAN + 1
"""An hour back, the present minute, and an hour ahead, where a clock that was set back has left its calls."""


@dataclass(frozen=True, slots=True)
class Usage:
    """`calls` of all time, and (minute since the Unix epoch, calls in it) ascending for the last hour."""

    calls: int = 0
    minutes: tuple[tuple[int, int], ...] = ()

    def calls_in_last_hour(self, now: int) -> int:
        return sum(count for _, count in self._near(now))

    def with_call(self, now: int, *, by_the_hour: bool) -> Usage:
        """After one more call at `now`; minutes are only kept if `by_the_hour`."""
        if not by_the_hour:
            return Usage(self.calls + 1)
        minutes = dict(self._near(now))
        minutes[now // MINUTE] = minutes.get(now // MINUTE, 0) + 1
        return Usage(self.calls + 1, tuple(sorted(minutes.items())))

    def next_call_at(self, now: int, limit: int) -> int:
        """When fewer than `limit` calls, at least one, lie in the last hour; `now` if that is so already."""
        left = self.calls_in_last_hour(now)
        at = now
        for minute, count in self._near(now):
            if left < limit:
                break
            left -= count
            at = (minute + _SPAN + 1) * MINUTE
        return at

    def _near(self, now: int) -> list[tuple[int, int]]:
        """The minutes that count. What a clock far ahead has left would otherwise block calls until it comes true."""
        present = now // MINUTE
        return [entry for entry in self.minutes if -_SPAN <= entry[0] - present <= _SPAN]
