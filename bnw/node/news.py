"""Trying again, whenever the catalog has changed, what fails only for something that may still come."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

import anyio

from bnw.wire.errors import LocalError

MAY_STILL_COME: Final = frozenset({"unknown-capability", "no-offer", "no-inbox-key"})
"""Codes of failures that more of the catalog may cure."""

T = TypeVar("T")


class News:
    def __init__(self) -> None:
        self._event = anyio.Event()

    def tell(self) -> None:
        """The catalog has changed."""
        self._event.set()
        self._event = anyio.Event()

    async def patiently(self, attempt: Callable[[], Awaitable[T]], patience: float, *, ask: Callable[[], object]) -> T:
        """What `attempt` returns, tried again for up to `patience` seconds; `ask` is called before each wait."""
        deadline = anyio.current_time() + patience
        while True:
            event = self._event
            try:
                return await attempt()
            except LocalError as error:
                if error.code not in MAY_STILL_COME or anyio.current_time() >= deadline:
                    raise
            ask()
            with anyio.move_on_at(deadline):
                await event.wait()
