"""One call at its provider: the machine's state in memory, and its effects on disk, handler and network."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import anyio
from anyio.abc import TaskGroup

from bnw.identity.keys import IdentityId
from bnw.invoke.answer import Verdict, sign_answer, standard
from bnw.invoke.attached import keep_chunks
from bnw.invoke.carrying import participants
from bnw.invoke.journal import CallEntry, CallJournal
from bnw.invoke.machines import provider as machine
from bnw.invoke.machines.endings import EXPIRED, INACTIVE, Ending
from bnw.invoke.machines.table import Effect, Event
from bnw.invoke.parts import CallParts
from bnw.invoke.provision import Provision
from bnw.objects.calls import Invocation, Receipt
from bnw.objects.signed import SignedObject
from bnw.wire.content_id import ContentId

logger = logging.getLogger(__name__)

LONGEST_SLEEP = 30.0
"""Seconds; the clock may be set while a call waits for a time."""


@dataclass(frozen=True, slots=True)
class CallReport:
    """Told to observers when a call comes to its end."""

    invocation: ContentId
    requester: IdentityId
    capability: ContentId
    status: str
    code: str | None


OnCall = Callable[[CallReport], None]
NO_CHUNKS: Mapping[ContentId, bytes] = {}


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What the calls of one provider share."""

    parts: CallParts
    journal: CallJournal
    on_call: OnCall
    background: TaskGroup
    enqueue: Callable[[ServedCall], None]
    """Let the call wait for its turn."""
    send_receipt: Callable[[SignedObject], object]
    """Send it in the background, to wherever the requester was last."""
    ended: Callable[[ServedCall], None]


