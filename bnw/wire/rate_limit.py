"""A token bucket per peer: how much one neighbour may make us look at. Pure; time is handed in."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass

MAX_PEERS_TRACKED = 1024


@dataclass(slots=True)
class _Bucket:
    tokens: float
    updated: float


class RateLimiter:
    """Allows each peer `rate` messages a second for long and `burst` at once.

    Keeps the buckets of the most recent peers. A forgotten peer starts with a full bucket again.
    """

    def __init__(self, *, rate: float, burst: float) -> None:
        self._rate = rate
        self._burst = burst
        self._buckets: OrderedDict[str, _Bucket] = OrderedDict()

    def allows(self, peer: str, now: float) -> bool:
        """Whether one more message from `peer` at `now` (seconds, monotonic) is within its rate; counts it if so."""
        bucket = self._buckets.pop(peer, None) or _Bucket(self._burst, now)
        self._buckets[peer] = bucket
        if len(self._buckets) > MAX_PEERS_TRACKED:
            self._buckets.popitem(last=False)
        bucket.tokens = min(self._burst, bucket.tokens + (now - bucket.updated) * self._rate)
        bucket.updated = now
        if bucket.tokens < 1:
            return False
        bucket.tokens -= 1
        return True
