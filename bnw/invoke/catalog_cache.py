"""What was last read of the catalog, until the catalog changes. A call asks for the same few things every time."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Awaitable, Callable, Hashable, Sequence
from typing import Final

from bnw.objects.rules import CATALOG, is_expired
from bnw.objects.signed import SignedObject
from bnw.store.interface import ScopeChange, Store

MAX_QUESTIONS: Final = 256
MAX_OBJECTS: Final = 256
"""Objects of one answer that are remembered; a longer one is read each time. With both, at most 65,536 objects."""


class CatalogCache:
    """Forgets everything with every change of the catalog, which the store tells of before it counts as done."""

    def __init__(self, store: Store) -> None:
        self._answers: OrderedDict[Hashable, list[SignedObject]] = OrderedDict()
        self._generation = 0
        store.watch_scope(CATALOG, self._forget)

    async def ask(
        self, question: Hashable, read: Callable[[], Awaitable[list[SignedObject]]], *, now: int
    ) -> list[SignedObject]:
        """What `read` gives, or gave before, without what has expired at `now`."""
        known = self._answers.get(question)
        if known is None:
            generation = self._generation
            known = await read()
            # What was read while the catalog changed may be from before the change.
            if generation == self._generation and len(known) <= MAX_OBJECTS:
                self._answers[question] = known
                if len(self._answers) > MAX_QUESTIONS:
                    self._answers.popitem(last=False)
        return [obj for obj in known if not is_expired(obj.body, now)]

    def _forget(self, changes: Sequence[ScopeChange]) -> None:
        self._generation += 1
        self._answers.clear()
