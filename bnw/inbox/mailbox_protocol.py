"""Handing mail to a mailbox and releasing it: `/bnw/mailbox/1`.

    → deposit {objects, blobs}     introductions first, then the mail; blobs are small chunks of its payloads
    ← holding {}                   while the mailbox fetches chunks from the sender: not an answer yet
    ← deposited {}                 all of it is durable here, chunks included, until it is released or expires
    → release {acknowledgement}    signed by whose inbox it is
    ← released {objects}           those that were held until now, and are handed over no more
    ← refused {code}               instead of either answer: nothing of it was taken

An identity that is not served here, and one that has not named this mailbox in its record, give the same answer.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Final

import anyio

from bnw.identity.keys import IdentityId
from bnw.inbox.carrier import Carrier
from bnw.inbox.delivery import (
    DELIVERIES_AT_ONCE,
    DELIVERIES_PER_SECOND,
    MAX_ATTACHED,
    MAX_BLOBS_PER_DELIVERY,
    MAX_OBJECTS_PER_DELIVERY,
    REFUSED_BUSY,
    REFUSED_INVALID,
    REFUSED_TRY_LATER,
    Mail,
    OnMail,
    check_delivered,
)
from bnw.inbox.mailbox_refusals import MAILBOX_REFUSALS, REFUSED_UNAVAILABLE
from bnw.objects.admission import check_inbox_object
from bnw.objects.fields import CONTENT_ID, NAME, array, raw_bytes, spec
from bnw.objects.mail import Acknowledgement
from bnw.objects.message import Message, read_message
from bnw.objects.rules import is_catalog_object, recipients_of
from bnw.objects.signed import SignedObject
from bnw.transport.interface import PeerId, Stream, Transport
from bnw.transport.message_stream import MessageStream
from bnw.wire.content_id import ContentId, content_id
from bnw.wire.environment import Environment
from bnw.wire.errors import BnwError, InvalidError, LocalError, RemoteError
from bnw.wire.limits import KIB, MAX_ACKNOWLEDGED, MAX_FRAME, MAX_SIGNED_OBJECT
from bnw.wire.rate_limit import RateLimiter

logger = logging.getLogger(__name__)

MAILBOX_PROTOCOL: Final = "/bnw/mailbox/1"

HOLDING_PERIOD: Final = 5.0
"""Seconds between two signs of life while chunks are fetched."""
MAX_TAKING_TIME: Final = 3600.0
"""Seconds in which a deposit must be through, chunks included: a gibibyte at 300 KiB/s."""


@dataclass(frozen=True, slots=True)
class Deposit(Message):
    TYPE: ClassVar[str] = "deposit"
    blobs: tuple[bytes, ...] = spec(array(raw_bytes(1, MAX_ATTACHED), 0, MAX_BLOBS_PER_DELIVERY))
    objects: tuple[bytes, ...] = spec(array(raw_bytes(1, MAX_SIGNED_OBJECT), 1, MAX_OBJECTS_PER_DELIVERY))


@dataclass(frozen=True, slots=True)
class Holding(Message):
    TYPE: ClassVar[str] = "holding"


@dataclass(frozen=True, slots=True)
class Deposited(Message):
    TYPE: ClassVar[str] = "deposited"


@dataclass(frozen=True, slots=True)
class Release(Message):
    TYPE: ClassVar[str] = "release"
    acknowledgement: bytes = spec(raw_bytes(1, MAX_SIGNED_OBJECT))


@dataclass(frozen=True, slots=True)
class Released(Message):
    TYPE: ClassVar[str] = "released"
    objects: tuple[ContentId, ...] = spec(array(CONTENT_ID, 0, MAX_ACKNOWLEDGED))


@dataclass(frozen=True, slots=True)
class MailboxRefused(Message):
    TYPE: ClassVar[str] = "refused"
    code: str = spec(NAME)


class MailboxClient:
    """Talks to mailboxes that are connected. One stream for each request: mail is seldom, and may take long."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    async def deposit(self, peer: PeerId, objects: Sequence[SignedObject], blobs: Sequence[bytes] = ()) -> None:
        """Return once the mailbox holds `objects`, with all chunks of their payloads, which it fetches from here.

        `blobs` spare it that if they are small. Raises `RemoteError`: `refused-<code>` or a failure of the stream.
        """
        attached = sum(map(len, blobs))
        room = MAX_FRAME - KIB - sum(len(obj.data) for obj in objects)
        fits = len(blobs) <= MAX_BLOBS_PER_DELIVERY and attached <= min(MAX_ATTACHED, room)
        request = Deposit(tuple(blobs) if fits else (), tuple(obj.data for obj in objects))
        await self._ask(peer, request, Deposited)

    async def release(self, peer: PeerId, acknowledgement: SignedObject) -> frozenset[ContentId]:
        """Return the ids that the mailbox had held until now and hands over no more. Raises as `deposit` does."""
        answer = await self._ask(peer, Release(acknowledgement.data), Released)
        assert isinstance(answer, Released)
        return frozenset(answer.objects)

    async def _ask(self, peer: PeerId, request: Message, expected: type[Message]) -> Message:
        stream = await self._transport.open_stream(peer, MAILBOX_PROTOCOL)
        async with MessageStream(stream) as messages:
            try:
                with anyio.fail_after(MAX_TAKING_TIME):
                    await messages.send(request.to_wire())
                    while True:
                        answer: Message = read_message(await messages.receive(), expected, Holding, MailboxRefused)
                        if not isinstance(answer, Holding):
                            break
            except TimeoutError:
                raise RemoteError("mailbox-slow", "the mailbox did not finish", place=f"peer {peer}") from None
            except InvalidError as error:
                raise error.from_peer(peer) from error
        if isinstance(answer, MailboxRefused):
            why = MAILBOX_REFUSALS.get(answer.code, "")
            raise RemoteError(
                f"refused-{answer.code}", f"the mailbox refused: {why or answer.code}", place=f"peer {peer}"
            )
        return answer


