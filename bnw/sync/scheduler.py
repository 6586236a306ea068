"""When to pull: as a peer connects, when it hints at news, and now and then in case a hint was lost (design section 9).

Each peer has at most one pull under way and one due after it, however many hints arrive, and at least
`MIN_PULL_INTERVAL` lies between two pulls; a little more after hints that led to nothing. A peer that refuses or fails
is left alone for longer each time, also when it connects anew or hints (`bnw.sync.backoff`): neither can it flood us
with work, nor do refusals start a storm.
"""

from __future__ import annotations

import logging
from typing import Final

import anyio
from anyio.abc import TaskGroup

from bnw.objects.rules import CATALOG
from bnw.objects.signed import SignedObject
from bnw.store.interface import ScopeSummary, Store
from bnw.sync.backoff import FAULT_DELAY, MIN_DELAY, Backoff
from bnw.sync.checking import Verify, verify_here
from bnw.sync.fetch import OnNews
from bnw.sync.puller import Puller
from bnw.sync.scope_index import ScopeIndex
from bnw.sync.server import SyncServer
from bnw.transport.interface import PeerConnected, PeerDisconnected, PeerId, Transport
from bnw.wire.environment import Environment, random_below
from bnw.wire.errors import BnwError, LocalError, RemoteError

logger = logging.getLogger(__name__)

MIN_PULL_INTERVAL: Final = 1.0
MAX_IDLE_INTERVAL: Final = 4.0
"""Seconds to which the interval grows, doubling, while hints lead to pulls that find nothing."""
PULL_PERIOD: Final = 30.0
"""Seconds between pulls when nothing calls for one; each wait is between half and one and a half of it."""
HINT_DELAY: Final = 0.5
"""Seconds in which several changes are gathered into one hint."""
MAX_PULLS_AT_ONCE: Final = 32
"""Others wait for their turn; so many that some stalling peers do not hold up the rest."""

_CONNECTION_FAULTS = frozenset({"stream-closed", "stream-stalled", "not-connected", "busy"})
"""Faults that say more about the connection than about the peer."""


class _Peer:
    def __init__(self) -> None:
        self.due = anyio.Event()
        self.due.set()
        self.cancel = anyio.CancelScope()
        self.is_first_pull_over = anyio.Event()
        self.was_hinted = False
        """Whether a hint has made a pull due."""
        self.idle_interval = MIN_PULL_INTERVAL