class ServedCall:
    """Events go in through `handle`, one at a time; a disk failure leaves as `LocalError`, and then `broken` is set."""

    def __init__(
        self,
        around: Surroundings,
        invocation: SignedObject,
        provision: Provision | None,
        entry: CallEntry,
        *,
        state: machine.ProviderCall,
        objects: tuple[SignedObject, ...] = (),
        chunks: Mapping[ContentId, bytes] = NO_CHUNKS,
    ) -> None:
        """`objects` are kept together with the call when it is accepted, and if it may run again, `chunks` as well."""
        assert isinstance(invocation.body, Invocation)
        self.invocation = invocation
        self.body = invocation.body
        self.provision = provision
        self.entry = entry
        self.state = state
        self.verdict: Verdict | None = None
        """What a check or the handler said, if its ending is the one that counts."""
        self.broken = False
        self.last_sign_of_life = around.parts.environment.now_ms()
        self.handler_scope: anyio.CancelScope | None = None
        self.turn_scope = anyio.CancelScope()
        self.watch_scope = anyio.CancelScope()
        self._around = around
        self._objects = objects
        self.chunks = chunks
        self.large_input: SignedObject | None = None
        """The manifest of an input whose chunks were brought into the store, where nobody needs them after the call."""
        self._lock = anyio.Lock()
        self._began = anyio.Event()

    @property
    def id(self) -> ContentId:
        return self.invocation.id

    @property
    def background(self) -> TaskGroup:
        return self._around.background

    @property
    def is_over(self) -> bool:
        return self.broken or self.state.phase == machine.FINISHED

    async def handle(self, event: Event, verdict: Verdict | None = None) -> None:
        """Let the machine take a step. Not interrupted by a cancellation: what was decided is done."""
        with anyio.CancelScope(shield=True):
            async with self._lock:
                if self.broken:
                    return
                try:
                    await self._step(event, verdict)
                except BaseException:
                    self.give_up()
                    raise

    def give_up(self) -> None:
        """Leave the call as the journal has it."""
        self.broken = True
        self._end()

    def _end(self) -> None:
        self.turn_scope.cancel()
        self.watch_scope.cancel()
        self._around.ended(self)

    async def _step(self, event: Event, verdict: Verdict | None) -> None:
        self.state, effects = machine.provider_step(self.state, event)
        if verdict is not None and self.state.ending == verdict.ending:
            self.verdict = verdict
        for effect in effects:
            await self._do(effect)

    async def _do(self, effect: Effect) -> None:
        match effect:
            case machine.KeepAccepted():
                if self.entry.idempotent:
                    await keep_chunks(self._around.parts.store, self.chunks.values())
                await self._keep(replace(self.entry, state=machine.ACCEPTED), self._objects)
                self._objects = ()
                await self._step(machine.Kept(), None)
            case machine.KeepRunning(runs):
                now = self._around.parts.environment.now_ms()
                started = max(now, self.entry.received)
                await self._keep(replace(self.entry, state=machine.RUNNING, runs=runs, started=started))
                self.last_sign_of_life = now
                self._began.set()
                await self._step(machine.Kept(), None)
            case machine.KeepReceipt(ending, known):
                await self._conclude(ending, known=known)
                await self._step(machine.Kept(), None)
            case machine.Check():
                self._around.enqueue(self)
            case machine.StopHandler():
                if self.handler_scope is not None:
                    self.handler_scope.cancel()
            case machine.SendReceipt():
                self._send()
            case machine.Confirm() | machine.RunHandler():
                pass  # whoever handed the event in goes by the phase

    async def _keep(self, entry: CallEntry, objects: tuple[SignedObject, ...] = ()) -> None:
        await self._around.journal.put(self.id, entry, objects, now=self._around.parts.environment.now_ms())
        self.entry = entry

    async def _conclude(self, ending: Ending, *, known: bool) -> None:
        """Sign the receipt and make the answer durable: chunks first, then receipt and last state in one step."""
        parts = self._around.parts
        verdict = self.verdict if self.verdict is not None and self.verdict.ending == ending else standard(ending)
        answer = sign_answer(
            verdict,
            invocation=self.id,
            requester=self.invocation.signer,
            received=self.entry.received,
            started=self.entry.started,
            recipients=None if verdict.payload is None else await participants(parts, self.invocation.signer),
            limits=None if self.provision is None else self.provision.limits,
            key=parts.key,
            environment=parts.environment,
        )
        objects: tuple[SignedObject, ...] = (answer.receipt,)
        if answer.payload is not None:
            await keep_chunks(parts.store, answer.payload.chunks)
            objects = (answer.payload.manifest, answer.receipt)
        entry = replace(self.entry, state=machine.FINISHED, receipt=answer.receipt.data, refused=not known)
        await self._keep(entry, objects if known else ())
        body = answer.receipt.body
        assert isinstance(body, Receipt)
        code = None if body.fault is None else body.fault.code
        self._end()
        self._around.on_call(CallReport(self.id, self.invocation.signer, self.body.capability, body.status, code))

    def _send(self) -> None:
        receipt = self.entry.signed_receipt
        assert receipt is not None
        self._around.send_receipt(receipt)

    async def watch_time(self) -> None:
        """End the call when a deadline has passed: the requester's, or the longest that it lets the handler be silent.

        The provider's own clock decides. It may differ from the requester's by the accepted skew.
        """
        while not self.is_over:
            now = self._around.parts.environment.now_ms()
            until, ending = self._limit(), EXPIRED
            if self.body.inactivity is not None and self.state.phase == machine.RUNNING:
                silent_until = self.last_sign_of_life + self.body.inactivity
                until, ending = min((until, EXPIRED), (silent_until, INACTIVE), key=lambda pair: pair[0])
            if now >= until:
                await self.handle(machine.TimeUp(ending))
                return
            with anyio.move_on_after(min((until - now) / 1000, LONGEST_SLEEP)):
                if self._began.is_set():
                    await anyio.sleep_forever()
                # A run that begins may bring an earlier limit.
                await self._began.wait()

    def _limit(self) -> int:
        policy = None if self.provision is None else self.provision.policy()
        if policy is None or policy.max_run_time is None or self.entry.started is None:
            return self.body.deadline
        return min(self.body.deadline, self.entry.started + policy.max_run_time)
