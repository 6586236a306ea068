"""Direct delivery of inbox objects: `/bnw/deliver/1`.

    → deliver {objects}        introductions (identity records, delegations) first, then the mail
    → parcel {objects, blobs}  the same, with small chunks of payloads that would otherwise be fetched one by one
    → knock {recipient}        nothing is delivered: is this the place for mail to this identity?
    ← delivered {}             what the receiver keeps of it is durable; after a knock, it is
    ← refused {code}           nothing of it was kept; after `try-later`, perhaps a part

An inbox that is not here and one that may not be written to give the same answer. What is kept is for the taker of the
mail to decide: nothing is written to the disk before that.
"""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import anyio

from bnw.identity.keys import IdentityId
from bnw.objects.admission import check_catalog_object, check_inbox_object
from bnw.objects.authority import Delegation
from bnw.objects.catalog import IdentityRecord
from bnw.objects.fields import IDENTITY, NAME, array, raw_bytes, spec
from bnw.objects.message import Message, read_message
from bnw.objects.rules import is_catalog_object, recipients_of
from bnw.objects.signed import SignedObject, parse_object
from bnw.transport.interface import PeerId, Stream, Transport
from bnw.transport.message_stream import MessageStream
from bnw.wire.cbor import Value
from bnw.wire.content_id import ContentId, content_id
from bnw.wire.environment import Environment
from bnw.wire.errors import InvalidError, LocalError, RemoteError
from bnw.wire.limits import KIB, MAX_FRAME, MAX_SIGNED_OBJECT
from bnw.wire.rate_limit import RateLimiter

logger = logging.getLogger(__name__)

DELIVER_PROTOCOL = "/bnw/deliver/1"

MAX_OBJECTS_PER_DELIVERY = 16
MAX_BLOBS_PER_DELIVERY = 16
MAX_ATTACHED = 64 * KIB
"""Bytes of all blobs that come with a delivery. A larger payload is fetched."""
DELIVERIES_PER_SECOND = 1000.0
DELIVERIES_AT_ONCE = 2000.0
"""From one peer. A call takes two deliveries, one each way, and each progress report one."""
MAX_IDLE_STREAMS = 8
"""Streams to one peer that are kept open for the next delivery."""
MAX_PEERS_WITH_STREAMS = 256

REFUSED_NOT_HERE = "not-here"
REFUSED_BUSY = "busy"
REFUSED_INVALID = "invalid"
REFUSED_TRY_LATER = "try-later"
REFUSED_UNWANTED = "unwanted"


@dataclass(frozen=True, slots=True)
class Deliver(Message):
    TYPE: ClassVar[str] = "deliver"
    objects: tuple[bytes, ...] = spec(array(raw_bytes(1, MAX_SIGNED_OBJECT), 1, MAX_OBJECTS_PER_DELIVERY))


@dataclass(frozen=True, slots=True)
class Parcel(Message):
    TYPE: ClassVar[str] = "parcel"
    blobs: tuple[bytes, ...] = spec(array(raw_bytes(1, MAX_ATTACHED), 1, MAX_BLOBS_PER_DELIVERY))
    objects: tuple[bytes, ...] = spec(array(raw_bytes(1, MAX_SIGNED_OBJECT), 1, MAX_OBJECTS_PER_DELIVERY))


@dataclass(frozen=True, slots=True)
class Knock(Message):
    TYPE: ClassVar[str] = "knock"
    recipient: IdentityId = spec(IDENTITY)


@dataclass(frozen=True, slots=True)
class Delivered(Message):
    TYPE: ClassVar[str] = "delivered"


@dataclass(frozen=True, slots=True)
class DeliveryRefused(Message):
    TYPE: ClassVar[str] = "refused"
    code: str = spec(NAME)


@dataclass(frozen=True, slots=True)
class Mail:
    """One delivery, checked object by object. `introductions` are for the catalog, `letters` for somebody here."""

    introductions: tuple[SignedObject, ...]
    letters: tuple[SignedObject, ...]
    blobs: Mapping[ContentId, bytes] = field(default_factory=dict, repr=False)
    """By content id. Whoever takes the mail keeps those that it has use for."""


OnMail = Callable[[PeerId, Mail], Awaitable[None]]
"""Takes a delivery before it is confirmed; whatever it keeps is durable when it returns.

Raises `LocalError` to refuse it: `busy` and `unwanted` are told to the peer, anything else as `try-later`.
"""
_TOLD = frozenset({REFUSED_BUSY, REFUSED_UNWANTED})


@dataclass(frozen=True, slots=True)
class _Line:
    stream: Stream
    messages: MessageStream


def _ignore() -> None:
    """Wants to know nothing."""


