"""One call at its requester: the machine's state in memory, and its effects on disk and network."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import anyio

from bnw.identity.keys import IdentityId, did_key
from bnw.inbox.delivery import REFUSED_BUSY, REFUSED_INVALID, REFUSED_NOT_HERE, REFUSED_UNWANTED
from bnw.invoke.asked import AskedCall, AskedCalls
from bnw.invoke.attached import attachable, keep_chunks
from bnw.invoke.checks import check_receipt
from bnw.invoke.machines import requester as machine
from bnw.invoke.machines.table import Effect, Event
from bnw.invoke.parts import CallParts
from bnw.objects.calls import STATUS_INTERRUPTED, Cancellation, InvocationUpdate, Receipt
from bnw.objects.catalog import ProviderOffer
from bnw.objects.rules import offer_slot
from bnw.objects.signed import SignedObject, sign_object, trusted_object
from bnw.transport.interface import PeerId
from bnw.wire.content_id import ContentId, content_id
from bnw.wire.errors import BnwError, ExitStatus, LocalError, RemoteError
from bnw.wire.limits import MAX_PAYLOAD_IN_MEMORY, MIB

logger = logging.getLogger(__name__)

DIAL_TIMEOUT = 8.0
FIRST_RETRY = 0.5
LONGEST_RETRY = 10.0
"""Seconds between two askings: doubled each time, from the first to the longest."""
GRACE = 3.0
"""Seconds after the deadline in which the provider's receipt, which says so, may still come."""

FINAL_REFUSALS = frozenset({f"refused-{code}" for code in (REFUSED_NOT_HERE, REFUSED_INVALID, REFUSED_UNWANTED)})
"""The provider kept nothing and would refuse the same objects again."""
NOTHING_KEPT = FINAL_REFUSALS | {f"refused-{REFUSED_BUSY}"}
"""The provider kept nothing."""

TOLD_EVERY = 8 * MIB
"""Bytes after which progress is told again; what is smaller is there before anybody could read of it."""

OnStep = Callable[[str, Mapping[str, str]], None]
"""Told of each step of a call as it happens: its name, and what belongs to it."""


def no_step(step: str, details: Mapping[str, str]) -> None:
    """Takes steps that nobody asked for."""


def byte_steps(on_step: OnStep, step: str) -> Callable[[int, int | None], None]:
    """Makes steps of progress in bytes, one every `TOLD_EVERY`."""
    told = 0

    def tell(done: int, total: int | None) -> None:
        nonlocal told
        if done - told >= TOLD_EVERY or (done == total and told):
            told = done
            on_step(step, {"done": str(done), **({} if total is None else {"total": str(total)})})

    return tell


class NotTaken(RemoteError):
    """The provider has kept nothing of the only copy there ever was. The call is given up; another may be asked."""


