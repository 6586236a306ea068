"""What a provider does for a call when its turn has come: all checks, then the handler, then the checks of its output.

Checks go from cheap to dear, those of authority and time last, right before the call begins: a delegation that held
when the call was sent may have been revoked since.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping

import anyio

from bnw.blobs.fetcher import BlobFetcher
from bnw.inbox.access import AccessRecord
from bnw.inbox.payload import Payload, open_payload, read_access
from bnw.invoke.answer import Verdict, completed, failed, not_completed, rejected
from bnw.invoke.authority.question import may_invoke
from bnw.invoke.checks import (
    check_carried_size,
    check_deadline,
    check_participants,
    check_plain_size_and_type,
    check_privacy,
    check_size_and_type,
)
from bnw.invoke.handler import Call, HandlerFailure
from bnw.invoke.machines import provider as machine
from bnw.invoke.parts import CallParts
from bnw.invoke.progress import ProgressReporter
from bnw.invoke.provision import Provision
from bnw.invoke.serving import ServedCall
from bnw.objects.calls import STATUS_FAILED
from bnw.objects.mail import PayloadManifest
from bnw.objects.signed import SignedObject
from bnw.transport.interface import PeerId
from bnw.wire.content_id import ContentId
from bnw.wire.errors import InvalidError, RemoteError
from bnw.wire.limits import MAX_PAYLOAD_IN_MEMORY

logger = logging.getLogger(__name__)

FETCH_TIMEOUT = 60.0
DEFAULT_OUTPUT_TYPE = "application/octet-stream"
LONGEST_SLEEP = 10.0


async def serve(call: ServedCall, parts: CallParts, prefer: tuple[PeerId, ...], progress: ProgressReporter) -> None:
    """Bring a call that waits for its turn to its end. Raises `LocalError` if the disk fails."""
    await _wait_until_created(call, parts)
    payload: Payload | None = None
    verdict: Verdict | None = None
    try:
        payload = await _checked(call, parts, prefer)
    except InvalidError as error:
        verdict = rejected(error)
    except RemoteError as error:
        verdict = rejected(InvalidError("input-unavailable", str(error)))
    except _InvalidInput as invalid:
        verdict = invalid.verdict
    await call.handle(machine.Checked(None if verdict is None else verdict.ending), verdict)
    if call.state.phase != machine.RUNNING or payload is None:
        return
    outcome = await _run(call, parts, payload, progress)
    await call.handle(machine.HandlerEnded(None if outcome is None else outcome.ending), outcome)


class _InvalidInput(Exception):
    def __init__(self, verdict: Verdict) -> None:
        super().__init__()
        self.verdict = verdict


async def _wait_until_created(call: ServedCall, parts: CallParts) -> None:
    """Let this node's clock pass the time of the call's creation; `shows_that_it_is_new` relies on that."""
    while (early := call.invocation.body.created - parts.environment.now_ms()) >= 0:  # noqa: ASYNC110 - a clock
        await anyio.sleep(min((early + 1) / 1000, LONGEST_SLEEP))


async def _checked(call: ServedCall, parts: CallParts, prefer: tuple[PeerId, ...]) -> Payload:
    provision = _provided(call)
    check_deadline(call.body, parts.environment.now_ms())
    manifest, carried, record = await _described_input(call, parts, provision)
    limits = provision.limits.input if provision.limits is not None else None
    policy = provision.policy()
    question = may_invoke(
        provision.manifest,
        requester=call.invocation.signer,
        provider=parts.key.identity,
        policy=policy,
        input_bytes=record.size,
    )
    (await parts.book.explain(question, call.body.delegations)).require()
    check_privacy(carried, limits)
    check_size_and_type(record, limits)
    policy.check_input(record.size)
    if record.size > MAX_PAYLOAD_IN_MEMORY:
        raise InvalidError("too-large", f"inputs of at most {MAX_PAYLOAD_IN_MEMORY:,} bytes are possible now")
    check_carried_size(carried, record)
    payload = open_payload(manifest, record, await fetch_chunks(parts.fetcher, carried, prefer, call.chunks))
    await _check_with_profile(provision, parts, payload)
    # The last word, in the same breath as "about to run": whatever may have changed since the call came is asked again.
    provision = _provided(call)
    check_deadline(call.body, parts.environment.now_ms())
    (await parts.book.authorise(question, call.body.delegations, call=call.id)).require()
    return payload


def _provided(call: ServedCall) -> Provision:
    if call.provision is None:
        raise InvalidError("not-provided", "this node does not provide the capability")
    call.provision.policy().check(call.invocation.signer, shows_delegations=bool(call.body.delegations))
    return call.provision


async def _described_input(
    call: ServedCall, parts: CallParts, provision: Provision
) -> tuple[SignedObject, PayloadManifest, AccessRecord]:
    manifest = await parts.store.get_object(call.body.input)
    if manifest is None:
        raise InvalidError("input-missing", "the manifest of the input was not delivered", place=call.body.input.hex())
    carried = check_participants(manifest, sender=call.invocation.signer, other=parts.key.identity)
    return manifest, carried, read_access(manifest, reader=parts.key.identity, inbox_keys=parts.inbox_keys())


async def fetch_chunks(
    fetcher: BlobFetcher, carried: PayloadManifest, prefer: tuple[PeerId, ...], here: Mapping[ContentId, bytes]
) -> list[bytes]:
    """The chunks of a payload: those that came along from `here`, or all from the network."""
    if all(id in here for id in carried.chunks):
        return [here[id] for id in carried.chunks]
    return await fetcher.fetch_all(carried.chunks, max_size=carried.largest_chunk, prefer=prefer, timeout=FETCH_TIMEOUT)


async def _check_with_profile(provision: Provision, parts: CallParts, payload: Payload) -> None:
    if provision.limits is None:
        return
    # Without the plug-in that read the descriptor an input would pass unchecked.
    if await parts.plugins.describe(provision.descriptor) is None:
        raise InvalidError(
            "profile-unavailable",
            "the provider's plug-in for this kind of descriptor is out of order, so the input cannot be checked",
            cure="try again later",
        )
    errors = await parts.plugins.check_input(provision.descriptor, provision.schemas, payload.media_type, payload.data)
    if errors:
        raise _InvalidInput(rejected(InvalidError("invalid-input", "the input does not fit the schema"), errors))


async def _run(call: ServedCall, parts: CallParts, payload: Payload, progress: ProgressReporter) -> Verdict | None:
    """What came of the handler; None if it was stopped."""
    provision = call.provision
    assert provision is not None
    limits = provision.limits.output if provision.limits is not None else None
    most = [MAX_PAYLOAD_IN_MEMORY, None if limits is None else limits.max_bytes, provision.policy().max_output_bytes]
    told = Call(
        invocation=call.id,
        capability=call.body.capability,
        requester=call.invocation.signer,
        deadline=call.body.deadline,
        input=payload,
        max_output=min(size for size in most if size is not None),
        report=progress.report_for(call),
        stopping=lambda: call.state.phase != machine.RUNNING,
    )
    with anyio.CancelScope() as call.handler_scope:
        if call.state.phase != machine.RUNNING:
            return None
        try:
            answer = await provision.handler(told)
        except HandlerFailure as failure:
            return failed(failure)
        except Exception:
            logger.exception("the handler failed on call %s", call.id.hex())
            return not_completed(STATUS_FAILED, "handler-error", "the provider's handler failed")
    if call.handler_scope.cancelled_caught:
        return None
    default = DEFAULT_OUTPUT_TYPE if limits is None else limits.media_types[0]
    output = Payload(answer.data, answer.media_type or default)
    try:
        check_plain_size_and_type(len(output.data), output.media_type, limits)
        if len(output.data) > told.max_output:
            raise InvalidError("too-large", f"the output has more than {told.max_output:,} bytes")
    except InvalidError as error:
        return not_completed(STATUS_FAILED, f"output-{error.code}", error.cause)
    return await _check_output(provision, parts, output)


async def _check_output(provision: Provision, parts: CallParts, output: Payload) -> Verdict:
    if provision.limits is None:
        return completed(output)
    errors = await parts.plugins.check_output(provision.descriptor, provision.schemas, output.media_type, output.data)
    if errors:
        return not_completed(
            STATUS_FAILED, "output-invalid", "the program's output does not fit the schema", errors=errors
        )
    return completed(output)
