"""The provider's side: refuse cheaply or accept durably, let calls wait their turn, run them, answer with a receipt.

What may happen in which order is decided by `bnw.invoke.machines.provider`; `bnw.invoke.serving` has one call. Here is
what calls share: who may enter, how many run, where requesters were last seen.
"""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import anyio
from anyio.abc import TaskGroup

from bnw.identity.keys import IdentityId
from bnw.invoke.answer import Verdict, standard
from bnw.invoke.attached import attachable
from bnw.invoke.gate import Bounds, Gate, shows_that_it_is_new
from bnw.invoke.handler import Report
from bnw.invoke.journal import CallEntry, CallJournal
from bnw.invoke.machines import provider as machine
from bnw.invoke.machines.endings import NOT_KNOWN_TO_BE_NEW
from bnw.invoke.machines.table import Event
from bnw.invoke.outbox import RETRY_PERIOD, Outbox
from bnw.invoke.parts import CallParts
from bnw.invoke.progress import ProgressReporter
from bnw.invoke.provision import Provision
from bnw.invoke.running import serve
from bnw.invoke.serving import CallReport, OnCall, ServedCall, Surroundings
from bnw.objects.calls import Cancellation, Invocation, InvocationUpdate, Receipt
from bnw.objects.signed import SignedObject
from bnw.transport.interface import PeerId
from bnw.wire.content_id import ContentId
from bnw.wire.errors import LocalError, RemoteError

logger = logging.getLogger(__name__)

__all__ = ["CallReport", "Delivered", "OnCall", "Provider", "Provision"]

MAX_ROUTES = 4096
"""Requesters of whom it is remembered where their calls came from."""
PEERS_PER_ROUTE = 3
"""The latest of those peers. Receipts go to all of them, for the last may be somebody who repeats what they saw."""


@dataclass(frozen=True, slots=True)
class Delivered:
    """An invocation as it came: with what belongs to it, and from whom.

    `witnessed` says that whoever held it until now has promised not to hand it over again, as a mailbox does that has
    confirmed our acknowledgement. Only then can a call from before this start be known not to have run.
    """

    invocation: SignedObject
    peer: PeerId
    companions: tuple[SignedObject, ...] = ()
    """The manifest of its input, delegations, and the requester's identity record."""
    chunks: Mapping[ContentId, bytes] = field(default_factory=dict, repr=False)
    """Chunks of the input that came along."""
    cancelled: bool = False
    witnessed: bool = False


