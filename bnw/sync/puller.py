"""Pulls from one peer what it has in a scope and we lack."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass

from bnw.objects.admission import Blame, blame_for, check_catalog_object
from bnw.objects.message import read_message
from bnw.objects.rules import CATALOG
from bnw.objects.signed import SignedObject
from bnw.store.interface import PutOutcome, Store
from bnw.sync.protocol import (
    MAX_IDS_WANTED,
    MAX_PAGES,
    SYNC_PROTOCOL,
    SyncHint,
    SyncIds,
    SyncNext,
    SyncObjects,
    SyncOpen,
    SyncRefused,
    SyncSame,
    SyncWant,
)
from bnw.transport.interface import PeerId, Transport
from bnw.transport.message_stream import MessageStream
from bnw.wire.content_id import ContentId
from bnw.wire.environment import Environment
from bnw.wire.errors import InvalidError, RemoteError

logger = logging.getLogger(__name__)

TAKEN_IN = frozenset({PutOutcome.ADDED, PutOutcome.EQUIVOCATION})


@dataclass(frozen=True, slots=True)
class PullReport:
    """What one pull brought."""

    news: tuple[SignedObject, ...] = ()
    refused: str | None = None
    same: bool = False


class Puller:
    def __init__(self, transport: Transport, store: Store, environment: Environment) -> None:
        self._transport = transport
        self._store = store
        self._environment = environment

    async def pull(self, peer: PeerId) -> PullReport:
        """Pull the catalog from `peer`. What arrived before a failure is kept. Raises `RemoteError`."""
        stream = await self._transport.open_stream(peer, SYNC_PROTOCOL)
        async with MessageStream(stream) as messages:
            try:
                return await self._pull(messages)
            except InvalidError as error:
                raise error.from_peer(peer) from error

    async def hint(self, peer: PeerId) -> None:
        """Tell `peer` that our catalog has changed. Raises `RemoteError`."""
        summary = await self._store.scope_summary(CATALOG, now=self._environment.now_ms())
        stream = await self._transport.open_stream(peer, SYNC_PROTOCOL)
        async with MessageStream(stream) as messages:
            await messages.send(SyncHint(summary.count, summary.fingerprint, CATALOG).to_wire())

    async def _pull(self, messages: MessageStream) -> PullReport:
        summary = await self._store.scope_summary(CATALOG, now=self._environment.now_ms())
        await messages.send(SyncOpen(summary.count, summary.fingerprint, CATALOG).to_wire())
        answer = read_message(await messages.receive(), SyncIds, SyncSame, SyncRefused)
        if isinstance(answer, SyncRefused):
            return PullReport(refused=answer.code)
        if isinstance(answer, SyncSame):
            return PullReport(same=True)
        assert isinstance(answer, SyncIds)
        news: list[SignedObject] = []
        last: ContentId | None = None
        for _ in range(MAX_PAGES):
            # Ids rise from page to page, so a peer cannot keep us busy by offering the same ones for ever.
            if answer.ids and last is not None and answer.ids[0] <= last:
                raise InvalidError("sync-order", "a page of ids does not follow the one before", place="ids.ids[0]")
            missing = await self._store.missing_objects(answer.ids)
            for start in range(0, len(missing), MAX_IDS_WANTED):
                news += await self._take(messages, missing[start : start + MAX_IDS_WANTED])
            if not answer.more:
                break
            if not answer.ids:
                raise InvalidError("sync-order", "an empty page of ids says that more follow", place="ids.more")
            last = answer.ids[-1]
            await messages.send(SyncNext().to_wire())
            answer = read_message(await messages.receive(), SyncIds)
        return PullReport(news=tuple(news))

    async def _take(self, messages: MessageStream, wanted: Sequence[ContentId]) -> list[SignedObject]:
        await messages.send(SyncWant(tuple(wanted)).to_wire())
        news: list[SignedObject] = []
        open_ids = set(wanted)
        while True:
            batch = read_message(await messages.receive(), SyncObjects)
            news += await self._take_in(messages.peer, batch.objects, open_ids)
            if not batch.more:
                return news
            if not batch.objects:
                raise InvalidError("sync-order", "an empty batch says that more follow", place="objects.more")

    async def _take_in(self, peer: PeerId, batch: Sequence[bytes], open_ids: set[ContentId]) -> list[SignedObject]:
        """Check and store a batch. One bad object does not cost us the good ones beside it."""
        now = self._environment.now_ms()
        good: list[SignedObject] = []
        fault: RemoteError | None = None
        for data in batch:
            try:
                unverified = check_catalog_object(data, now)
                if unverified.id not in open_ids:
                    raise InvalidError("sync-unasked", "an object that was not asked for", place=unverified.id.hex())
                open_ids.discard(unverified.id)
                good.append(unverified.verify())
            except InvalidError as error:
                if blame_for(error) is Blame.SENDER:
                    fault = error.from_peer(peer)
                    break
                logger.info("sync with %s: %s", peer, error)
        outcomes = await self._store.put_objects(good, now=now) if good else []
        if fault is not None:
            raise fault
        return [obj for obj, outcome in zip(good, outcomes, strict=True) if outcome in TAKEN_IN]
