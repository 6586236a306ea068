"""The event queue: calls that fall due at a time, made by one task in the order of (time, sequence number).

One queue and one task instead of a task for each message: about three times as many deliveries a second, and an order
that does not depend on a scheduler. Waking the task costs more than most calls do, so with a `tick` all calls of one
tick are made together.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable
from typing import NoReturn

import anyio
import trio

Call = Callable[[], None]


class EventQueue:
    """Plain calls at points in time (seconds of `anyio.current_time()`). Calls must not block and must not raise.

    With a `tick` above 0, calls fall due at its multiples: up to a tick later than asked for, in unchanged order.
    """

    def __init__(self, tick: float = 0.0) -> None:
        self._tick = tick
        self._heap: list[float] = []
        self._calls: dict[float, list[Call]] = {}
        """By the time at which they fall due, those of one time in the order in which they were added."""
        self._earlier = anyio.Event()

    def __len__(self) -> int:
        return sum(map(len, self._calls.values()))

    def call_at(self, due: float, call: Call) -> None:
        if self._tick:
            due = math.ceil(due / self._tick) * self._tick
        calls = self._calls.get(due)
        if calls is not None:
            calls.append(call)
            return
        if not self._heap or due < self._heap[0]:
            self._earlier.set()
        self._calls[due] = [call]
        heapq.heappush(self._heap, due)

    async def run(self) -> NoReturn:
        """Make the calls as they fall due, for ever."""
        heap = self._heap
        while True:
            now = trio.current_time()
            while heap and heap[0] <= now:
                # What these calls add for the same time comes after them, as a later entry of that time.
                for call in self._calls.pop(heapq.heappop(heap)):
                    call()
            # Waiting lets the tasks run that the calls woke. What they add may be due before what is here already.
            if self._earlier.is_set():
                self._earlier = anyio.Event()
            with anyio.CancelScope(deadline=heap[0] if heap else math.inf):
                await self._earlier.wait()
