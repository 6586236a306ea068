"""Direct delivery of inbox objects: `/bnw/deliver/1`.

    → deliver {objects}        introductions (identity records, delegations) first, then the mail
    ← delivered {}             every object is durably in the receiver's store
    ← refused {code}           nothing of it was kept

An inbox that is not here and one that may not be written to give the same answer.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

import anyio

from bnw.identity.keys import IdentityId
from bnw.objects.admission import check_catalog_object, check_inbox_object
from bnw.objects.authority import Delegation
from bnw.objects.catalog import IdentityRecord
from bnw.objects.fields import NAME, array, raw_bytes, spec
from bnw.objects.message import Message, read_message
from bnw.objects.rules import is_catalog_object, recipients_of
from bnw.objects.signed import SignedObject, parse_object
from bnw.store.interface import Store
from bnw.transport.interface import PeerId, Stream, Transport
from bnw.transport.message_stream import MessageStream
from bnw.wire.environment import Environment
from bnw.wire.errors import InvalidError, LocalError, RemoteError
from bnw.wire.limits import MAX_FRAME, MAX_SIGNED_OBJECT
from bnw.wire.rate_limit import RateLimiter

logger = logging.getLogger(__name__)

DELIVER_PROTOCOL = "/bnw/deliver/1"

MAX_OBJECTS_PER_DELIVERY = 16
DELIVERIES_PER_SECOND = 50.0
DELIVERIES_AT_ONCE = 500.0

REFUSED_NOT_HERE = "not-here"
REFUSED_BUSY = "busy"
REFUSED_INVALID = "invalid"
REFUSED_TRY_LATER = "try-later"


@dataclass(frozen=True, slots=True)
class Deliver(Message):
    TYPE: ClassVar[str] = "deliver"
    objects: tuple[bytes, ...] = spec(array(raw_bytes(1, MAX_SIGNED_OBJECT), 1, MAX_OBJECTS_PER_DELIVERY))


@dataclass(frozen=True, slots=True)
class Delivered(Message):
    TYPE: ClassVar[str] = "delivered"


@dataclass(frozen=True, slots=True)
class DeliveryRefused(Message):
    TYPE: ClassVar[str] = "refused"
    code: str = spec(NAME)


OnMail = Callable[[PeerId, Sequence[SignedObject]], Awaitable[None]]
"""Gets the mail of one delivery, after it is durable and before it is confirmed. Raises `LocalError` to refuse it."""


async def deliver(transport: Transport, peer: PeerId, objects: Sequence[SignedObject]) -> None:
    """Hand `objects` to a connected peer; returns once they are durable there.

    Raises `RemoteError`: `refused-<code>` or a failure of the stream.
    """
    stream = await transport.open_stream(peer, DELIVER_PROTOCOL)
    async with MessageStream(stream) as messages:
        await messages.send(Deliver(tuple(obj.data for obj in objects)).to_wire())
        try:
            answer = read_message(await messages.receive(), Delivered, DeliveryRefused)
        except InvalidError as error:
            raise error.from_peer(peer) from error
    if isinstance(answer, DeliveryRefused):
        raise RemoteError(f"refused-{answer.code}", f"the delivery was refused: {answer.code}", place=f"peer {peer}")


class InboxServer:
    """Takes in deliveries for the identities that live on this node."""

    def __init__(
        self,
        transport: Transport,
        store: Store,
        environment: Environment,
        *,
        identities: frozenset[IdentityId],
        on_mail: OnMail,
    ) -> None:
        self._store = store
        self._environment = environment
        self._identities = identities
        self._on_mail = on_mail
        self._limiter = RateLimiter(rate=DELIVERIES_PER_SECOND, burst=DELIVERIES_AT_ONCE)
        transport.serve(DELIVER_PROTOCOL, self._serve)

    async def _serve(self, stream: Stream) -> None:
        messages = MessageStream(stream, max_size=MAX_FRAME)
        while (value := await messages.receive()) is not None:
            if not self._limiter.allows(stream.peer, anyio.current_time()):
                await messages.send(DeliveryRefused(REFUSED_BUSY).to_wire())
                continue
            try:
                refusal = await self._take_in(stream.peer, read_message(value, Deliver))
            except InvalidError as error:
                logger.info("delivery from %s refused: %s", stream.peer, error)
                refusal = REFUSED_INVALID
            except LocalError as error:
                logger.error("delivery from %s not kept: %s", stream.peer, error)
                refusal = REFUSED_TRY_LATER
            answer = Delivered() if refusal is None else DeliveryRefused(refusal)
            await messages.send(answer.to_wire())

    async def _take_in(self, peer: PeerId, delivery: Deliver) -> str | None:
        now = self._environment.now_ms()
        objects = [self._check(data, now) for data in delivery.objects]
        mail = [obj for obj in objects if not is_catalog_object(obj.body)]
        if any(self._identities.isdisjoint(recipients_of(obj.body)) for obj in mail):
            return REFUSED_NOT_HERE
        await self._store.put_objects(objects, now=now)
        await self._on_mail(peer, mail)
        return None

    def _check(self, data: bytes, now: int) -> SignedObject:
        if is_catalog_object(parse_object(data).body):
            introduction = check_catalog_object(data, now)
            if not isinstance(introduction.body, IdentityRecord | Delegation):
                raise InvalidError("wrong-scope", f"a {introduction.kind} is not delivered but gossiped")
            return introduction.verify()
        return check_inbox_object(data, now).verify()
