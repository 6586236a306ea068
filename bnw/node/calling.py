"""Calls that this node makes: finding whom to call, going on to the next provider, and taking up calls again."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import anyio

from bnw.identity.keys import IdentityId, did_key
from bnw.inbox.payload import Payload, PayloadFile
from bnw.invoke.asked import AskedCall
from bnw.invoke.asking import OnStep
from bnw.invoke.proof import export_proof
from bnw.invoke.requester import CallResult, ReachedProvider, Requester, Target, unknown_call, unreachable
from bnw.invoke.resolve import Catalog
from bnw.invoke.results import OutputOpener
from bnw.node.descriptors import DescriptorLoader
from bnw.objects.signed import SignedObject, trusted_object
from bnw.wire.content_id import ContentId, parse_content_id
from bnw.wire.errors import BnwError, LocalError, RemoteError
from bnw.wire.limits import MAX_PAYLOAD_IN_MEMORY

logger = logging.getLogger(__name__)

TAKE_IN: Final = 10.0
"""Seconds that a provider has to confirm a call, if there is another one to ask."""
ANOTHER_MAY_DO: Final = frozenset(
    {
        "busy",
        "cancelled",
        "inbox-key-gone",
        "input-unavailable",
        "not-allowed",
        "not-provided",
        "profile-unavailable",
        "rate-limited",
    }
)
"""Codes of a call that has not run, for reasons of this provider alone."""
MIN_PREFIX: Final = 8
"""Digits of an invocation id that are enough to name a call."""


@dataclass(frozen=True, slots=True)
class CallOptions:
    """How to call. Times in milliseconds, but `take_in` in seconds.

    `any_order` lets the next provider be asked although the one before may have run the call.
    """

    public: bool
    provider: IdentityId | None
    deadline_in: int
    inactivity: int | None
    any_order: bool
    max_output: int = MAX_PAYLOAD_IN_MEMORY
    take_in: float = TAKE_IN


class Caller:
    def __init__(self, requester: Requester, catalog: Catalog, descriptors: DescriptorLoader) -> None:
        self._requester = requester
        self._catalog = catalog
        self._descriptors = descriptors

    async def invoke(
        self, reference: str, payload: Payload | PayloadFile, options: CallOptions, on_step: OnStep
    ) -> CallResult:
        """Call a capability at one provider after the other, until one has run it or may have."""
        manifest = await self._catalog.find(reference)
        offers = await self._requester.candidates(manifest, options.provider)
        target: Target | None = None
        tried: list[str] = []
        result: CallResult | None = None
        for number, offer in enumerate(offers):
            try:
                reached = await self._requester.reach(offer, on_step)
                # The provider serves the descriptor too, which carriers need not have.
                target = target or await self._load(manifest, reached)
            except RemoteError as error:
                self._requester.experience.failed(offer.signer)
                tried.append(f"{did_key(offer.signer)}: {error.cause}")
                continue
            on_step("found", {"manifest": manifest.id.hex()})
            others = number + 1 < len(offers)
            attempt = _Attempt(self._requester, options, on_step, has_others=others)
            outcome = await attempt.run(target, payload, reached)
            if outcome is None:
                tried.append(f"{did_key(offer.signer)}: did not take the call in time")
                continue
            result = outcome
            if not others or not may_go_on(result, any_order=options.any_order):
                return result
            on_step("next", {"provider": did_key(offer.signer), "status": result.status, "code": result.code or ""})
        if result is not None:
            return result
        for offer in offers:
            if await self._requester.has_mailbox(offer.signer):
                # One only: from a mailbox nobody says in time whether a call is taken.
                on_step("offline", {"provider": did_key(offer.signer)})
                target = target or await self._load(manifest)
                attempt = _Attempt(self._requester, options, on_step, has_others=False)
                outcome = await attempt.run(target, payload, ReachedProvider(offer, None))
                assert outcome is not None  # it is given up only where there are others
                return outcome
        raise unreachable(manifest, tried)

    async def wait(self, id: ContentId, on_step: OnStep, *, max_output: int = MAX_PAYLOAD_IN_MEMORY) -> CallResult:
        """Take a call up again. Raises as `Requester.wait` does."""
        return await self._requester.wait(id, self._load, max_output=max_output, on_step=on_step)

    @property
    def outputs(self) -> OutputOpener:
        """Opens the outputs that are too large for memory."""
        return self._requester.outputs

    async def cancel(self, id: ContentId) -> str:
        """Ask for a call to be stopped. Raises as `Requester.cancel` does."""
        return await self._requester.cancel(id)

    async def all(self) -> list[tuple[ContentId, AskedCall]]:
        """All calls that are remembered, the latest first."""
        return await self._requester.records.all()

    async def find(self, reference: str) -> tuple[ContentId, AskedCall]:
        """The call with this id, or with an id that begins so.

        Raises `LocalError` (`unknown-call`, `ambiguous-call`), `InvalidError` for what is no id.
        """
        if len(reference) >= MIN_PREFIX and len(reference) < 64 and set(reference) <= set("0123456789abcdef"):
            found = [(id, call) for id, call in await self._requester.records.all() if id.hex().startswith(reference)]
            if len(found) > 1:
                raise LocalError("ambiguous-call", f"{len(found)} calls have ids that begin so", place=reference)
            if found:
                return found[0]
        id = parse_content_id(reference)
        call = await self._requester.records.get(id)
        if call is None:
            raise unknown_call(id)
        return id, call

    async def export(self, call: AskedCall) -> bytes:
        """The proof of a call (`bnw.invoke.proof`). Raises `RemoteError` if the descriptor cannot be had any more."""
        manifest = trusted_object(call.manifest)
        loaded = await self._descriptors.load(manifest)
        return export_proof(call, loaded.data, await self._catalog.provide_chain(manifest, call.body.provider))

    async def _load(self, manifest: SignedObject, reached: ReachedProvider | None = None) -> Target:
        peer = None if reached is None else reached.peer
        loaded = await self._descriptors.load(manifest, prefer=() if peer is None else (peer,))
        limits = None if loaded.description is None else loaded.description.limits
        return Target(manifest, loaded.data, limits, loaded.linked)


def may_go_on(result: CallResult, *, any_order: bool) -> bool:
    """Whether the next provider may be asked: this one has not run the call and cannot, or that does not matter."""
    if result.status == "completed" or result.code is None:
        return False
    if any_order and result.status in {"interrupted", "expired"}:
        return True
    return result.surely_not_run and result.code in ANOTHER_MAY_DO


class _Attempt:
    """One provider's chance. If it does not confirm in time and there are others, the call is taken back."""

    def __init__(self, requester: Requester, options: CallOptions, on_step: OnStep, *, has_others: bool) -> None:
        self._requester = requester
        self._options = options
        self._on_step = on_step
        self._has_others = has_others
        self._invocation: ContentId | None = None
        self._signed = anyio.Event()
        self._confirmed = anyio.Event()
        self._given_up = False

    async def run(self, target: Target, payload: Payload | PayloadFile, reached: ReachedProvider) -> CallResult | None:
        """The result; None if the call was given up and the next provider may be asked."""
        result: CallResult | None = None
        failure: BnwError | None = None
        async with anyio.create_task_group() as group:
            if self._has_others:
                group.start_soon(self._take_back_when_late, group.cancel_scope)
            try:
                result = await self._requester.call(
                    target,
                    payload,
                    reached,
                    public=self._options.public,
                    deadline_in=self._options.deadline_in,
                    inactivity=self._options.inactivity,
                    max_output=self._options.max_output,
                    on_step=self._step,
                )
            except BnwError as error:
                # Raised below, since from within the task group it would come as a group.
                failure = error
            group.cancel_scope.cancel()
        if failure is not None and not (self._given_up and failure.code == "abandoned"):
            raise failure
        return result

    def _step(self, step: str, details: Mapping[str, str]) -> None:
        if step == "signed":
            self._invocation = parse_content_id(details["invocation"])
            self._signed.set()
        elif step in {"delivered", "mailed", "progress", "answered"}:
            self._confirmed.set()
        self._on_step(step, details)

    async def _take_back_when_late(self, scope: anyio.CancelScope) -> None:
        await self._signed.wait()  # sealing a large input takes its time, which is not the provider's
        with anyio.move_on_after(self._options.take_in):
            await self._confirmed.wait()
            return
        assert self._invocation is not None
        self._given_up = True
        if await self._requester.give_up(self._invocation):
            return
        # A copy may be there. Only its receipt can say that it has not run; until then no other may be asked, unless
        # the caller does not mind.
        await self._requester.cancel(self._invocation)
        if self._options.any_order:
            scope.cancel()
