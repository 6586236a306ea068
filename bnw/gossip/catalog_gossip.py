"""Announces and takes in catalog objects on the network's topic.

Checks go from cheap to dear: rate, size, form, kind, time, known id, signature, and last the store's own verdict
(precedence and quota). Only what the sender must have known to be wrong is a reject; the rest, our own overload
included, is an ignore (design section 10).
"""

from __future__ import annotations

import logging
from collections.abc import Callable

import anyio

from bnw.objects.admission import Blame, blame_for, check_catalog_object
from bnw.objects.signed import SignedObject
from bnw.store.interface import PutOutcome, Store
from bnw.transport.interface import PeerId, Transport, Verdict
from bnw.wire.environment import Environment
from bnw.wire.errors import InvalidError, LocalError
from bnw.wire.names import check_name
from bnw.wire.rate_limit import RateLimiter

logger = logging.getLogger(__name__)

MESSAGES_PER_SECOND = 200.0
MESSAGES_AT_ONCE = 2000.0
"""What one forwarding peer may send; more is ignored, and reconciliation brings it later."""

SPREADS = frozenset({PutOutcome.ADDED, PutOutcome.EQUIVOCATION})
"""Outcomes that are news to others too. Equivocation is: everyone should see the proof."""

OnNews = Callable[[SignedObject], None]
"""Told of each object that gossip brought and the store took in. Must not block."""


def catalog_topic(network: str) -> str:
    """The gossip topic of a network's catalog; raises `InvalidError` for a bad network name."""
    return f"/bnw/1/{check_name(network, 'network name')}/catalog"


class CatalogGossip:
    def __init__(
        self, transport: Transport, store: Store, environment: Environment, *, network: str, on_news: OnNews
    ) -> None:
        self._transport = transport
        self._store = store
        self._environment = environment
        self._topic = catalog_topic(network)
        self._on_news = on_news
        self._limiter = RateLimiter(rate=MESSAGES_PER_SECOND, burst=MESSAGES_AT_ONCE)

    async def start(self) -> None:
        await self._transport.subscribe(self._topic, self._judge, self._ignore_message)

    async def announce(self, obj: SignedObject) -> None:
        """Gossip an object that the store already holds."""
        await self._transport.publish(self._topic, obj.data)

    async def _judge(self, peer: PeerId, data: bytes) -> Verdict:
        if not self._limiter.allows(peer, anyio.current_time()):
            return Verdict.IGNORE
        now = self._environment.now_ms()
        try:
            unverified = check_catalog_object(data, now)
            if not await self._store.missing_objects([unverified.id]):
                return Verdict.IGNORE
            obj = unverified.verify()
        except InvalidError as error:
            logger.info("gossip from %s refused: %s", peer, error)
            return Verdict.REJECT if blame_for(error) is Blame.SENDER else Verdict.IGNORE
        try:
            [outcome] = await self._store.put_objects([obj], now=now)
        except LocalError as error:
            logger.error("gossiped object not stored: %s", error)
            return Verdict.IGNORE
        if outcome not in SPREADS:
            return Verdict.IGNORE
        self._on_news(obj)
        return Verdict.ACCEPT

    async def _ignore_message(self, peer: PeerId, data: bytes) -> None:
        """Accepted objects are in the store already, put there by the validator, before they were forwarded."""