@dataclass(slots=True)
class OpenCall:
    """Events go in through `handle`, one at a time. `first_hand` is true until a second copy may be on its way.

    With `has_others` the call does not wait for a provider that is busy. `max_output` bounds an output of which the
    descriptor does not say how large it may be.
    """

    parts: CallParts
    records: AskedCalls
    id: ContentId
    record: AskedCall
    first_hand: bool = False
    peer: PeerId | None = None
    on_step: OnStep = no_step
    has_others: bool = False
    max_output: int = MAX_PAYLOAD_IN_MEMORY
    state: machine.RequesterCall = field(init=False)
    settled: anyio.Event = field(init=False, default_factory=anyio.Event)
    input_chunks: tuple[bytes, ...] | None = field(init=False, default=None)
    """The chunks of the input, if they are at hand."""
    output_chunks: Mapping[ContentId, bytes] = field(init=False, default_factory=dict)
    """Those of the output that came with the receipt."""
    users: int = field(init=False, default=0)
    asking: bool = field(init=False, default=False)
    _copies: int = field(init=False, default=0)
    _is_mailed: bool = field(init=False, default=False)
    _arriving: tuple[SignedObject, SignedObject | None] | None = field(init=False, default=None)
    _wake: anyio.Event = field(init=False, default_factory=anyio.Event)
    _lock: anyio.Lock = field(init=False, default_factory=anyio.Lock)

    def __post_init__(self) -> None:
        self.state = machine.RequesterCall(self.record.state, self.record.cancellation is not None)
        if self.record.state in {machine.ANSWERED, machine.ABANDONED}:
            self.settled.set()

    @property
    def provider(self) -> IdentityId:
        return self.record.body.provider

    async def handle(self, event: Event) -> None:
        with anyio.CancelScope(shield=True):
            async with self._lock:
                await self._step(event)

    async def take_receipt(
        self, receipt: SignedObject, output: SignedObject | None, chunks: Sequence[bytes] = ()
    ) -> None:
        """Raises `InvalidError` (`wrong-receipt`), and `LocalError` if the disk fails."""
        check_receipt(receipt, self.record.signed_invocation)
        with anyio.CancelScope(shield=True):
            async with self._lock:
                if self.state.phase in {machine.SENT, machine.CONFIRMED}:
                    self.output_chunks = {content_id(chunk): chunk for chunk in chunks}
                self._arriving = receipt, output
                await self._step(machine.ReceiptArrived(known=self.record.receipt == receipt.data))

    async def take_update(self, update: SignedObject) -> None:
        """Late, repeated and overtaken updates, and those after the receipt, change nothing."""
        body = update.body
        assert isinstance(body, InvocationUpdate)
        if update.signer != self.provider or self.settled.is_set():
            return
        async with self._lock:
            record = self.record.with_update(update)
            if record is None or self.state.phase not in {machine.SENT, machine.CONFIRMED}:
                return
            await self._keep(record)
        details = {"stage": body.stage, "note": body.note or ""}
        if body.fraction is not None:
            details["fraction"] = f"{body.fraction / 1000:.3f}"
        self.on_step("progress", details)

    async def ask_until_settled(self) -> None:
        """Ask the provider, again and again, until the call is settled or its deadline has passed.

        Raises `LocalError` (`deadline-passed`), or `RemoteError` for a refusal that would only be repeated.
        """
        seconds = (self.record.body.deadline - self.parts.environment.now_ms()) / 1000 + GRACE
        self.asking = True
        try:
            with anyio.move_on_after(max(seconds, GRACE)):
                delay = FIRST_RETRY
                while not self.settled.is_set():
                    confirmed = await self._ask_once()
                    delay = LONGEST_RETRY if confirmed else min(2 * delay, LONGEST_RETRY)
                    await self._pause(delay)
                return
        finally:
            self.asking = False
        if self.settled.is_set():
            return
        raise LocalError(
            "deadline-passed",
            "the deadline passed and no receipt has come",
            place=self.id.hex(),
            cure=f"the call may have run; `bnw invocation wait {self.id.hex()}` asks for its receipt",
            exit_status=ExitStatus.DEADLINE,
        )

    async def ask_once(self) -> None:
        """For a cancellation while nobody waits for the call."""
        if not self.settled.is_set():
            await self._ask_once()

    def hurry(self) -> None:
        """Ask again now."""
        self._wake.set()

    async def _pause(self, seconds: float) -> None:
        with anyio.move_on_after(seconds):
            await self._wake.wait()
        self._wake = anyio.Event()

    async def _ask_once(self) -> bool:
        """Whether the provider confirmed. Raises `RemoteError` for a final refusal; as `NotTaken` if it can be."""
        try:
            # Connected first: as long as that fails, nothing can have left this node.
            # What a mailbox has goes that way: a direct copy could only be taken for an older one.
            if self._is_mailed and await self._ask_by_mail(None):
                return True
            try:
                peer = self.peer or await self._connect()
            except RemoteError as unreachable:
                return await self._ask_by_mail(unreachable)
            await self.handle(machine.Ask())
            if self.state.phase not in {machine.SENT, machine.CONFIRMED}:
                return False
            chunks = self.input_chunks
            if chunks is None:
                chunks = tuple(await attachable(self.parts.store, trusted_object(self.record.input)))
            await self.parts.courier.deliver(peer, await self._objects(), chunks, on_copy=self._count_copy)
        except RemoteError as error:
            self.peer = None
            if error.code in NOTHING_KEPT and (self.has_others or error.code in FINAL_REFUSALS):
                await self._take_back(error)
            if error.code in FINAL_REFUSALS:
                raise
            self.on_step("waiting", {"reason": str(error)})
            return False
        self.peer = peer
        if self.state.phase == machine.SENT:
            self.on_step("delivered", {"peer": peer})
        await self.handle(machine.Confirmed())
        return True

    async def _ask_by_mail(self, unreachable: RemoteError | None) -> bool:
        """Leave the call at the provider's mailboxes; whether one has it. Raises `RemoteError`."""
        if not await self.parts.post.mailboxes_of(self.provider):
            if unreachable is None:
                return False
            raise unreachable
        await self.handle(machine.Ask())
        if self.state.phase not in {machine.SENT, machine.CONFIRMED}:
            return False
        self.first_hand = False  # several mailboxes may have it
        chunks = await attachable(self.parts.store, trusted_object(self.record.input))
        posted = await self.parts.post.deposit(self.provider, await self._objects(), chunks)
        self._is_mailed = True
        if self.state.phase == machine.SENT:
            self.on_step("mailed", {"mailboxes": ", ".join(posted.mailboxes)})
        await self.handle(machine.Confirmed())
        return True

    def _count_copy(self) -> None:
        self._copies += 1
        self.first_hand = self.first_hand and self._copies == 1

    async def _take_back(self, refusal: RemoteError) -> None:
        """Give the call up if its only copy was just refused. Raises `NotTaken` then.

        A peer that says so and keeps the copy all the same can do no more than a provider that lies in a receipt: its
        address stands in the provider's own offer.
        """
        if not (self.first_hand and self._copies == 1):
            return
        await self.handle(machine.Returned())
        if self.state.phase == machine.ABANDONED:
            raise NotTaken(
                refusal.code,
                refusal.cause,
                place=refusal.place,
                cure="nothing has run; call again, or ask another provider with --provider",
                exit_status=refusal.exit_status,
            )

    async def _connect(self) -> PeerId:
        """By the provider's present offer, which may name other addresses than the one that the call was made on."""
        offer = trusted_object(self.record.offer)
        held = await self.parts.store.held_in_slot(offer_slot(self.provider, self.record.body.capability))
        if held is not None and held.id != offer.id:
            with contextlib.suppress(RemoteError):
                return await connect(self.parts, held)
        return await connect(self.parts, offer)

    async def _objects(self) -> list[SignedObject]:
        """The invocation and all that belongs to it, our identity record first, so that the answer can be sealed."""
        record = await self.parts.catalog.identity_record(self.parts.key.identity)
        data = [*self.record.delegations, self.record.input, self.record.invocation]
        data += [] if self.record.cancellation is None else [self.record.cancellation]
        return [*([] if record is None else [record]), *(trusted_object(envelope) for envelope in data)]

    async def _step(self, event: Event) -> None:
        self.state, effects = machine.requester_step(self.state, event)
        for effect in effects:
            await self._do(effect)

    async def _do(self, effect: Effect) -> None:
        match effect:
            case machine.KeepSent():
                await self._keep(replace(self.record, state=machine.SENT))
                await self._step(machine.Kept())
            case machine.KeepAbandoned():
                now = self.parts.environment.now_ms()
                await self._keep(replace(self.record, state=machine.ABANDONED, settled=now))
                await self._step(machine.Kept())
            case machine.KeepReceipt():
                await self._keep_receipt()
                await self._step(machine.Kept())
            case machine.KeepCancel():
                if self.record.cancellation is None:
                    await self._keep(replace(self.record, cancellation=self._sign_cancellation().data))
            case machine.CompareReceipts():
                await self._compare_receipts()
            case machine.Tell():
                self.settled.set()
                self._wake.set()
            case machine.Deliver(with_cancel):
                if with_cancel:
                    self.hurry()

    async def _keep(self, record: AskedCall) -> None:
        await self.records.put(self.id, record, now=self.parts.environment.now_ms())
        self.record = record

    async def _keep_receipt(self) -> None:
        assert self._arriving is not None
        receipt, output = self._arriving
        await keep_chunks(self.parts.store, self.output_chunks.values())
        await self._keep(
            replace(
                self.record,
                state=machine.ANSWERED,
                receipt=receipt.data,
                output=None if output is None else output.data,
                settled=self.parts.environment.now_ms(),
            )
        )

    def _sign_cancellation(self) -> SignedObject:
        now = self.parts.environment.now_ms()
        body = Cancellation(
            created=now,
            expires=max(now + 1, self.record.body.expires),
            invocation=self.id,
            reason=None,
            recipient=self.provider,
        )
        return sign_object(body, self.parts.key)

    async def _compare_receipts(self) -> None:
        assert self._arriving is not None and self.record.receipt is not None
        second = self._arriving[0]
        if self.record.second_receipt is None and contradict(trusted_object(self.record.receipt), second):
            logger.warning("provider %s signed two receipts for call %s", did_key(second.signer), self.id.hex())
            await self._keep(replace(self.record, second_receipt=second.data))


def contradict(first: SignedObject, second: SignedObject) -> bool:
    """Whether two receipts of one call prove that the provider lied.

    `interrupted` says no more than that it does not know, as an honest provider does whose store was restored.
    """
    assert isinstance(first.body, Receipt) and isinstance(second.body, Receipt)
    definite = STATUS_INTERRUPTED not in {first.body.status, second.body.status}
    return first.id != second.id and first.body.invocation == second.body.invocation and definite


async def connect(parts: CallParts, offer: SignedObject) -> PeerId:
    """Connect to a provider by its offer. Raises `RemoteError` (`unreachable`)."""
    assert isinstance(offer.body, ProviderOffer)
    problems: list[str] = []
    for endpoint in offer.body.endpoints:
        try:
            return await parts.transport.dial(endpoint, timeout=DIAL_TIMEOUT)
        except BnwError as error:
            problems.append(f"{endpoint}: {error.cause}")
    raise RemoteError("unreachable", "; ".join(problems) or "its offer names no endpoint")