class Provider:
    """Answers calls to one identity; `run` ends only when cancelled, and must have begun before calls are accepted."""

    def __init__(self, parts: CallParts, *, on_call: OnCall, bounds: Bounds | None = None) -> None:
        self._parts = parts
        self._on_call = on_call
        self._journal = CallJournal(parts.store)
        self._outbox = Outbox(parts.store)
        self._provisions: dict[ContentId, Provision] = {}
        self._routes: OrderedDict[IdentityId, tuple[PeerId, ...]] = OrderedDict()
        self._bounds = bounds or Bounds()
        self._gate = Gate(self._bounds)
        self._live: dict[ContentId, ServedCall] = {}
        self._reports: dict[ContentId, Report] = {}
        self._parked: dict[ContentId, list[ServedCall]] = {}
        """Idempotent calls of an earlier run whose capability is not provided yet in this one."""
        self._slots = anyio.Semaphore(self._bounds.running)
        self._started = parts.environment.now_ms()
        self._around: Surroundings | None = None
        self._ready = anyio.Event()
        self._opening = anyio.Lock()
        self.may_come_by_mail: Callable[[ContentId], bool] = lambda invocation: False
        """Whether a call that is older than this start may still be collected from a mailbox, which witnesses it."""

    def provide(self, provision: Provision) -> None:
        self._provisions[provision.manifest.id] = provision
        for call in self._parked.pop(provision.manifest.id, ()):
            call.provision = provision
            if self._around is not None:
                self._around.background.start_soon(self._take_turn, call)

    def stop_providing(self, capability: ContentId) -> None:
        self._provisions.pop(capability, None)

    @property
    def provisions(self) -> Mapping[ContentId, Provision]:
        return self._provisions

    async def run(self) -> None:
        async with anyio.create_task_group() as group:
            unfinished = await self._journal.load()
            self._around = self._surroundings(group)
            self._ready.set()
            for id, entry in unfinished:
                await self._recover(id, entry)
            await self._retry_outbox()

    async def accept(self, delivered: Delivered) -> None:
        """Take in an invocation for this identity; when this returns, it is durable, or refused with a receipt.

        A repeat is answered with the stored receipt. Raises `LocalError`: `busy` when there is no room even to remember
        that it was refused, or those of the store.
        """
        await self._ready.wait()
        invocation = delivered.invocation
        self._remember_route(invocation.signer, delivered.peer)
        # One at a time, or two copies that arrive together would both find that the call is not known.
        async with self._opening:
            call = self._live.get(invocation.id)
            if call is None:
                call = await self._open(delivered)
                arrival, verdict = self._judge(call, delivered)
            else:
                arrival, verdict = machine.Arrived(), None
        await call.handle(arrival, verdict)
        if call.broken:
            raise LocalError("store-failed", "the call could not be kept", place=invocation.id.hex())
        if delivered.cancelled:
            await call.handle(machine.CancelArrived())

    async def cancel(self, cancellation: SignedObject) -> bool:
        """Act on a cancellation by the requester of the call; whether the call is known."""
        assert isinstance(cancellation.body, Cancellation)
        await self._ready.wait()
        id = cancellation.body.invocation
        call = self._live.get(id)
        if call is not None:
            if call.invocation.signer == cancellation.signer:
                await call.handle(machine.CancelArrived())
            return True
        entry = await self._journal.get(id)
        if entry is None or entry.requester != cancellation.signer:
            return False
        self._send_receipt_of(entry)
        return True

    def report_progress(self, id: ContentId, stage: str, fraction: float | None, note: str | None) -> None:
        """For a service that reports over the local API. Raises `LocalError` (`unknown-call`), `InvalidError`."""
        report = self._reports.get(id)
        if report is None:
            raise LocalError("unknown-call", "no such call runs now", place=id.hex())
        report(stage, fraction, note)

    async def remove_expired(self, now: int) -> None:
        await self._journal.remove_expired(now)

    def _surroundings(self, group: TaskGroup) -> Surroundings:
        def enqueue(call: ServedCall) -> None:
            group.start_soon(self._watch, call)
            if call.provision is None and call.entry.idempotent:
                self._parked.setdefault(call.body.capability, []).append(call)
            else:
                group.start_soon(self._take_turn, call)

        return Surroundings(
            parts=self._parts,
            journal=self._journal,
            on_call=self._on_call,
            background=group,
            enqueue=enqueue,
            send_receipt=lambda receipt: group.start_soon(self._push_receipt, receipt),
            ended=self._forget,
        )

    async def _open(self, delivered: Delivered) -> ServedCall:
        """The call as the journal knows it, now live if it is not finished."""
        assert self._around is not None
        invocation, now = delivered.invocation, self._parts.environment.now_ms()
        body = invocation.body
        assert isinstance(body, Invocation)
        provision = self._provisions.get(body.capability)
        entry = await self._journal.get(invocation.id)
        known = entry is not None
        if entry is None:
            entry = CallEntry(
                capability=body.capability,
                expires=body.expires,
                idempotent=provision is not None and provision.idempotent,
                receipt=None,
                received=now,
                refused=False,
                requester=invocation.signer,
                runs=0,
                started=None,
                state=machine.ACCEPTED,
            )
        state = machine.ProviderCall(entry.state if known else machine.UNKNOWN, None, entry.runs)
        call = ServedCall(
            self._around,
            invocation,
            provision,
            entry,
            state=state,
            objects=(*delivered.companions, invocation),
            chunks=delivered.chunks,
        )
        if state.phase != machine.FINISHED:
            self._live[invocation.id] = call
        return call

    def _judge(self, call: ServedCall, delivered: Delivered) -> tuple[Event, Verdict | None]:
        """What the arrival of a call that is not live means. Raises `LocalError` (`busy`), and forgets the call."""
        idempotent = call.entry.idempotent
        if call.state.phase in {machine.ACCEPTED, machine.RUNNING}:
            # The disk failed under it earlier in this run, so it is treated as after a crash.
            self._enter(call)
            return machine.Recovered(idempotent), None
        if call.state.phase == machine.FINISHED:
            return machine.Arrived(), None
        is_new = delivered.witnessed or shows_that_it_is_new(call.invocation, started=self._started)
        policy = None if call.provision is None else call.provision.policy()
        verdict = self._gate.refuse(
            call.invocation, policy, now_ms=self._parts.environment.now_ms(), now=anyio.current_time()
        )
        if not is_new and not idempotent:
            if self.may_come_by_mail(call.id):
                del self._live[call.id]
                raise LocalError("busy", "a mailbox may hold the call, and what it holds is collected first")
            verdict = standard(NOT_KNOWN_TO_BE_NEW)
        if verdict is not None and not self._journal.has_room_for_refusal(call.invocation.signer):
            del self._live[call.id]
            raise LocalError("busy", "as many calls were refused lately as can be remembered")
        self._enter(call)
        return machine.Arrived(None if verdict is None else verdict.ending, is_new, idempotent), verdict

    def _enter(self, call: ServedCall) -> None:
        self._gate.enter(call.invocation.signer)

    async def _recover(self, id: ContentId, entry: CallEntry) -> None:
        """Go on with a call that a stop of the node left unfinished."""
        assert self._around is not None
        if id in self._live:
            return
        invocation = await self._parts.store.get_object(id)
        if invocation is None or not isinstance(invocation.body, Invocation):
            logger.warning("call %s has expired before it was finished", id.hex())
            return
        provision = self._provisions.get(invocation.body.capability)
        state = machine.ProviderCall(entry.state, None, entry.runs)
        call = ServedCall(self._around, invocation, provision, entry, state=state)
        self._live[id] = call
        self._enter(call)
        try:
            await call.handle(machine.Recovered(entry.idempotent))
        except LocalError as error:
            logger.error("call %s: %s", id.hex(), error)

    def _forget(self, call: ServedCall) -> None:
        if self._live.pop(call.id, None) is not None:
            self._gate.leave(call.invocation.signer)
        self._reports.pop(call.id, None)

    async def _take_turn(self, call: ServedCall) -> None:
        assert self._around is not None
        progress = ProgressReporter(self._parts.key, self._parts.environment, self._send_update, self._reports)
        with call.turn_scope:
            async with self._slots:
                if call.state.phase != machine.ACCEPTED:
                    return
                peers = self._routes.get(call.invocation.signer, ())
                try:
                    await serve(call, self._parts, peers, progress)
                except LocalError as error:
                    # The journal still says how far the call came; the next arrival or start goes on from there.
                    logger.error("call %s: %s", call.id.hex(), error)
                    call.give_up()
                except Exception:
                    # A fault of ours, or of a plug-in, must not take the node and everybody else's calls with it.
                    logger.exception("call %s is left as it is", call.id.hex())
                    call.give_up()

    async def _watch(self, call: ServedCall) -> None:
        try:
            with call.watch_scope:
                await call.watch_time()
        except LocalError as error:
            logger.error("call %s: %s", call.id.hex(), error)

    def _remember_route(self, requester: IdentityId, peer: PeerId) -> None:
        known = self._routes.pop(requester, ())
        self._routes[requester] = (peer, *(other for other in known if other != peer))[:PEERS_PER_ROUTE]
        if len(self._routes) > MAX_ROUTES:
            self._routes.popitem(last=False)

    def _send_receipt_of(self, entry: CallEntry) -> None:
        receipt = entry.signed_receipt
        if receipt is not None and self._around is not None:
            self._around.send_receipt(receipt)

    def _send_update(self, update: SignedObject) -> None:
        assert isinstance(update.body, InvocationUpdate) and self._around is not None
        self._around.background.start_soon(self._push, update.body.recipient, [update])

    async def _push_receipt(self, receipt: SignedObject) -> None:
        """Send a receipt to where the call came from; the requester asks again if that fails."""
        assert isinstance(receipt.body, Receipt)
        objects, blobs = [receipt], []
        try:
            if receipt.body.output is not None:
                output = await self._parts.store.get_object(receipt.body.output)
                if output is not None:
                    objects, blobs = [output, receipt], await attachable(self._parts.store, output)
        except LocalError as error:
            logger.error("the output of %s cannot be read: %s", receipt.id.hex(), error)
            return
        try:
            if await self._push(receipt.body.recipient, objects, blobs) or await self._mail(receipt, objects, blobs):
                await self._outbox.remove(receipt)
            else:
                await self._outbox.add(receipt)
        except LocalError as error:
            logger.error("receipt %s: %s", receipt.id.hex(), error)

    async def _push(self, requester: IdentityId, objects: Sequence[SignedObject], blobs: Sequence[bytes] = ()) -> bool:
        """Send it to where the requester was; whether it has arrived."""
        arrived = False
        for peer in self._routes.get(requester, ()):
            try:
                await self._parts.courier.deliver(peer, objects, blobs)
                arrived = True
            except RemoteError as error:
                logger.info("%s not delivered yet: %s", objects[-1].id.hex(), error)
        return arrived

    async def _mail(self, receipt: SignedObject, objects: Sequence[SignedObject], blobs: Sequence[bytes]) -> bool:
        """Leave a receipt at the requester's mailboxes; whether one has it."""
        assert isinstance(receipt.body, Receipt)
        own = await self._parts.catalog.identity_record(self._parts.key.identity)
        try:
            await self._parts.post.deposit(receipt.body.recipient, [*([] if own is None else [own]), *objects], blobs)
        except RemoteError as error:
            logger.info("%s not mailed yet: %s", receipt.id.hex(), error)
            return False
        return True

    async def _retry_outbox(self) -> None:
        while True:
            try:
                for receipt in await self._outbox.waiting(now=self._parts.environment.now_ms()):
                    await self._push_receipt(receipt)
            except LocalError as error:
                logger.error("receipts are not tried again now: %s", error)
            await anyio.sleep(RETRY_PERIOD)
