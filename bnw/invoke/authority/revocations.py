"""Which delegations are revoked, by id, so that a check costs as much as its chain is long.

An issuer may have revoked as much as its quota holds. Its revocations are read once, when the first chain with it is
judged; from then on the store tells of every change in the catalog, and only what is new is looked at.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Final

import anyio

from bnw.identity.keys import IdentityId
from bnw.objects.authority import Revocation
from bnw.objects.rules import CATALOG, is_expired
from bnw.objects.signed import SignedObject, trusted_object
from bnw.store.interface import ScopeChange, Store
from bnw.wire.content_id import ContentId
from bnw.wire.environment import Environment

MAX_KNOWN: Final = 65_536
"""Revocations that are remembered of all issuers; those of the issuers not asked for longest are forgotten first."""
MAX_NEWS: Final = 1024
"""Objects new in the catalog that wait to be looked at. Beyond that everything is forgotten and read again."""

ReadAll = Callable[[IdentityId], Awaitable[Iterable[SignedObject]]]
"""Reads the live revocations by one issuer."""

_Known = dict[ContentId, tuple[int, ContentId]]
"""By delegation: when the revocation that lasts longest expires, and its id."""


class RevocationIndex:
    """Of one store. What has become durable before `of` is called counts."""

    def __init__(self, store: Store, environment: Environment, read_all: ReadAll) -> None:
        self._store = store
        self._environment = environment
        self._read_all = read_all
        self._issuers: OrderedDict[IdentityId, _Known] = OrderedDict()
        self._news: list[ContentId] = []
        self._generation = 0
        self._lock = anyio.Lock()
        store.watch_scope(CATALOG, self._note)

    async def of(self, links: Sequence[SignedObject]) -> list[SignedObject]:
        """The revocations of these delegations by their own issuers. Raises `LocalError` as the store does."""
        now = self._environment.now_ms()
        async with self._lock:
            await self._look_at_news(now)
            found = []
            for link in links:
                known = await self._known_of(link.signer)
                if link.id in known:
                    found.append(known[link.id][1])
        objects = [await self._store.get_object(id) for id in found]
        return [obj for obj in objects if obj is not None and not is_expired(obj.body, now)]

    def _note(self, changes: Sequence[ScopeChange]) -> None:
        if not self._issuers:
            return  # whoever is asked for next is read from the store, which has it
        self._news += [change.item.id for change in changes if change.added]
        if len(self._news) > MAX_NEWS:
            self._forget()

    def _forget(self) -> None:
        self._generation += 1
        self._issuers.clear()
        self._news.clear()

    async def _look_at_news(self, now: int) -> None:
        """Take them off the list only when they have been read, or a failure would let one slip by."""
        while self._news:
            news, generation = tuple(self._news), self._generation
            for data in await self._store.scope_objects(CATALOG, news, now=now):
                self._learn(trusted_object(data))
            if generation == self._generation:
                del self._news[: len(news)]

    def _learn(self, obj: SignedObject) -> None:
        known = self._issuers.get(obj.signer)
        if known is not None and isinstance(obj.body, Revocation):
            _remember(known, obj)

    async def _known_of(self, issuer: IdentityId) -> _Known:
        known = self._issuers.get(issuer)
        if known is not None:
            self._issuers.move_to_end(issuer)
            return known
        # Entered first: what comes while it is read is noted for the next time.
        known, generation = self._issuers.setdefault(issuer, {}), self._generation
        try:
            for obj in await self._read_all(issuer):
                _remember(known, obj)
        except BaseException:
            self._issuers.pop(issuer, None)
            raise
        if generation == self._generation:
            self._make_room(issuer)
        return known

    def _make_room(self, issuer: IdentityId) -> None:
        while sum(map(len, self._issuers.values())) > MAX_KNOWN:
            oldest = next(iter(self._issuers))
            if oldest == issuer:
                break
            del self._issuers[oldest]


def _remember(known: _Known, obj: SignedObject) -> None:
    assert isinstance(obj.body, Revocation)
    entry = obj.body.expires, obj.id
    known[obj.body.delegation] = max(entry, known.get(obj.body.delegation, entry))
