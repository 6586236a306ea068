"""Pulls from one peer what it has in a scope and we lack: first compare, then ask for what is missing.

What a peer can make us do in one pull is bounded by the limits in `bnw.sync.protocol`, whatever it answers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import anyio

from bnw.objects.admission import check_catalog_object
from bnw.store.interface import Store
from bnw.sync.bounded import Claims
from bnw.sync.checking import Check, Verify
from bnw.sync.fetch import Avoided, Fetched, Fetcher, OnNews
from bnw.sync.inbox_access import InboxReader
from bnw.sync.negentropy.reconciler import Initiator
from bnw.sync.protocol import (
    MAX_NEGENTROPY,
    MAX_WANTED,
    SESSION_TIMEOUT,
    SYNC_PROTOCOL,
    VERSION,
    SyncHint,
    SyncRefused,
)
from bnw.sync.scope_index import ScopeIndex
from bnw.sync.session import PeerRefused, PullSession, too_slow
from bnw.sync.wants import WantList
from bnw.transport.interface import PeerId, Transport
from bnw.transport.message_stream import MessageStream
from bnw.wire.content_id import ContentId
from bnw.wire.environment import Environment
from bnw.wire.errors import InvalidError, RemoteError

MAX_LEFT_ASKED: Final = MAX_WANTED // 2
"""Ids left by earlier pulls that one pull asks for before it compares, so that room is left for what it finds."""


@dataclass(slots=True)
class PullReport:
    """What one pull brought."""

    rounds: int = 0
    asked: int = 0
    """Ids that were to be asked for."""
    news: int = 0
    """Objects that the store took in."""
    is_complete: bool = False
    """Whether everything has been compared and asked for; otherwise a limit was reached, and there is more to pull."""
    refused: SyncRefused | None = None


class Puller:
    """Pulls one scope from any peers. `on_news` is told of everything new as soon as it is stored."""

    def __init__(
        self,
        transport: Transport,
        store: Store,
        environment: Environment,
        index: ScopeIndex,
        *,
        verify: Verify,
        on_news: OnNews,
        check: Check = check_catalog_object,
        reader: InboxReader | None = None,
    ) -> None:
        """`check` is for the objects of the scope; `reader` proves that it may be read, if it is an inbox."""
        self._transport = transport
        self._environment = environment
        self._index = index
        self._avoided = Avoided()
        self._fetcher = Fetcher(store, environment, self._avoided, check=check, verify=verify, on_news=on_news)
        self._reader = reader
        self._wants = WantList(store, index.scope)
        self._pulling: Claims[ContentId] = Claims()
        """Ids that pulls under way want."""

    async def pull(self, peer: PeerId) -> PullReport:
        """Pull from `peer`. What arrived before a failure is kept and has been told.

        Raises `RemoteError` (`sync-slow`, `sync-endless`, those of the stream, and the code of whatever is wrong with
        what the peer sent) and `LocalError`.
        """
        stream = await self._transport.open_stream(peer, SYNC_PROTOCOL)
        async with MessageStream(stream) as messages:
            try:
                with anyio.fail_after(SESSION_TIMEOUT):
                    return await self._pull(PullSession(messages, self._index.scope, self._reader))
            except TimeoutError:
                raise too_slow(peer, f"a pull took more than {SESSION_TIMEOUT:g} s") from None
            except InvalidError as error:
                raise error.from_peer(peer) from error

    async def hint(self, peer: PeerId) -> None:
        """Tell `peer` that our side of the scope has changed. Raises `RemoteError`, `LocalError`."""
        summary = await self._index.summary(self._environment.now_ms())
        stream = await self._transport.open_stream(peer, SYNC_PROTOCOL)
        async with MessageStream(stream) as messages:
            await messages.send(SyncHint(summary.count, summary.fingerprint, self._index.scope, VERSION).to_wire())

    async def _pull(self, session: PullSession) -> PullReport:
        now = self._environment.now_ms()
        await self._wants.load(now)
        items = await self._index.at(now)
        initiator = Initiator(items, frame_limit=MAX_NEGENTROPY, max_message=MAX_NEGENTROPY)
        report = PullReport()
        try:
            answer = await session.exchange(initiator.start())
            left = [id for id in self._wants.ids(now) if id not in self._pulling]
            left = self._worth_asking(session.peer, left)[:MAX_LEFT_ASKED]
            if left and await self._fetch_left(session, left, report):
                # What has come meanwhile need not be compared.
                answer = await session.exchange(initiator.start())
            needed, is_compared = await self._compare(session, initiator, answer, MAX_WANTED - report.asked)
            is_asked = not needed or await self._fetch_needed(session, needed, report)
            report.is_complete = is_compared and is_asked
        except PeerRefused as error:
            report.refused = error.refused
        report.rounds = session.rounds
        if not report.is_complete and report.refused is None and not report.news:
            raise RemoteError(
                "sync-endless",
                f"after {report.rounds} rounds there is no end and nothing new",
                place=f"peer {session.peer}",
            )
        return report

    async def _compare(
        self, session: PullSession, initiator: Initiator, answer: bytes, limit: int
    ) -> tuple[list[ContentId], bool]:
        """Compare from an answer on; returns up to `limit` ids to ask for, and whether everything has been compared."""
        needed: dict[ContentId, None] = {}
        while True:
            step = initiator.take(answer)
            offered = [ContentId(id) for id in step.need]
            needed.update(dict.fromkeys(self._worth_asking(session.peer, offered)))
            if step.message is None or len(needed) >= limit or not session.may_compare:
                return list(needed)[:limit], step.message is None and len(needed) <= limit
            answer = await session.exchange(step.message)

    async def _fetch_left(self, session: PullSession, ids: Sequence[ContentId], report: PullReport) -> bool:
        """Ask for what an earlier pull has left, before comparing; returns whether anything came.

        What does not come from here stays on the list, since another peer may have it.
        """
        fetched = await self._fetch(session, ids, report)
        await self._wants.save(self._environment.now_ms())
        return bool(fetched.arrived)

    async def _fetch_needed(self, session: PullSession, ids: Sequence[ContentId], report: PullReport) -> bool:
        """Ask for what this peer has just offered; returns whether all could be asked for."""
        self._wants.add(ids, self._environment.now_ms())
        await self._wants.save(self._environment.now_ms())
        fetched = await self._fetch(session, ids, report)
        self._wants.drop(fetched.withheld)
        await self._wants.save(self._environment.now_ms())
        return len(fetched.arrived) + len(fetched.withheld) == len(ids)

    async def _fetch(self, session: PullSession, ids: Sequence[ContentId], report: PullReport) -> Fetched:
        fetched = Fetched()
        report.asked += len(ids)
        self._pulling.claim(ids)
        try:
            await self._fetcher.fetch(session, ids, fetched)
        finally:
            self._pulling.release(ids)
            self._wants.drop(fetched.arrived)
            report.news += fetched.news
        return fetched

    def _worth_asking(self, peer: PeerId, ids: Sequence[ContentId]) -> list[ContentId]:
        return self._avoided.worth_asking(peer, ids, self._environment.now_ms())
