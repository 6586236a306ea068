"""When to pull: as a peer connects, when it hints at news, and now and then in case a hint was lost (design section 9).

Each peer has at most one pull under way and one due after it, however many hints arrive, and at least
`MIN_PULL_INTERVAL` lies between two pulls, so that a peer can neither flood us with work nor start a storm by refusing.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

import anyio
from anyio.abc import TaskGroup

from bnw.objects.rules import CATALOG
from bnw.objects.signed import SignedObject
from bnw.store.interface import ScopeSummary, Store
from bnw.sync.puller import Puller
from bnw.sync.server import SyncServer
from bnw.transport.interface import PeerConnected, PeerDisconnected, PeerId, Transport
from bnw.wire.environment import Environment, random_below
from bnw.wire.errors import BnwError, LocalError, RemoteError

logger = logging.getLogger(__name__)

MIN_PULL_INTERVAL = 1.0
PULL_PERIOD = 30.0
"""Seconds between pulls when nothing calls for one; each wait is between half and one and a half of it."""
REFUSED_DELAY = 30.0
HINT_DELAY = 0.5
"""Seconds in which several changes are gathered into one hint."""

OnNews = Callable[[SignedObject], None]


class _Peer:
    def __init__(self) -> None:
        self.due = anyio.Event()
        self.due.set()
        self.cancel = anyio.CancelScope()
        self.is_first_pull_over = anyio.Event()


class SyncScheduler:
    """Runs pulls and hints for all connected peers; `run` ends only when cancelled."""

    def __init__(self, transport: Transport, store: Store, environment: Environment, *, on_news: OnNews) -> None:
        self._transport = transport
        self._store = store
        self._environment = environment
        self._on_news = on_news
        self._puller = Puller(transport, store, environment)
        self._peers: dict[PeerId, _Peer] = {}
        self._changed = anyio.Event()
        self._hints: dict[PeerId, ScopeSummary] = {}
        self._hinted = anyio.Event()
        SyncServer(transport, store, environment, on_hint=self._take_hint)

    async def run(self) -> None:
        async with anyio.create_task_group() as group, self._transport.events() as events:
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

    def _start_peer(self, group: TaskGroup, peer: PeerId) -> None:
        if peer not in self._peers:
            self._peers[peer] = state = _Peer()
            group.start_soon(self._pull_from, peer, state)

    async def _pull_from(self, peer: PeerId, state: _Peer) -> None:
        with state.cancel:
            try:
                while True:
                    jitter = 0.5 + random_below(self._environment, 1000) / 1000
                    with anyio.move_on_after(PULL_PERIOD * jitter):
                        await state.due.wait()
                    state.due = anyio.Event()
                    pause = await self._pull_once(peer)
                    state.is_first_pull_over.set()
                    await anyio.sleep(pause)
            finally:
                state.is_first_pull_over.set()

    async def _pull_once(self, peer: PeerId) -> float:
        """Pull and pass on what came; returns how many seconds to leave the peer alone."""
        try:
            report = await self._puller.pull(peer)
        except RemoteError as error:
            logger.info("sync with %s: %s", peer, error)
            return REFUSED_DELAY
        except LocalError as error:
            logger.error("sync with %s: %s", peer, error)
            return REFUSED_DELAY
        for obj in report.news:
            self._on_news(obj)
        if report.news:
            self.catalog_changed()
        return MIN_PULL_INTERVAL if report.refused is None else REFUSED_DELAY

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

    def _take_hint(self, peer: PeerId, summary: ScopeSummary) -> None:
        # Only peers that are connected have an entry, and each has one, so this table cannot grow.
        if peer in self._peers:
            self._hints[peer] = summary
            self._hinted.set()

    async def _weigh_hints(self) -> None:
        while True:
            await self._hinted.wait()
            self._hinted = anyio.Event()
            hints, self._hints = self._hints, {}
            ours = await self._store.scope_summary(CATALOG, now=self._environment.now_ms())
            for peer, theirs in hints.items():
                if theirs != ours and (state := self._peers.get(peer)) is not None:
                    state.due.set()
