"""Two small memories of pulls: one that forgets, and one of what is being worked on."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, Iterable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)


class BoundedMemory(Generic[K]):
    """Keys with a time until which they count: at most `size`, of which the oldest are pushed out first.

    Times are milliseconds since the Unix epoch.
    """

    def __init__(self, size: int) -> None:
        self._size = size
        self._until: OrderedDict[K, int] = OrderedDict()

    def __len__(self) -> int:
        return len(self._until)

    def add(self, key: K, until: int) -> None:
        """Remember `key` until the time `until`; it counts as the newest from now on."""
        self._until.pop(key, None)
        self._until[key] = until
        if len(self._until) > self._size:
            self._until.popitem(last=False)

    def holds(self, key: K, now: int) -> bool:
        until = self._until.get(key)
        if until is None:
            return False
        if now >= until:
            del self._until[key]
            return False
        return True


class Claims(Generic[K]):
    """Keys that one or several tasks are working on. As large as what the tasks claim, so they have to have bounds."""

    def __init__(self) -> None:
        self._counts: dict[K, int] = {}

    def __len__(self) -> int:
        return len(self._counts)

    def __contains__(self, key: K) -> bool:
        return key in self._counts

    def claim(self, keys: Iterable[K]) -> None:
        for key in keys:
            self._counts[key] = self._counts.get(key, 0) + 1

    def release(self, keys: Iterable[K]) -> None:
        """Give up claims that were made before."""
        for key in keys:
            count = self._counts.pop(key) - 1
            if count:
                self._counts[key] = count
