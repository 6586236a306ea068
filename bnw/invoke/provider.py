"""The provider's side: accept durably, check, run, answer with a signed receipt.

Accepting happens while the delivery waits for its confirmation, so a confirmed call survives a crash. Everything else
happens in a bounded number of workers. The answer is pushed to the peer that brought the call; if that fails, the
requester asks again and gets the stored receipt.
"""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

import anyio
from anyio.abc import TaskGroup

from bnw.identity.keys import IdentityId
from bnw.inbox.delivery import deliver
from bnw.inbox.payload import Payload, open_payload, read_access
from bnw.invoke.answer import SignedAnswer, Verdict, completed, failed, not_completed, rejected, sign_answer
from bnw.invoke.checks import (
    check_deadline,
    check_participants,
    check_plain_size_and_type,
    check_privacy,
    check_size_and_type,
)
from bnw.invoke.descriptors import DescriptorLimits
from bnw.invoke.handlers import Call, Handler, HandlerFailure
from bnw.invoke.journal import ACCEPTED, FINISHED, RUNNING, CallEntry, CallJournal
from bnw.invoke.parts import CallParts
from bnw.invoke.policy import CallPolicy
from bnw.objects.calls import STATUS_EXPIRED, STATUS_FAILED, STATUS_INTERRUPTED, Invocation, Receipt
from bnw.objects.mail import PayloadManifest
from bnw.objects.signed import SignedObject
from bnw.transport.interface import PeerId
from bnw.wire.content_id import ContentId
from bnw.wire.errors import InvalidError, LocalError, RemoteError
from bnw.wire.limits import MAX_PAYLOAD_IN_MEMORY

logger = logging.getLogger(__name__)

MAX_RUNNING = 8
"""Calls that run at once."""
MAX_WAITING = 256
"""Calls that are accepted and wait for a worker. Beyond that a delivery is refused, and the requester tries later."""
MAX_ROUTES = 4096
"""Requesters whose last known peer is remembered."""
FETCH_TIMEOUT = 60.0

DEFAULT_OUTPUT_TYPE = "application/octet-stream"


@dataclass(frozen=True, slots=True)
class Provision:
    """A capability that this node answers for. `limits` is None for an opaque descriptor."""

    manifest: SignedObject
    descriptor: bytes = field(repr=False)
    limits: DescriptorLimits | None
    schemas: Mapping[ContentId, bytes] = field(repr=False)
    handler: Handler
    policy: CallPolicy
    idempotent: bool = False
    """Whether a call that a crash interrupted may run again."""


@dataclass(frozen=True, slots=True)
class CallReport:
    """Told to observers when a call comes to its end."""

    invocation: ContentId
    requester: IdentityId
    capability: ContentId
    status: str
    code: str | None


OnCall = Callable[[CallReport], None]


