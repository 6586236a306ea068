"""A feed of events that never blocks who feeds it: a reader that falls behind loses the oldest."""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Generic, TypeVar

import anyio

T = TypeVar("T")

MAX_UNREAD_EVENTS = 1024


class EventFeed(Generic[T]):
    """Hands every event to every open reader. Readers end when the feed is closed."""

    def __init__(self) -> None:
        self._readers: list[_Reader[T]] = []
        self._closed = False

    def put(self, event: T) -> None:
        for reader in self._readers:
            reader.put(event)

    def close(self) -> None:
        self._closed = True
        for reader in self._readers:
            reader.close()

    @asynccontextmanager
    async def open(self) -> AsyncIterator[AsyncIterator[T]]:
        reader: _Reader[T] = _Reader()
        self._readers.append(reader)
        if self._closed:
            reader.close()
        try:
            yield reader
        finally:
            self._readers.remove(reader)
            reader.close()


class _Reader(Generic[T]):
    def __init__(self) -> None:
        self._unread: deque[T] = deque(maxlen=MAX_UNREAD_EVENTS)
        self._changed = anyio.Event()
        self._closed = False

    def put(self, event: T) -> None:
        self._unread.append(event)
        self._changed.set()

    def close(self) -> None:
        self._closed = True
        self._changed.set()

    def __aiter__(self) -> AsyncIterator[T]:
        return self

    async def __anext__(self) -> T:
        while not self._unread:
            if self._closed:
                raise StopAsyncIteration
            self._changed = anyio.Event()
            await self._changed.wait()
        return self._unread.popleft()