class Courier:
    """Hands objects to connected peers, over streams that stay open for the next delivery."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self._idle: OrderedDict[PeerId, list[_Line]] = OrderedDict()

    async def deliver(
        self,
        peer: PeerId,
        objects: Sequence[SignedObject],
        blobs: Sequence[bytes] = (),
        *,
        on_copy: Callable[[], None] = _ignore,
    ) -> None:
        """Hand `objects` to a connected peer; returns once what it keeps of them is durable there.

        `blobs` go with them if they are small; otherwise the peer has to fetch them. `on_copy` is called before each
        time that they leave this node. Raises `RemoteError`: `refused-<code>` or a failure of the stream.
        """
        envelopes = tuple(obj.data for obj in objects)
        attached = sum(map(len, blobs))
        fits = attached <= MAX_ATTACHED and attached + sum(map(len, envelopes)) <= MAX_FRAME - KIB
        if blobs and fits and len(blobs) <= MAX_BLOBS_PER_DELIVERY:
            message = Parcel(tuple(blobs), envelopes).to_wire()
        else:
            message = Deliver(envelopes).to_wire()
        await self._ask(peer, message, on_copy)

    async def knock(self, peer: PeerId, recipient: IdentityId) -> None:
        """Return if a connected peer says that mail to `recipient` is for it, before anything is entrusted to it.

        It proves nothing: what is sealed for the recipient only the recipient opens. Raises as `deliver` does.
        """
        await self._ask(peer, Knock(recipient).to_wire())

    async def _ask(self, peer: PeerId, message: dict[str, Value], on_copy: Callable[[], None] = _ignore) -> None:
        while idle := self._idle.get(peer):
            on_copy()
            try:
                return await self._exchange(peer, idle.pop(), message)
            except RemoteError as error:
                # A stream that stood idle may have ended since. Delivering twice is harmless.
                if error.code not in {"stream-closed", "not-connected"}:
                    raise
        stream = await self._transport.open_stream(peer, DELIVER_PROTOCOL)
        on_copy()
        return await self._exchange(peer, _Line(stream, MessageStream(stream)), message)

    async def _exchange(self, peer: PeerId, line: _Line, message: dict[str, Value]) -> None:
        answer: Message | None = None
        try:
            await line.messages.send(message)
            try:
                answer = read_message(await line.messages.receive(), Delivered, DeliveryRefused)
            except InvalidError as error:
                code = "stream-closed" if error.code == "message" else error.code
                raise RemoteError(code, error.cause, place=f"peer {peer}") from error
        finally:
            with anyio.CancelScope(shield=True):
                if answer is None:
                    await line.stream.reset()
                elif not self._keep_idle(peer, line):
                    await line.stream.aclose()
        if isinstance(answer, DeliveryRefused):
            raise RemoteError(
                f"refused-{answer.code}", f"the delivery was refused: {answer.code}", place=f"peer {peer}"
            )

    def _keep_idle(self, peer: PeerId, line: _Line) -> bool:
        idle = self._idle.setdefault(peer, [])
        self._idle.move_to_end(peer)
        if len(self._idle) > MAX_PEERS_WITH_STREAMS:
            # Their streams end by themselves: nothing comes over them any more, and the other side gives them up.
            self._idle.popitem(last=False)
        if len(idle) >= MAX_IDLE_STREAMS:
            return False
        idle.append(line)
        return True


class InboxServer:
    """Takes in deliveries for the identities that live on this node."""

    def __init__(
        self,
        transport: Transport,
        environment: Environment,
        *,
        identities: frozenset[IdentityId],
        on_mail: OnMail,
    ) -> None:
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
                await self._take_in(stream.peer, read_message(value, Deliver, Parcel, Knock))
            except InvalidError as error:
                logger.info("delivery from %s refused: %s", stream.peer, error)
                refusal = REFUSED_NOT_HERE if error.code == REFUSED_NOT_HERE else REFUSED_INVALID
            except LocalError as error:
                refusal = error.code if error.code in _TOLD else REFUSED_TRY_LATER
                logger.log(
                    logging.INFO if error.code in _TOLD else logging.ERROR,
                    "delivery from %s not kept: %s",
                    stream.peer,
                    error,
                )
            else:
                await messages.send(Delivered().to_wire())
                continue
            await messages.send(DeliveryRefused(refusal).to_wire())

    async def _take_in(self, peer: PeerId, delivery: Message) -> None:
        if isinstance(delivery, Knock):
            if delivery.recipient not in self._identities:
                raise InvalidError(REFUSED_NOT_HERE, "a knock for nobody here")
            return
        assert isinstance(delivery, Deliver | Parcel)
        blobs = delivery.blobs if isinstance(delivery, Parcel) else ()
        if sum(map(len, blobs)) > MAX_ATTACHED:
            raise InvalidError("too-large", f"at most {MAX_ATTACHED:,} bytes of blobs come with a delivery")
        now = self._environment.now_ms()
        objects = [check_delivered(data, now) for data in delivery.objects]
        letters = tuple(obj for obj in objects if not is_catalog_object(obj.body))
        if any(self._identities.isdisjoint(recipients_of(obj.body)) for obj in letters):
            raise InvalidError(REFUSED_NOT_HERE, "an object is for nobody here")
        introductions = tuple(obj for obj in objects if is_catalog_object(obj.body))
        await self._on_mail(peer, Mail(introductions, letters, {content_id(blob): blob for blob in blobs}))


def check_delivered(data: bytes, now: int) -> SignedObject:
    """Check an object that is delivered: an introduction or a letter. Raises `InvalidError`."""
    if is_catalog_object(parse_object(data).body):
        introduction = check_catalog_object(data, now)
        if not isinstance(introduction.body, IdentityRecord | Delegation):
            raise InvalidError("wrong-scope", f"a {introduction.kind} is not delivered but gossiped")
        return introduction.verify()
    return check_inbox_object(data, now).verify()
