"""What a provider does for a call when its turn has come: all checks, then the handler, then the checks of its output.

Checks go from cheap to dear, those of authority and time last, right before the call begins: a delegation that held
when the call was sent may have been revoked since.
"""

from __future__ import annotations

import logging
import stat
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from functools import partial
from pathlib import Path
from typing import Final

import anyio

from bnw.inbox.access import AccessRecord
from bnw.inbox.opening import save_payload
from bnw.inbox.payload import CarriedPayload, Payload, PayloadFile, open_payload, read_access
from bnw.invoke.answer import NO_INBOX_KEY, Verdict, completed, failed, not_completed, rejected
from bnw.invoke.authority.question import may_invoke
from bnw.invoke.carrying import bring, carry, fetch_chunks, let_go, participants
from bnw.invoke.checks import (
    check_carried_size,
    check_deadline,
    check_participants,
    check_plain_size_and_type,
    check_privacy,
    check_size_and_type,
)
from bnw.invoke.descriptors import PRIVACY_PUBLIC, LocatedError, PayloadLimits
from bnw.invoke.handler import Answer, Call, HandlerFailure
from bnw.invoke.machines import provider as machine
from bnw.invoke.parts import CallParts
from bnw.invoke.progress import ProgressReporter
from bnw.invoke.provision import Provision
from bnw.invoke.serving import ServedCall
from bnw.invoke.workspace import CallFolder
from bnw.objects.calls import STATUS_FAILED
from bnw.objects.mail import PayloadManifest
from bnw.objects.signed import SignedObject
from bnw.transport.interface import PeerId
from bnw.wire.errors import InvalidError, LocalError, RemoteError
from bnw.wire.limits import MAX_PAYLOAD, MAX_PAYLOAD_IN_MEMORY

logger = logging.getLogger(__name__)

DEFAULT_MOST: Final = MAX_PAYLOAD_IN_MEMORY
"""Bytes of an input or output where neither the descriptor nor the provider's policy names a limit."""
DEFAULT_OUTPUT_TYPE: Final = "application/octet-stream"
LONGEST_SLEEP: Final = 10.0


async def serve(call: ServedCall, parts: CallParts, prefer: tuple[PeerId, ...], progress: ProgressReporter) -> None:
    """Bring a call that waits for its turn to its end. Raises `LocalError` if the disk fails."""
    await _wait_until_created(call, parts)
    async with _folder(call, parts) as folder:
        try:
            await _serve(call, parts, prefer, progress, folder)
        finally:
            if call.state.phase == machine.FINISHED and call.large_input is not None:
                with anyio.CancelScope(shield=True):
                    await let_go(parts, call.large_input)


def _folder(call: ServedCall, parts: CallParts) -> AbstractAsyncContextManager[CallFolder | None]:
    return nullcontext() if parts.workspace is None else parts.workspace.folder(call.id)


async def _serve(
    call: ServedCall,
    parts: CallParts,
    prefer: tuple[PeerId, ...],
    progress: ProgressReporter,
    folder: CallFolder | None,
) -> None:
    payload: Payload | PayloadFile | None = None
    verdict: Verdict | None = None
    try:
        payload = await _checked(call, parts, prefer, folder)
    except InvalidError as error:
        verdict = rejected(error)
    except RemoteError as error:
        verdict = rejected(InvalidError("input-unavailable", str(error)))
    except _InvalidInput as invalid:
        verdict = invalid.verdict
    await call.handle(machine.Checked(None if verdict is None else verdict.ending), verdict)
    if call.state.phase != machine.RUNNING or payload is None:
        return
    outcome = await _run(call, parts, payload, progress, folder)
    await call.handle(machine.HandlerEnded(None if outcome is None else outcome.ending), outcome)


class _InvalidInput(Exception):
    def __init__(self, verdict: Verdict) -> None:
        super().__init__()
        self.verdict = verdict


async def _wait_until_created(call: ServedCall, parts: CallParts) -> None:
    """Let this node's clock pass the time of the call's creation; `shows_that_it_is_new` relies on that."""
    while (early := call.invocation.body.created - parts.environment.now_ms()) >= 0:  # noqa: ASYNC110 - a clock
        await anyio.sleep(min((early + 1) / 1000, LONGEST_SLEEP))


async def _checked(
    call: ServedCall, parts: CallParts, prefer: tuple[PeerId, ...], folder: CallFolder | None
) -> Payload | PayloadFile:
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
    most = DEFAULT_MOST if limits is None and policy.max_input_bytes is None else MAX_PAYLOAD
    if folder is None:
        most = MAX_PAYLOAD_IN_MEMORY
    if record.size > most:
        raise InvalidError("too-large", f"the input has {record.size:,} bytes; this provider takes at most {most:,}")
    check_carried_size(carried, record)
    payload: Payload | PayloadFile
    if folder is None or record.size <= MAX_PAYLOAD_IN_MEMORY:
        payload = open_payload(manifest, record, await fetch_chunks(parts.fetcher, carried, prefer, call.chunks))
    else:
        call.large_input = manifest
        await bring(parts, manifest, prefer)
        path = folder.path / "input"
        await save_payload(parts.store, manifest, record, path, offload=parts.offload)
        payload = PayloadFile(path, record.size, record.media_type, record.name)
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


