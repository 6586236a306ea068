"""The requester's side: choose a provider, seal, sign, keep, deliver, wait, verify.

Until an invocation has left this node, another provider may be tried, and so it may if the only copy was refused.
Otherwise only this one may answer, and the requester asks again until it has the receipt or the deadline has passed;
asking again never runs the call twice. What happens in which order is decided by `bnw.invoke.machines.requester`;
`bnw.invoke.asking` has one call.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass

import anyio

from bnw.identity.keys import IdentityId, did_key
from bnw.inbox.delivery import REFUSED_NOT_HERE
from bnw.inbox.payload import CarriedPayload, Payload, PayloadFile, StoredPayload
from bnw.invoke.answer import retry_hint
from bnw.invoke.asked import AskedCall, AskedCalls
from bnw.invoke.asking import NotTaken, OnStep, OpenCall, byte_steps, connect, no_step
from bnw.invoke.attached import keep_chunks
from bnw.invoke.authority.question import holds_invoke_right
from bnw.invoke.carrying import carry, let_go, participants
from bnw.invoke.checks import (
    check_participants,
    check_plain_size_and_type,
    check_privacy,
    check_receipt,
)
from bnw.invoke.choice import Experience
from bnw.invoke.descriptors import PRIVACY_PUBLIC
from bnw.invoke.machines import requester as machine
from bnw.invoke.parts import CallParts
from bnw.invoke.results import CallResult, OutputOpener, Target, problem_in
from bnw.objects.calls import STATUS_COMPLETED, Invocation, InvocationUpdate, Receipt
from bnw.objects.signed import SignedObject, sign_object, trusted_object
from bnw.transport.interface import PeerId
from bnw.wire.content_id import ContentId
from bnw.wire.errors import BnwError, ExitStatus, InvalidError, LocalError, RemoteError
from bnw.wire.limits import MAX_PAYLOAD_IN_MEMORY, MINUTE

logger = logging.getLogger(__name__)

__all__ = ["DEFAULT_DEADLINE", "CallResult", "NotTaken", "OnStep", "ReachedProvider", "Requester", "Target"]

DEFAULT_DEADLINE = 2 * MINUTE
LATE_REPEATS = 10 * MINUTE
"""How long an invocation outlives its deadline, so that a late repeat is told of the deadline."""
MAX_PROVIDERS_TRIED = 64
"""By one call. Most of those who refuse do so at once, and whoever invents identities invents many."""
KNOCK_TIMEOUT = 8.0
"""Seconds in which a node must say whether the provider is there."""


@dataclass(frozen=True, slots=True)
class ReachedProvider:
    """A provider that is connected, by its offer; or one that only its mailboxes can be reached of, without a peer."""

    offer: SignedObject
    peer: PeerId | None


LoadTarget = Callable[[SignedObject], Awaitable[Target]]


class Requester:
    """Makes calls in the name of one identity."""

    def __init__(self, parts: CallParts) -> None:
        self._parts = parts
        self._open: dict[ContentId, OpenCall] = {}
        self.records = AskedCalls(parts.store)
        self.experience = Experience()
        self.outputs = OutputOpener(parts)

    # What arrives

    async def take_receipt(
        self, receipt: SignedObject, output: SignedObject | None, chunks: Sequence[bytes] = ()
    ) -> bool:
        """Keep a delivered receipt if it is of one of our calls, with what came along of its output; whether it is."""
        assert isinstance(receipt.body, Receipt)
        async with self._opened(receipt.body.invocation) as call:
            if call is None:
                return False
            try:
                await call.take_receipt(receipt, output, chunks)
            except InvalidError as error:
                logger.warning("receipt not taken: %s", error)
                return False
            return True

    async def take_update(self, update: SignedObject) -> bool:
        assert isinstance(update.body, InvocationUpdate)
        async with self._opened(update.body.invocation) as call:
            if call is None:
                return False
            await call.take_update(update)
            return True

    # Calling

    async def call(
        self,
        target: Target,
        payload: Payload | PayloadFile,
        reached: ReachedProvider,
        *,
        public: bool = False,
        deadline_in: int = DEFAULT_DEADLINE,
        inactivity: int | None = None,
        has_others: bool = False,
        max_output: int = MAX_PAYLOAD_IN_MEMORY,
        on_step: OnStep = no_step,
    ) -> CallResult:
        """Call a capability and return its verified end, whatever that is.

        `deadline_in` and `inactivity`, the longest silence of the provider's handler, are in milliseconds. If this is
        cancelled, the call goes on: `wait` takes it up. `max_output` is how many bytes of output to take if the
        descriptor does not say. Raises `LocalError`: `no-inbox-key`, `profile-unavailable` or
        `deadline-passed`; `InvalidError` with the code of what is wrong with the payload; `NotTaken` if the provider
        refused the only copy, with `has_others` also for being busy; `RemoteError` with the code of the answer.
        """
        limits = None if target.limits is None else target.limits.input
        check_plain_size_and_type(payload.size, payload.media_type, limits)
        public = public or (limits is not None and limits.privacy == PRIVACY_PUBLIC)
        provider = reached.offer.signer
        carried = await self._carry(payload, provider, public=public, on_step=on_step)
        if limits is not None:
            participants = check_participants(carried.manifest, sender=self._parts.key.identity, other=provider)
            check_privacy(participants, limits)
        chain = await self._chain(target.manifest, provider, payload.size)
        created = self._parts.environment.now_ms()
        for is_last in (False, True):
            call = await self._sign(target, reached, carried, chain, created, deadline_in, inactivity)
            call.has_others, call.max_output = has_others, max_output
            on_step("signed", {"invocation": call.id.hex(), "provider": did_key(provider)})
            try:
                result = await self._finish(call, target, reached.peer, on_step)
            except BnwError:
                if call.settled.is_set():
                    await let_go(self._parts, carried.manifest)
                raise
            finally:
                self._release(call)
            if is_last or result.code != "not-known-to-be-new" or not call.first_hand:
                await let_go(self._parts, carried.manifest)
                return result
            # The only copy there ever was has just been refused, so it has not run. Our clock is behind that of the
            # provider, which has started lately: a call with its own time shows that it is new.
            body = result.receipt.body
            assert isinstance(body, Receipt)
            created = max(self._parts.environment.now_ms(), body.received) + 1
        raise AssertionError("the second round returns")

    async def wait(
        self,
        id: ContentId,
        load: LoadTarget,
        *,
        max_output: int = MAX_PAYLOAD_IN_MEMORY,
        on_step: OnStep = no_step,
    ) -> CallResult:
        """Take up a call of this node again, whoever began it, and return its verified end. `max_output` as in `call`.

        Raises as `call` does, and `LocalError`: `unknown-call`, or `abandoned` for one that never left this node.
        """
        async with self._opened(id) as call:
            if call is None:
                raise unknown_call(id)
            target = await load(trusted_object(call.record.manifest))
            call.max_output = max_output
            result = await self._finish(call, target, None, on_step)
            await let_go(self._parts, trusted_object(call.record.input))
            return result

    async def cancel(self, id: ContentId) -> str:
        """Ask for a call to be stopped; returns in which phase it is. The receipt says what came of it.

        Raises `LocalError` (`unknown-call`).
        """
        async with self._opened(id) as call:
            if call is None:
                raise unknown_call(id)
            await call.handle(machine.CancelAsked())
            if not call.asking and not call.settled.is_set():
                try:
                    await call.ask_once()
                except RemoteError as error:
                    logger.info("the cancellation of %s was not delivered: %s", id.hex(), error)
            return call.state.phase

    async def give_up(self, id: ContentId) -> bool:
        """Give a call up if nothing of it has left this node; whether that could be done."""
        async with self._opened(id) as call:
            if call is None:
                return False
            await call.handle(machine.GiveUp())
            return call.state.phase == machine.ABANDONED

    # Choosing a provider

    async def candidates(self, manifest: SignedObject, wanted: IdentityId | None = None) -> list[SignedObject]:
        """Offers by others, the one to try first first; only by `wanted` if that is given.

        Raises `LocalError` (`no-offer`, `own-capability`).
        """
        known = await self._parts.catalog.offers(manifest)
        me = self._parts.key.identity
        offers = [offer for offer in known if wanted in {None, offer.signer} and offer.signer != me]
        if known and not offers and wanted in {None, me}:
            raise LocalError(
                "own-capability",
                "only this identity itself offers the capability, and a call has two sides",
                place=manifest.id.hex(),
                cure="call it from another node, made with `bnw init --home OTHER --peer ADDRESS`",
            )
        if not offers:
            raise LocalError(
                "no-offer",
                "nobody offers this capability now",
                place=manifest.id.hex(),
                cure="wait for a provider to come back, or ask the publisher",
                exit_status=ExitStatus.UNREACHABLE,
            )
        connected = [info.peer for info in self._parts.transport.peers()]
        now = anyio.current_time()
        return self.experience.order(offers, connected=connected, environment=self._parts.environment, now=now)[
            :MAX_PROVIDERS_TRIED
        ]

    async def reach(self, offer: SignedObject, on_step: OnStep = no_step) -> ReachedProvider:
        """Connect to the provider of an offer. Raises `RemoteError`: `unreachable`, or `not-there` if nobody at its
        endpoints knows of it.
        """
        peer = await connect(self._parts, offer)
        if not self.experience.has_answered(offer.signer):
            # Once a copy of an invocation is out, no other provider may be asked before its deadline, and an offer may
            # name any node's endpoints. So this is asked first.
            await self._knock(peer, offer.signer)
        on_step("connected", {"provider": did_key(offer.signer), "peer": peer})
        return ReachedProvider(offer, peer)

    async def _knock(self, peer: PeerId, provider: IdentityId) -> None:
        try:
            with anyio.fail_after(KNOCK_TIMEOUT):
                await self._parts.courier.knock(peer, provider)
        except TimeoutError:
            raise RemoteError(
                "unreachable", f"{peer} does not say whether it is there", place=did_key(provider)
            ) from None
        except RemoteError as error:
            if error.code != f"refused-{REFUSED_NOT_HERE}":
                raise
            raise RemoteError("not-there", f"{peer} knows nothing of it", place=did_key(provider)) from error

    async def has_mailbox(self, provider: IdentityId) -> bool:
        """Whether a provider that cannot be reached can be written to."""
        return bool(await self._parts.post.mailboxes_of(provider))

    async def reach_provider(
        self, manifest: SignedObject, wanted: IdentityId | None = None, on_step: OnStep = no_step
    ) -> ReachedProvider:
        """Connect to the first provider that can be. Raises as `candidates` does, and `RemoteError` (`unreachable`)."""
        tried: list[str] = []
        for offer in await self.candidates(manifest, wanted):
            try:
                return await self.reach(offer, on_step)
            except RemoteError as error:
                self.experience.failed(offer.signer)
                tried.append(f"{did_key(offer.signer)}: {error.cause}")
        raise unreachable(manifest, tried)

    # Inner workings

    @asynccontextmanager
    async def _opened(self, id: ContentId) -> AsyncIterator[OpenCall | None]:
        """The call `id` with its one machine, as long as the body runs; None if it is not ours."""
        call = self._open.get(id)
        if call is None:
            record = await self.records.get(id)
            # Somebody else may have opened it while the record was read.
            call = self._open.get(id)
            if call is None and record is not None:
                call = self._open[id] = OpenCall(self._parts, self.records, id, record)
        if call is None:
            yield None
            return
        call.users += 1
        try:
            yield call
        finally:
            self._release(call)

    def _release(self, call: OpenCall) -> None:
        call.users -= 1
        if call.users == 0:
            self._open.pop(call.id, None)

    async def _sign(
        self,
        target: Target,
        reached: ReachedProvider,
        carried: CarriedPayload,
        chain: tuple[SignedObject, ...],
        created: int,
        deadline_in: int,
        inactivity: int | None,
    ) -> OpenCall:
        """Sign an invocation and keep it with all that belongs to it. The caller releases the call."""
        body = Invocation(
            created=created,
            expires=created + deadline_in + LATE_REPEATS,
            capability=target.manifest.id,
            deadline=created + deadline_in,
            delegations=tuple(link.id for link in chain),
            inactivity=inactivity,
            input=carried.manifest.id,
            provider=reached.offer.signer,
        )
        invocation = sign_object(body, self._parts.key)
        record = AskedCall(
            cancellation=None,
            delegations=tuple(link.data for link in chain),
            input=carried.manifest.data,
            invocation=invocation.data,
            manifest=target.manifest.data,
            offer=reached.offer.data,
            output=None,
            receipt=None,
            second_receipt=None,
            settled=None,
            state=machine.SIGNED,
            updates=(),
        )
        await keep_chunks(self._parts.store, carried.chunks)
        objects = [carried.manifest, invocation]
        await self.records.put(invocation.id, record, objects, now=self._parts.environment.now_ms())
        call = OpenCall(self._parts, self.records, invocation.id, record, first_hand=True, peer=reached.peer)
        call.input_chunks = carried.chunks or None
        call.users = 1
        self._open[call.id] = call
        return call

    async def _finish(self, call: OpenCall, target: Target, peer: PeerId | None, on_step: OnStep) -> CallResult:
        call.on_step = on_step
        await call.ask_until_settled()
        receipt = call.record.signed_receipt
        if receipt is None:
            raise LocalError(
                "abandoned",
                "the call was given up before it left this node",
                place=call.id.hex(),
                cure="call again",
            )
        return await self._verify(call, receipt, target, peer or call.peer, on_step)

    async def _chain(self, manifest: SignedObject, provider: IdentityId, size: int) -> tuple[SignedObject, ...]:
        """The delegations that give us the right to call, if we hold any."""
        question = holds_invoke_right(manifest, requester=self._parts.key.identity, provider=provider, input_bytes=size)
        found = await self._parts.book.find(question)
        return found.chain if found.verdict.allowed else ()

    async def _carry(
        self, payload: Payload | PayloadFile, provider: IdentityId, *, public: bool, on_step: OnStep
    ) -> CarriedPayload:
        recipients = await participants(self._parts, provider)
        if recipients is None and not public:
            raise LocalError(
                "no-inbox-key",
                "the provider's inbox key is not known here",
                place=did_key(provider),
                cure="its identity record may still be on its way; try again in a moment",
                exit_status=ExitStatus.UNREACHABLE,
            )
        # Nobody's key is used for a public payload.
        everyone = recipients or {self._parts.key.identity: b"", provider: b""}
        return await carry(self._parts, payload, everyone, public=public, on_sealed=byte_steps(on_step, "sealing"))

    async def _verify(
        self, call: OpenCall, receipt: SignedObject, target: Target, peer: PeerId | None, on_step: OnStep
    ) -> CallResult:
        """Fetch and open what the receipt names, and hold it to the descriptor."""
        invocation = call.record.signed_invocation
        body = check_receipt(receipt, invocation)
        on_step("answered", {"receipt": receipt.id.hex(), "status": body.status})
        hint = retry_hint(body)
        payload: Payload | StoredPayload | None = None
        if body.output is not None:
            try:
                payload = await self.outputs.open(
                    body.output,
                    call.record.output,
                    target,
                    receipt,
                    peer,
                    call.output_chunks,
                    call.max_output,
                    byte_steps(on_step, "fetching"),
                )
            except RemoteError:
                self.experience.failed(receipt.signer)
                raise
        if hint is not None:
            self.experience.busy(receipt.signer, until=anyio.current_time() + hint / 1000)
        if body.status == STATUS_COMPLETED:
            self.experience.answered(receipt.signer)
            return CallResult(invocation, receipt, body.status, payload)
        assert body.fault is not None
        problem = problem_in(payload) or {"title": body.fault.message}
        return CallResult(invocation, receipt, body.status, None, body.fault.code, problem, hint)


def unknown_call(id: ContentId) -> LocalError:
    return LocalError(
        "unknown-call",
        "this node has made no such call, or has forgotten it",
        place=id.hex(),
        cure="`bnw invocation list` shows those that it knows",
    )


def unreachable(manifest: SignedObject, tried: list[str]) -> RemoteError:
    return RemoteError(
        "unreachable",
        f"no provider of this capability can be reached ({'; '.join(tried)})",
        place=manifest.id.hex(),
        cure="its offer may be older than its absence; try again later",
        exit_status=ExitStatus.UNREACHABLE,
    )
