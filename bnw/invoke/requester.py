"""The requester's side: choose a provider, seal, sign, deliver, wait, verify.

Until an invocation has been signed, another provider may be tried. From then on only this one may answer, and the
requester asks again until it has the receipt or the deadline has passed; asking again never runs the call twice.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import anyio

from bnw.identity.keys import IdentityId, did_key
from bnw.inbox.delivery import REFUSED_INVALID, REFUSED_NOT_HERE, deliver
from bnw.inbox.payload import CarriedPayload, Payload, open_payload, publish_payload, read_access, seal_payload
from bnw.invoke.answer import PROBLEM_TYPE
from bnw.invoke.checks import (
    check_participants,
    check_plain_size_and_type,
    check_privacy,
    check_receipt,
    check_size_and_type,
)
from bnw.invoke.descriptors import PRIVACY_PUBLIC, DescriptorLimits
from bnw.invoke.parts import CallParts
from bnw.objects.calls import STATUS_COMPLETED, Invocation, Receipt
from bnw.objects.catalog import ProviderOffer
from bnw.objects.signed import SignedObject, sign_object
from bnw.transport.interface import PeerId
from bnw.wire.content_id import ContentId
from bnw.wire.errors import BnwError, ExitStatus, InvalidError, LocalError, RemoteError
from bnw.wire.limits import MINUTE

logger = logging.getLogger(__name__)

DEFAULT_DEADLINE = 2 * MINUTE
MAX_PROVIDERS_TRIED = 5
DIAL_TIMEOUT = 8.0
FIRST_RETRY = 0.5
LONGEST_RETRY = 10.0
"""Seconds between two askings: doubled each time, from the first to the longest."""
FETCH_TIMEOUT = 60.0

FINAL_REFUSALS = frozenset({f"refused-{REFUSED_NOT_HERE}", f"refused-{REFUSED_INVALID}"})
"""The provider kept nothing and would refuse the same objects again."""

OnStep = Callable[[str, Mapping[str, str]], None]
"""Told of each step of a call as it happens: its name, and what belongs to it."""


@dataclass(frozen=True, slots=True)
class CallResult:
    """A call that came to its end, verified. `output` is there exactly when the status is `completed`."""

    invocation: SignedObject
    receipt: SignedObject
    status: str
    output: Payload | None = field(repr=False)
    code: str | None = None
    problem: Mapping[str, object] | None = None
    """What the provider says about why the call did not complete (RFC 9457), if it could be sealed for us."""


@dataclass(frozen=True, slots=True)
class Target:
    """What is being called: the manifest, its descriptor, and what the profile says of it."""

    manifest: SignedObject
    descriptor: bytes = field(repr=False)
    limits: DescriptorLimits | None
    schemas: Mapping[ContentId, bytes] = field(repr=False, default_factory=dict)


@dataclass(frozen=True, slots=True)
class ReachedProvider:
    """A provider that is connected, by its offer."""

    offer: SignedObject
    peer: PeerId


class Requester:
    """Makes calls in the name of one identity."""

    def __init__(self, parts: CallParts) -> None:
        self._parts = parts
        self._waiting: dict[ContentId, _Waiting] = {}

    def take_receipt(self, receipt: SignedObject) -> None:
        """Pass a delivered receipt on to the call that waits for it, if it is that call's; others are only stored."""
        assert isinstance(receipt.body, Receipt)
        waiting = self._waiting.get(receipt.body.invocation)
        if waiting is None or waiting.receipt is not None:
            return
        try:
            check_receipt(receipt, waiting.invocation)
        except InvalidError as error:
            logger.warning("receipt not taken: %s", error)
            return
        waiting.receipt = receipt
        waiting.arrived.set()

    async def call(
        self,
        target: Target,
        payload: Payload,
        reached: ReachedProvider,
        *,
        public: bool = False,
        deadline_in: int = DEFAULT_DEADLINE,
        on_step: OnStep = lambda step, details: None,
    ) -> CallResult:
        """Call a capability and return its verified end, whatever that is.

        `deadline_in` is in milliseconds from now. Raises `LocalError`: `no-inbox-key` or `deadline-passed`;
        `InvalidError` with the code of what is wrong with the payload; `RemoteError` with that of the answer.
        """
        limits = None if target.limits is None else target.limits.input
        check_plain_size_and_type(len(payload.data), payload.media_type, limits)
        public = public or (limits is not None and limits.privacy == PRIVACY_PUBLIC)
        offer, peer = reached.offer, reached.peer
        carried = await self._carry(payload, offer.signer, public=public)
        if limits is not None:
            check_privacy(
                check_participants(carried.manifest, sender=self._parts.key.identity, other=offer.signer), limits
            )
        invocation = self._sign_invocation(target.manifest, offer.signer, carried, deadline_in)
        waiting = self._waiting[invocation.id] = _Waiting(invocation)
        try:
            await self._keep(invocation, carried)
            on_step("signed", {"invocation": invocation.id.hex(), "provider": did_key(offer.signer)})
            await self._ask_until_answered(waiting, carried.manifest, peer, offer, on_step)
            assert waiting.receipt is not None
            return await self._verify(waiting.invocation, waiting.receipt, target, peer, on_step)
        finally:
            del self._waiting[invocation.id]

    async def reach_provider(
        self,
        manifest: SignedObject,
        wanted: IdentityId | None = None,
        on_step: OnStep = lambda step, details: None,
    ) -> ReachedProvider:
        """Connect to the first provider that can be, going by the latest offers; only to `wanted` if that is given.

        Raises `LocalError` (`no-offer`, `own-capability`) or `RemoteError` (`unreachable`).
        """
        known = await self._parts.catalog.offers(manifest)
        offers = [
            offer for offer in known if wanted in {None, offer.signer} and offer.signer != self._parts.key.identity
        ]
        if known and not offers and wanted in {None, self._parts.key.identity}:
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
        tried: list[str] = []
        for offer in offers[:MAX_PROVIDERS_TRIED]:
            try:
                peer = await self._connect(offer)
            except RemoteError as error:
                tried.append(f"{did_key(offer.signer)}: {error.cause}")
                continue
            on_step("connected", {"provider": did_key(offer.signer), "peer": peer})
            return ReachedProvider(offer, peer)
        raise RemoteError(
            "unreachable",
            f"no provider of this capability can be reached ({'; '.join(tried)})",
            place=manifest.id.hex(),
            cure="its offer may be older than its absence; try again later",
            exit_status=ExitStatus.UNREACHABLE,
        )

    async def _connect(self, offer: SignedObject) -> PeerId:
        assert isinstance(offer.body, ProviderOffer)
        problems: list[str] = []
        for endpoint in offer.body.endpoints:
            try:
                return await self._parts.transport.dial(endpoint, timeout=DIAL_TIMEOUT)
            except BnwError as error:
                problems.append(f"{endpoint}: {error.cause}")
        raise RemoteError("unreachable", "; ".join(problems) or "its offer names no endpoint")

    async def _carry(self, payload: Payload, provider: IdentityId, *, public: bool) -> CarriedPayload:
        if public:
            everyone = {self._parts.key.identity, provider}
            return publish_payload(
                payload, sender=self._parts.key, recipients=everyone, environment=self._parts.environment
            )
        theirs = await self._parts.catalog.inbox_key(provider)
        if theirs is None:
            raise LocalError(
                "no-inbox-key",
                "the provider's inbox key is not known here",
                place=did_key(provider),
                cure="its identity record may still be on its way; try again in a moment",
                exit_status=ExitStatus.UNREACHABLE,
            )
        recipients = {self._parts.key.identity: self._parts.inbox_keys()[-1].public, provider: theirs}
        return seal_payload(payload, sender=self._parts.key, recipients=recipients, environment=self._parts.environment)

    def _sign_invocation(
        self, manifest: SignedObject, provider: IdentityId, carried: CarriedPayload, deadline_in: int
    ) -> SignedObject:
        now = self._parts.environment.now_ms()
        body = Invocation(
            created=now,
            # The invocation outlives its deadline a little, so that a late repeat is told of the deadline.
            expires=now + deadline_in + 10 * MINUTE,
            capability=manifest.id,
            deadline=now + deadline_in,
            delegations=(),
            inactivity=None,
            input=carried.manifest.id,
            provider=provider,
        )
        return sign_object(body, self._parts.key)

    async def _keep(self, invocation: SignedObject, carried: CarriedPayload) -> None:
        for chunk in carried.chunks:
            await self._parts.store.put_blob(chunk)
        await self._parts.store.put_objects([carried.manifest, invocation], now=self._parts.environment.now_ms())

    async def _ask_until_answered(
        self, waiting: _Waiting, input_manifest: SignedObject, peer: PeerId, offer: SignedObject, on_step: OnStep
    ) -> None:
        assert isinstance(waiting.invocation.body, Invocation)
        seconds = (waiting.invocation.body.deadline - self._parts.environment.now_ms()) / 1000
        with anyio.move_on_after(seconds):
            delay = FIRST_RETRY
            while not waiting.arrived.is_set():
                try:
                    await self._ask(peer, waiting.invocation, input_manifest)
                    on_step("delivered", {"peer": peer})
                    delay = LONGEST_RETRY
                except RemoteError as error:
                    if error.code in FINAL_REFUSALS:
                        raise
                    on_step("waiting", {"reason": str(error)})
                    await self._reconnect(offer)
                with anyio.move_on_after(delay):
                    await waiting.arrived.wait()
                delay = min(2 * delay, LONGEST_RETRY)
            return
        raise LocalError(
            "deadline-passed",
            "the deadline passed and no receipt has come",
            place=waiting.invocation.id.hex(),
            cure="the call may have run; a receipt that comes later is kept",
            exit_status=ExitStatus.DEADLINE,
        )

    async def _ask(self, peer: PeerId, invocation: SignedObject, input_manifest: SignedObject) -> None:
        """Deliver the invocation, with our identity record so that the provider can seal its answer to us."""
        record = await self._parts.catalog.identity_record(self._parts.key.identity)
        introduction = [] if record is None else [record]
        await deliver(self._parts.transport, peer, [*introduction, input_manifest, invocation])

    async def _reconnect(self, offer: SignedObject) -> None:
        try:
            await self._connect(offer)
        except RemoteError as error:
            logger.info("provider still away: %s", error)

    async def _verify(
        self, invocation: SignedObject, receipt: SignedObject, target: Target, peer: PeerId, on_step: OnStep
    ) -> CallResult:
        """Fetch and open what the receipt names, and hold it to the descriptor."""
        body = check_receipt(receipt, invocation)
        on_step("answered", {"receipt": receipt.id.hex(), "status": body.status})
        provider = receipt.signer
        payload = None if body.output is None else await self._open_output(body.output, provider, target, body, peer)
        if body.status == STATUS_COMPLETED:
            return CallResult(invocation, receipt, body.status, payload)
        code = None if body.fault is None else body.fault.code
        return CallResult(invocation, receipt, body.status, None, code, _problem(payload))

    async def _open_output(
        self, id: ContentId, provider: IdentityId, target: Target, receipt: Receipt, peer: PeerId
    ) -> Payload:
        try:
            manifest = await self._parts.store.get_object(id)
            if manifest is None:
                raise InvalidError("output-missing", "the receipt came without the manifest of its output")
            carried = check_participants(manifest, sender=provider, other=self._parts.key.identity)
            record = read_access(manifest, reader=self._parts.key.identity, inbox_keys=self._parts.inbox_keys())
            completed = receipt.status == STATUS_COMPLETED
            limits = target.limits.output if target.limits is not None and completed else None
            if completed:
                check_privacy(carried, limits)
                check_size_and_type(record, limits)
            chunks = await self._parts.fetcher.fetch_all(
                carried.chunks, max_size=carried.largest_chunk, prefer=(peer,), timeout=FETCH_TIMEOUT
            )
            payload = open_payload(manifest, record, chunks)
            errors: Sequence[object] = ()
            if completed:
                errors = await self._parts.plugins.check_output(
                    target.descriptor, target.schemas, payload.media_type, payload.data
                )
            if errors:
                raise InvalidError("output-invalid", f"the output does not fit its schema: {errors[0]}")
        except InvalidError as error:
            raise error.from_peer(did_key(provider)) from error
        return payload


class _Waiting:
    """A call whose receipt has not come yet."""

    def __init__(self, invocation: SignedObject) -> None:
        self.invocation = invocation
        self.receipt: SignedObject | None = None
        self.arrived = anyio.Event()


def _problem(payload: Payload | None) -> Mapping[str, object] | None:
    """The provider's problem document, if it is one. It is shown to people, and nothing is decided by it."""
    if payload is None or payload.media_type != PROBLEM_TYPE:
        return None
    try:
        problem = json.loads(payload.data)
    except (ValueError, RecursionError):
        return None
    return problem if isinstance(problem, dict) else None