async def _check_with_profile(provision: Provision, parts: CallParts, payload: Payload | PayloadFile) -> None:
    if provision.limits is None:
        return
    # Without the plug-in that read the descriptor an input would pass unchecked.
    if await parts.plugins.describe(provision.descriptor) is None:
        raise InvalidError(
            "profile-unavailable",
            "the provider's plug-in for this kind of descriptor is out of order, so the input cannot be checked",
            cure="try again later",
        )
    errors: Sequence[LocatedError]
    if isinstance(payload, Payload):
        data = payload.data
        errors = await parts.plugins.check_input(provision.descriptor, provision.schemas, payload.media_type, data)
    else:
        size = payload.size
        errors = await parts.plugins.check_unread(provision.descriptor, payload.media_type, size, output=False)
    if errors:
        raise _InvalidInput(rejected(InvalidError("invalid-input", "the input does not fit the schema"), errors))


async def _run(
    call: ServedCall,
    parts: CallParts,
    payload: Payload | PayloadFile,
    progress: ProgressReporter,
    folder: CallFolder | None,
) -> Verdict | None:
    """What came of the handler; None if it was stopped."""
    provision = call.provision
    assert provision is not None
    told = Call(
        invocation=call.id,
        capability=call.body.capability,
        requester=call.invocation.signer,
        deadline=call.body.deadline,
        input=payload,
        max_output=_most_output(provision, folder),
        folder=folder,
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
        return await _judge(call, parts, provision, answer, told.max_output)
    return None


def _most_output(provision: Provision, folder: CallFolder | None) -> int:
    limits, policy = provision.limits, provision.policy()
    said = [None if limits is None else limits.output.max_bytes, policy.max_output_bytes]
    most = [size for size in said if size is not None] or [DEFAULT_MOST]
    return min(*most, MAX_PAYLOAD if folder is not None else MAX_PAYLOAD_IN_MEMORY)


async def _judge(call: ServedCall, parts: CallParts, provision: Provision, answer: Answer, most: int) -> Verdict:
    """Hold what the handler answered to the descriptor and the policy; seal it if it is a file."""
    limits = None if provision.limits is None else provision.limits.output
    media_type = answer.media_type or (DEFAULT_OUTPUT_TYPE if limits is None else limits.media_types[0])
    try:
        output = await _output(parts, answer, media_type)
        check_plain_size_and_type(output.size, output.media_type, limits)
        if output.size > most:
            raise InvalidError("too-large", f"the output has more than {most:,} bytes")
        faults = await _output_faults(provision, parts, output)
        if faults:
            message = "the program's output does not fit the schema"
            return not_completed(STATUS_FAILED, "output-invalid", message, errors=faults)
        if isinstance(output, Payload):
            return completed(output)
        carried = await _carry_file(call, parts, output, limits)
    except InvalidError as error:
        return not_completed(STATUS_FAILED, f"output-{error.code}", error.cause)
    return NO_INBOX_KEY if carried is None else completed(carried)


async def _output(parts: CallParts, answer: Answer, media_type: str) -> Payload | PayloadFile:
    """Raises `InvalidError` (`unreadable`): that is the handler's fault, and no failure of this node's disk."""
    if answer.file is None:
        return Payload(answer.data, media_type)
    path = answer.file
    try:
        status = await parts.offload(path.stat)
        if not stat.S_ISREG(status.st_mode):
            raise InvalidError("unreadable", "the handler's output is no plain file")
        if status.st_size > MAX_PAYLOAD_IN_MEMORY:
            return PayloadFile(path, status.st_size, media_type)
        return Payload(await parts.offload(partial(_read, path)), media_type)
    except OSError as error:
        logger.error("the output of a handler, %s, cannot be read: %s", path, error)
        raise InvalidError("unreadable", "the handler's output cannot be read") from error


def _read(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(MAX_PAYLOAD_IN_MEMORY + 1)


async def _output_faults(
    provision: Provision, parts: CallParts, output: Payload | PayloadFile
) -> Sequence[LocatedError]:
    if provision.limits is None:
        return ()
    descriptor, plugins = provision.descriptor, parts.plugins
    if isinstance(output, PayloadFile):
        return await plugins.check_unread(descriptor, output.media_type, output.size, output=True)
    return await plugins.check_output(descriptor, provision.schemas, output.media_type, output.data)


async def _carry_file(
    call: ServedCall, parts: CallParts, output: PayloadFile, limits: PayloadLimits | None
) -> CarriedPayload | None:
    """None if the requester has no inbox key. Raises `InvalidError` for a file that changes under our hands."""
    recipients = await participants(parts, call.invocation.signer)
    if recipients is None:
        return None
    public = limits is not None and limits.privacy == PRIVACY_PUBLIC
    try:
        return await carry(parts, output, recipients, public=public)
    except LocalError as error:
        if error.code != "unreadable":
            raise
        raise InvalidError(error.code, "the handler's output cannot be read any more") from error
