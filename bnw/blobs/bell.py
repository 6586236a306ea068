"""Wakes everybody who waits for something to change."""

from __future__ import annotations

import anyio


class Bell:
    """Look at the state, then `wait`, with no `await` between the two; whoever changes the state rings."""

    def __init__(self) -> None:
        self._rung = anyio.Event()

    def ring(self) -> None:
        self._rung.set()
        self._rung = anyio.Event()

    async def wait(self) -> None:
        await self._rung.wait()