class Provider:
    """Answers calls to one identity; `run` ends only when cancelled."""

    def __init__(self, parts: CallParts, *, on_call: OnCall) -> None:
        self._parts = parts
        self._on_call = on_call
        self._journal = CallJournal(parts.store)
        self._provisions: dict[ContentId, Provision] = {}
        self._routes: OrderedDict[IdentityId, PeerId] = OrderedDict()
        self._waiting = 0
        self._queue, self._work = anyio.create_memory_object_stream[ContentId](float("inf"))
        self._pushes: TaskGroup | None = None

    def provide(self, provision: Provision) -> None:
        self._provisions[provision.manifest.id] = provision

    def stop_providing(self, capability: ContentId) -> None:
        self._provisions.pop(capability, None)

    @property
    def provisions(self) -> Mapping[ContentId, Provision]:
        return self._provisions

    async def run(self) -> None:
        async with anyio.create_task_group() as group:
            self._pushes = group
            for id, _ in await self._journal.unfinished():
                self._waiting += 1
                self._queue.send_nowait(id)
            for _ in range(MAX_RUNNING):
                group.start_soon(self._work_through_queue)

    async def accept(self, peer: PeerId, invocation: SignedObject) -> None:
        """Take in an invocation for this identity, durably. A repeat is answered with the stored receipt.

        Raises `LocalError` (`busy`) when too many calls wait.
        """
        body = invocation.body
        assert isinstance(body, Invocation)
        self._remember_route(invocation.signer, peer)
        entry = await self._journal.get(invocation.id)
        if entry is not None:
            if entry.state == FINISHED and entry.receipt is not None and self._pushes is not None:
                self._pushes.start_soon(self._push_stored, invocation.signer, entry.receipt)
            return
        if self._waiting >= MAX_WAITING:
            raise LocalError("busy", f"{MAX_WAITING} calls wait already")
        self._waiting += 1
        try:
            now = self._parts.environment.now_ms()
            entry = CallEntry(expires=body.expires, receipt=None, received=now, started=None, state=ACCEPTED)
            await self._journal.put(invocation.id, entry, now=now)
        except BaseException:
            self._waiting -= 1
            raise
        self._queue.send_nowait(invocation.id)

    def _remember_route(self, requester: IdentityId, peer: PeerId) -> None:
        self._routes.pop(requester, None)
        self._routes[requester] = peer
        if len(self._routes) > MAX_ROUTES:
            self._routes.popitem(last=False)

    async def _work_through_queue(self) -> None:
        async for id in self._work:
            self._waiting -= 1
            try:
                await self._process(id)
            except LocalError as error:
                # The store failed. The journal still says how far the call came, and the next start goes on from there.
                logger.error("call %s: %s", id.hex(), error)

    async def _process(self, id: ContentId) -> None:
        entry = await self._journal.get(id)
        invocation = await self._parts.store.get_object(id)
        if entry is None or invocation is None or entry.state == FINISHED:
            return
        assert isinstance(invocation.body, Invocation)
        provision = self._provisions.get(invocation.body.capability)
        if entry.state == RUNNING and not (provision is not None and provision.idempotent):
            verdict = not_completed(
                STATUS_INTERRUPTED,
                "interrupted",
                "the provider stopped while it ran this call; it may have had effects",
            )
        else:
            verdict, entry = await self._check_and_run(invocation, provision, entry)
        await self._finish(invocation, provision, entry, verdict)

    async def _check_and_run(
        self, invocation: SignedObject, provision: Provision | None, entry: CallEntry
    ) -> tuple[Verdict, CallEntry]:
        try:
            provision, payload = await self._check(invocation, provision)
        except InvalidError as error:
            return rejected(error), entry
        except RemoteError as error:
            return rejected(InvalidError("input-unavailable", str(error))), entry
        errors = await self._parts.plugins.check_input(
            provision.descriptor, provision.schemas, payload.media_type, payload.data
        )
        if errors:
            return rejected(InvalidError("invalid-input", "the input does not fit the schema"), errors), entry
        now = self._parts.environment.now_ms()
        entry = replace(entry, state=RUNNING, started=max(now, entry.received))
        await self._journal.put(invocation.id, entry, now=now)
        return await self._run_handler(invocation, provision, payload), entry

    async def _check(self, invocation: SignedObject, provision: Provision | None) -> tuple[Provision, Payload]:
        """The checks of design section 11 that come before the profile's own; raises `InvalidError`."""
        body = invocation.body
        assert isinstance(body, Invocation)
        check_deadline(body, self._parts.environment.now_ms())
        if provision is None:
            raise InvalidError("not-provided", "this node does not provide the capability")
        provision.policy.check(invocation.signer)
        manifest = await self._parts.store.get_object(body.input)
        if manifest is None:
            raise InvalidError("input-missing", "the manifest of the input was not delivered", place=body.input.hex())
        carried = check_participants(manifest, sender=invocation.signer, other=self._parts.key.identity)
        limits = provision.limits.input if provision.limits is not None else None
        check_privacy(carried, limits)
        record = read_access(manifest, reader=self._parts.key.identity, inbox_keys=self._parts.inbox_keys())
        check_size_and_type(record, limits)
        if record.size > MAX_PAYLOAD_IN_MEMORY:
            raise InvalidError("too-large", f"inputs of at most {MAX_PAYLOAD_IN_MEMORY:,} bytes are possible now")
        chunks = await self._fetch_chunks(carried, invocation.signer)
        return provision, open_payload(manifest, record, chunks)

    async def _fetch_chunks(self, carried: PayloadManifest, requester: IdentityId) -> list[bytes]:
        peer = self._routes.get(requester)
        prefer = () if peer is None else (peer,)
        return await self._parts.fetcher.fetch_all(
            carried.chunks, max_size=carried.largest_chunk, prefer=prefer, timeout=FETCH_TIMEOUT
        )

    async def _run_handler(self, invocation: SignedObject, provision: Provision, payload: Payload) -> Verdict:
        body = invocation.body
        assert isinstance(body, Invocation)
        limits = provision.limits.output if provision.limits is not None else None
        call = Call(
            invocation=invocation.id,
            capability=body.capability,
            requester=invocation.signer,
            deadline=body.deadline,
            input=payload,
            max_output=MAX_PAYLOAD_IN_MEMORY if limits is None else min(limits.max_bytes, MAX_PAYLOAD_IN_MEMORY),
        )
        seconds = max(0.0, (body.deadline - self._parts.environment.now_ms()) / 1000)
        with anyio.move_on_after(seconds) as scope:
            try:
                answer = await provision.handler(call)
            except HandlerFailure as failure:
                return failed(failure)
            except Exception:
                logger.exception("the handler failed on call %s", invocation.id.hex())
                return not_completed(STATUS_FAILED, "handler-error", "the provider's handler failed")
        if scope.cancelled_caught:
            return not_completed(STATUS_EXPIRED, "deadline-passed", "the deadline passed while the call ran")
        default = DEFAULT_OUTPUT_TYPE if limits is None else limits.media_types[0]
        output = Payload(answer.data, answer.media_type or default)
        try:
            check_plain_size_and_type(len(output.data), output.media_type, limits)
            if len(output.data) > call.max_output:
                raise InvalidError("too-large", f"the output has more than {call.max_output:,} bytes")
        except InvalidError as error:
            return not_completed(STATUS_FAILED, f"output-{error.code}", error.cause)
        errors = await self._parts.plugins.check_output(
            provision.descriptor, provision.schemas, output.media_type, output.data
        )
        if errors:
            return not_completed(
                STATUS_FAILED, "output-invalid", "the program's output does not fit the schema", errors=errors
            )
        return completed(output)

    async def _finish(
        self, invocation: SignedObject, provision: Provision | None, entry: CallEntry, verdict: Verdict
    ) -> None:
        answer = sign_answer(
            verdict,
            invocation=invocation.id,
            requester=invocation.signer,
            entry=entry,
            recipients=await self._participant_keys(invocation.signer),
            limits=None if provision is None else provision.limits,
            key=self._parts.key,
            environment=self._parts.environment,
        )
        await self._keep(invocation, entry, answer)
        assert isinstance(invocation.body, Invocation)
        self._on_call(
            CallReport(invocation.id, invocation.signer, invocation.body.capability, verdict.status, verdict.code)
        )
        await self._push_stored(invocation.signer, answer.receipt.id)

    async def _keep(self, invocation: SignedObject, entry: CallEntry, answer: SignedAnswer) -> None:
        """Make the answer durable: chunks first, then manifest, receipt and the call's last state in one step."""
        objects = [answer.receipt]
        if answer.payload is not None:
            for chunk in answer.payload.chunks:
                await self._parts.store.put_blob(chunk)
            objects.insert(0, answer.payload.manifest)
        entry = replace(entry, state=FINISHED, receipt=answer.receipt.id)
        await self._journal.put(invocation.id, entry, objects, now=self._parts.environment.now_ms())

    async def _participant_keys(self, requester: IdentityId) -> dict[IdentityId, bytes] | None:
        theirs = await self._parts.catalog.inbox_key(requester)
        if theirs is None:
            return None
        ours = self._parts.inbox_keys()[-1].public
        return {self._parts.key.identity: ours, requester: theirs}

    async def _push_stored(self, requester: IdentityId, receipt_id: ContentId) -> None:
        """Send a receipt to where the call came from; the requester asks again if that fails."""
        peer = self._routes.get(requester)
        receipt = await self._parts.store.get_object(receipt_id)
        if peer is None or receipt is None:
            return
        assert isinstance(receipt.body, Receipt)
        output = None if receipt.body.output is None else await self._parts.store.get_object(receipt.body.output)
        try:
            await deliver(self._parts.transport, peer, [receipt] if output is None else [output, receipt])
        except RemoteError as error:
            logger.info("receipt %s not delivered yet: %s", receipt_id.hex(), error)
