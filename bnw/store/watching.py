"""Who wants to know of changes in a scope, and telling them.

An index that is kept in memory beside the store (`bnw.sync.scope_index`) stays true only if it hears of every change,
whoever made it and for whatever reason: a new object, a replaced one, one that has expired and was removed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from bnw.store.interface import ScopeChange, ScopeWatcher
from bnw.store.scopes import scope_key

KeyedChange = tuple[bytes, ScopeChange]
"""A scope's key and a change in it."""


class ScopeWatchers:
    """The watchers of one store."""

    def __init__(self) -> None:
        self._watchers: dict[bytes, list[ScopeWatcher]] = {}

    def watch(self, scope: str, watcher: ScopeWatcher) -> Callable[[], None]:
        """Begin to tell `watcher`; returns the function that ends it."""
        key = scope_key(scope)
        watchers = self._watchers.setdefault(key, [])
        watchers.append(watcher)

        def stop() -> None:
            watchers.remove(watcher)
            if not watchers:
                self._watchers.pop(key, None)

        return stop

    def tell(self, changes: Sequence[KeyedChange]) -> None:
        """Tell of changes that are durable, in the order in which they were made."""
        for key, watchers in list(self._watchers.items()):
            concerned = [change for scope, change in changes if scope == key]
            if concerned:
                for watcher in list(watchers):
                    watcher(concerned)
