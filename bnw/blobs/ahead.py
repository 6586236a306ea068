"""Works on several items at once and gives the results in order."""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from typing import Generic, TypeVar

import anyio

from bnw.transport.tasks import background_tasks

T = TypeVar("T")
R = TypeVar("R")


@asynccontextmanager
async def results_in_order(
    items: Iterable[T] | AsyncIterable[T], work: Callable[[T], Awaitable[R]], *, ahead: int
) -> AsyncIterator[AsyncIterator[R]]:
    """Within the body, an iterator over `work(item)` for each item, in the order of `items`.

    At most `ahead` items are being worked on or wait to be taken, and no further ones are read meanwhile. What `work`
    or `items` raises is raised to the reader in its place; leaving the body cancels what is still going on.
    """
    results: _Results[R] = _Results()
    room = anyio.Semaphore(ahead)

    async def fill(place: _Place[R], item: T) -> None:
        try:
            place.value = [await work(item)]
        except Exception as error:  # noqa: BLE001 - it is raised where the result is read
            place.error = error
        place.done.set()

    async def feed() -> None:
        iterator = aiter(items) if isinstance(items, AsyncIterable) else _Steps(items)
        try:
            while True:
                await room.acquire()
                item = await anext(iterator)
                place: _Place[R] = _Place(room)
                results.append(place)
                tasks.start_soon(fill, place, item)
        except StopAsyncIteration:
            results.append(None)
        except Exception as error:  # noqa: BLE001 - likewise
            broken: _Place[R] = _Place(room)
            broken.error = error
            broken.done.set()
            results.append(broken)

    async with background_tasks() as tasks:
        tasks.start_soon(feed)
        yield results


class _Steps(Generic[T]):
    """An ordinary iterable as an asynchronous one."""

    def __init__(self, items: Iterable[T]) -> None:
        self._items = iter(items)

    def __aiter__(self) -> AsyncIterator[T]:
        return self

    async def __anext__(self) -> T:
        for item in self._items:
            return item
        raise StopAsyncIteration


class _Place(Generic[R]):
    def __init__(self, room: anyio.Semaphore) -> None:
        self.room = room
        self.done = anyio.Event()
        self.value: list[R] = []
        self.error: Exception | None = None


class _Results(Generic[R]):
    """An iterator over places as they are filled; None is the end."""

    def __init__(self) -> None:
        self._places: deque[_Place[R] | None] = deque()
        self._changed = anyio.Event()

    def append(self, place: _Place[R] | None) -> None:
        self._places.append(place)
        self._changed.set()

    def __aiter__(self) -> AsyncIterator[R]:
        return self

    async def __anext__(self) -> R:
        while not self._places:
            self._changed = anyio.Event()
            await self._changed.wait()
        place = self._places[0]
        if place is None:
            raise StopAsyncIteration
        await place.done.wait()
        if place.error is not None:
            raise place.error
        self._places.popleft()
        place.room.release()
        return place.value.pop()