class SyncScheduler:
    """Keeps the catalog the same as that of all connected peers; `run` ends only when cancelled.

    `verify` says where signatures are checked; on a node with threads, `verify_in_threads()`.
    """

    def __init__(
        self,
        transport: Transport,
        store: Store,
        environment: Environment,
        *,
        on_news: OnNews,
        verify: Verify = verify_here,
    ) -> None:
        self._transport = transport
        self._environment = environment
        self._on_news = on_news
        self._index = ScopeIndex(store, CATALOG)
        self._puller = Puller(transport, store, environment, self._index, verify=verify, on_news=self._take_news)
        self._pulls = anyio.Semaphore(MAX_PULLS_AT_ONCE)
        self._backoff = Backoff()
        self._peers: dict[PeerId, _Peer] = {}
        self._changed = anyio.Event()
        self._hints: dict[PeerId, ScopeSummary] = {}
        self._hinted = anyio.Event()
        SyncServer(transport, store, environment, {CATALOG: self._index}, on_hint=self._take_hint)

    async def run(self) -> None:
        async with anyio.create_task_group() as group, self._transport.events() as events:
            group.start_soon(self._prepare)
            group.start_soon(self._send_hints)
            group.start_soon(self._weigh_hints)
            for info in self._transport.peers():
                self._start_peer(group, info.peer)
            async for event in events:
                match event:
                    case PeerConnected(peer):
                        self._start_peer(group, peer)
                    case PeerDisconnected(peer):
                        if (state := self._peers.pop(peer, None)) is not None:
                            state.cancel.cancel()

    def catalog_changed(self) -> None:
        """The catalog has something that peers may lack; they get a hint soon."""
        self._changed.set()

    def pull_soon(self) -> None:
        """Pull from every peer, because something that should be here is not."""
        for state in self._peers.values():
            state.due.set()

    async def wait_for_first_pulls(self) -> None:
        """Return once every peer that is connected now has been pulled from, or has failed to answer."""
        for state in list(self._peers.values()):
            await state.is_first_pull_over.wait()

    async def _prepare(self) -> None:
        """Fill the index now, so that the first peer need not wait for it."""
        try:
            await self._index.at(self._environment.now_ms())
        except LocalError as error:
            logger.error("the catalog cannot be read yet: %s", error)

    def _start_peer(self, group: TaskGroup, peer: PeerId) -> None:
        if peer not in self._peers:
            self._peers[peer] = state = _Peer()
            group.start_soon(self._pull_from, peer, state)

    async def _pull_from(self, peer: PeerId, state: _Peer) -> None:
        with state.cancel:
            try:
                remaining = self._backoff.remaining(peer, anyio.current_time())
                if remaining:
                    state.is_first_pull_over.set()
                    await anyio.sleep(remaining)
                while True:
                    with anyio.move_on_after(PULL_PERIOD * (0.5 + self._jitter())):
                        await state.due.wait()
                    state.due = anyio.Event()
                    async with self._pulls:
                        pause = await self._pull_once(peer, state)
                    state.is_first_pull_over.set()
                    await anyio.sleep(pause)
            finally:
                state.is_first_pull_over.set()

    async def _pull_once(self, peer: PeerId, state: _Peer) -> float:
        """Pull; returns how many seconds to leave the peer alone."""
        now = anyio.current_time
        was_hinted, state.was_hinted = state.was_hinted, False
        try:
            report = await self._puller.pull(peer)
        except RemoteError as error:
            logger.info("sync with %s: %s", peer, error)
            first = MIN_DELAY if error.code in _CONNECTION_FAULTS else FAULT_DELAY
            return self._backoff.failed(peer, now(), self._jitter(), first=first)
        except LocalError as error:
            logger.error("sync with %s: %s", peer, error)
            return self._backoff.failed(peer, now(), self._jitter())
        if report.refused is not None:
            logger.info("sync with %s: refused as %s", peer, report.refused.code)
            return self._backoff.failed(peer, now(), self._jitter(), first=float(report.refused.retry_after))
        self._backoff.succeeded(peer)
        if not report.is_complete:
            state.due.set()
        if was_hinted:
            doubled = min(2 * state.idle_interval, MAX_IDLE_INTERVAL)
            state.idle_interval = MIN_PULL_INTERVAL if report.asked else doubled
            return state.idle_interval
        return MIN_PULL_INTERVAL

    def _take_news(self, obj: SignedObject) -> None:
        self._on_news(obj)
        self.catalog_changed()

    async def _send_hints(self) -> None:
        while True:
            await self._changed.wait()
            await anyio.sleep(HINT_DELAY)
            self._changed = anyio.Event()
            async with anyio.create_task_group() as group:
                for peer in list(self._peers):
                    group.start_soon(self._send_hint, peer)

    async def _send_hint(self, peer: PeerId) -> None:
        try:
            await self._puller.hint(peer)
        except BnwError as error:
            logger.info("hint to %s: %s", peer, error)

    def _take_hint(self, peer: PeerId, scope: str, summary: ScopeSummary) -> None:
        # Only peers that are connected have an entry, and each has one, so this table cannot grow.
        if peer in self._peers:
            self._hints[peer] = summary
            self._hinted.set()

    async def _weigh_hints(self) -> None:
        while True:
            await self._hinted.wait()
            self._hinted = anyio.Event()
            hints, self._hints = self._hints, {}
            try:
                ours = await self._index.summary(self._environment.now_ms())
            except LocalError as error:
                logger.error("hints cannot be weighed: %s", error)
                continue
            for peer, theirs in hints.items():
                if theirs != ours and (state := self._peers.get(peer)) is not None:
                    state.was_hinted = True
                    state.due.set()

    def _jitter(self) -> float:
        return random_below(self._environment, 1000) / 1000
