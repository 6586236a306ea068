"""What was seen lately: a set bounded in number and in time."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable

from bnw.transport.bounds import MAX_SEEN, SEEN_SECONDS


class Seen:
    """Remembers up to `limit` keys for up to `seconds`. Forgetting early costs a second delivery, never correctness."""

    def __init__(self, *, limit: int = MAX_SEEN, seconds: float = SEEN_SECONDS) -> None:
        self._limit = limit
        self._seconds = seconds
        self._times: OrderedDict[Hashable, float] = OrderedDict()

    def knows(self, key: Hashable, now: float) -> bool:
        self._forget(now)
        return key in self._times

    def add(self, key: Hashable, now: float) -> bool:
        """Whether `key` is new at time `now`. Remembers it from now on; seeing it again does not prolong that."""
        self._forget(now)
        if key in self._times:
            return False
        self._times[key] = now
        if len(self._times) > self._limit:
            self._times.popitem(last=False)
        return True

    def _forget(self, now: float) -> None:
        oldest = now - self._seconds
        times = self._times
        while times and next(iter(times.values())) <= oldest:
            times.popitem(last=False)