class MailboxServer:
    """Serves the identities that `carrier` knows, and takes messages for the node's `own` identity itself."""

    def __init__(
        self, transport: Transport, environment: Environment, carrier: Carrier, *, own: IdentityId, on_own: OnMail
    ) -> None:
        self._environment = environment
        self._carrier = carrier
        self._own = own
        self._on_own = on_own
        self._limiter = RateLimiter(rate=DELIVERIES_PER_SECOND, burst=DELIVERIES_AT_ONCE)
        transport.serve(MAILBOX_PROTOCOL, self._serve)

    async def _serve(self, stream: Stream) -> None:
        messages = MessageStream(stream, max_size=MAX_FRAME)
        if (value := await messages.receive()) is None:
            return
        if not self._limiter.allows(stream.peer, anyio.current_time()):
            await messages.send(MailboxRefused(REFUSED_BUSY).to_wire())
            return
        try:
            answer = await self._answer(stream.peer, read_message(value, Deposit, Release), messages)
        except InvalidError as error:
            logger.info("mail from %s refused: %s", stream.peer, error)
            answer = MailboxRefused(REFUSED_INVALID)
        except RemoteError as error:
            logger.info("mail from %s cannot be had: %s", stream.peer, error)
            answer = MailboxRefused(REFUSED_UNAVAILABLE)
        except LocalError as error:
            told = error.code in MAILBOX_REFUSALS
            logger.log(logging.INFO if told else logging.ERROR, "mail from %s not taken: %s", stream.peer, error)
            answer = MailboxRefused(error.code if told else REFUSED_TRY_LATER)
        await messages.send(answer.to_wire())

    async def _answer(self, peer: PeerId, request: Message, messages: MessageStream) -> Message:
        now = self._environment.now_ms()
        if isinstance(request, Release):
            acknowledgement = check_inbox_object(request.acknowledgement, now).verify()
            if not isinstance(acknowledgement.body, Acknowledgement):
                raise InvalidError("wrong-scope", f"a {acknowledgement.kind} releases nothing")
            return Released(tuple(await self._carrier.release(acknowledgement)))
        assert isinstance(request, Deposit)
        objects = [check_delivered(data, now) for data in request.objects]
        mail = Mail(
            tuple(obj for obj in objects if is_catalog_object(obj.body)),
            tuple(obj for obj in objects if not is_catalog_object(obj.body)),
            {content_id(blob): blob for blob in request.blobs},
        )
        await self._take(peer, mail, messages)
        return Deposited()

    async def _take(self, peer: PeerId, mail: Mail, messages: MessageStream) -> None:
        failure: BnwError | None = None
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(_show_life, messages)
            try:
                with anyio.move_on_after(MAX_TAKING_TIME) as patience:
                    is_own = all(self._own in recipients_of(letter.body) for letter in mail.letters)
                    await (self._on_own if is_own else self._carrier.take)(peer, mail)
            except BnwError as error:
                failure = error  # raised below, since from within the task group it would come as a group
            tasks.cancel_scope.cancel()
        if failure is not None:
            raise failure
        if patience.cancelled_caught:
            raise LocalError(REFUSED_TRY_LATER, "the chunks of a deposit took too long")


async def _show_life(messages: MessageStream) -> None:
    while True:
        await anyio.sleep(HOLDING_PERIOD)
        try:
            await messages.send(Holding().to_wire())
        except RemoteError:
            return  # the sender has gone; what it wanted kept is taken in all the same
