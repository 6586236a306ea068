"""What came of a call, for whoever made it: the verified receipt, and the output opened and held to the descriptor."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from pathlib import Path

from bnw.blobs.fetcher import ignore_progress
from bnw.blobs.transfer import OnProgress
from bnw.identity.keys import did_key
from bnw.inbox.opening import opened_payload, save_payload
from bnw.inbox.payload import Payload, StoredPayload, open_payload, read_access
from bnw.invoke.answer import PROBLEM_TYPE
from bnw.invoke.asked import AskedCall
from bnw.invoke.carrying import bring, fetch_chunks, let_go
from bnw.invoke.checks import check_carried_size, check_participants, check_privacy, check_size_and_type
from bnw.invoke.descriptors import DescriptorLimits
from bnw.invoke.parts import CallParts
from bnw.objects.calls import STATUS_COMPLETED, Receipt
from bnw.objects.mail import PayloadManifest
from bnw.objects.signed import SignedObject, trusted_object
from bnw.transport.interface import PeerId
from bnw.wire.content_id import ContentId
from bnw.wire.errors import InvalidError, LocalError
from bnw.wire.limits import MAX_PAYLOAD_IN_MEMORY


@dataclass(frozen=True, slots=True)
class CallResult:
    """A call that came to its end, verified. `output` is there exactly when the status is `completed`.

    One of more than `bnw.wire.limits.MAX_PAYLOAD_IN_MEMORY` bytes is stored; `bnw.inbox.opening` opens it.
    """

    invocation: SignedObject
    receipt: SignedObject
    status: str
    output: Payload | StoredPayload | None = field(repr=False)
    code: str | None = None
    problem: Mapping[str, object] | None = None
    """What the provider says about why the call did not complete (RFC 9457), or its words in the receipt."""
    retry_after: int | None = None
    """After how many milliseconds the provider suggests to call again, if it does."""

    @property
    def id(self) -> ContentId:
        """The invocation id."""
        return self.invocation.id

    @property
    def was_begun(self) -> bool:
        """Whether the receipt says that the handler was started."""
        return self._said.started is not None

    @property
    def surely_not_run(self) -> bool:
        """Whether the provider has signed that the call was never begun and never will be."""
        return not self.was_begun and self._said.status in {"rejected", "cancelled", "expired"}

    @property
    def _said(self) -> Receipt:
        body = self.receipt.body
        assert isinstance(body, Receipt)
        return body


@dataclass(frozen=True, slots=True)
class Target:
    """What is being called: the manifest, its descriptor, and what the profile says of it."""

    manifest: SignedObject
    descriptor: bytes = field(repr=False)
    limits: DescriptorLimits | None
    schemas: Mapping[ContentId, bytes] = field(repr=False, default_factory=dict)


class OutputOpener:
    """Brings and opens what a receipt names. What is wrong with it is a `RemoteError`: the provider is to blame."""

    def __init__(self, parts: CallParts) -> None:
        self._parts = parts

    def stored(self, call: AskedCall) -> StoredPayload:
        """The output of a completed call. Raises `LocalError` (`no-output`) and `InvalidError` (`inbox-key-gone`)."""
        if call.output is None:
            raise LocalError(
                "no-output",
                "the call has no output here",
                place=call.signed_invocation.id.hex(),
                cure="`bnw invocation wait` fetches it, if there is one",
            )
        manifest = trusted_object(call.output)
        record = read_access(manifest, reader=self._parts.key.identity, inbox_keys=self._parts.inbox_keys())
        return StoredPayload(manifest, record)

    def opened(self, output: StoredPayload) -> AbstractAsyncContextManager[AsyncIterator[bytes]]:
        """See `bnw.inbox.opening.opened_payload`."""
        parts = self._parts
        return opened_payload(parts.store, output.manifest, output.record, offload=parts.offload)

    async def save(self, output: StoredPayload, path: Path, on_progress: OnProgress = ignore_progress) -> None:
        """See `bnw.inbox.opening.save_payload`."""
        parts = self._parts
        await save_payload(
            parts.store, output.manifest, output.record, path, offload=parts.offload, on_progress=on_progress
        )

    async def let_go(self, output: StoredPayload) -> None:
        """Drop the chunks of an output if it is large. Waiting for the call again brings them back, as long as the
        provider has them.
        """
        await let_go(self._parts, output.manifest)

    async def open(
        self,
        id: ContentId,
        kept: bytes | None,
        target: Target,
        receipt: SignedObject,
        peer: PeerId | None,
        attached: Mapping[ContentId, bytes],
        max_output: int,
        on_progress: OnProgress,
    ) -> Payload | StoredPayload:
        provider = receipt.signer
        try:
            manifest = await self._parts.store.get_object(id) if kept is None else trusted_object(kept)
            if manifest is None or manifest.id != id:
                raise InvalidError("output-missing", "the receipt came without the manifest of its output")
            carried = check_participants(manifest, sender=provider, other=self._parts.key.identity)
            payload = await self._open_carried(
                manifest, carried, target, receipt, peer, attached, max_output, on_progress
            )
        except InvalidError as error:
            raise error.from_peer(did_key(provider)) from error
        return payload

    async def _open_carried(
        self,
        manifest: SignedObject,
        carried: PayloadManifest,
        target: Target,
        receipt: SignedObject,
        peer: PeerId | None,
        attached: Mapping[ContentId, bytes],
        max_output: int,
        on_progress: OnProgress,
    ) -> Payload | StoredPayload:
        assert isinstance(receipt.body, Receipt)
        is_completed = receipt.body.status == STATUS_COMPLETED
        record = read_access(manifest, reader=self._parts.key.identity, inbox_keys=self._parts.inbox_keys())
        limits = target.limits.output if target.limits is not None and is_completed else None
        if is_completed:
            check_privacy(carried, limits)
            check_size_and_type(record, limits)
        check_carried_size(carried, record)
        prefer = () if peer is None else (peer,)
        payload: Payload | StoredPayload
        if record.size <= MAX_PAYLOAD_IN_MEMORY:
            chunks = await fetch_chunks(self._parts.fetcher, carried, prefer, attached)
            payload = open_payload(manifest, record, chunks)
        else:
            most = max_output if limits is None else limits.max_bytes
            if not is_completed or self._parts.workspace is None:
                most = MAX_PAYLOAD_IN_MEMORY
            if record.size > most:
                raise InvalidError(
                    "too-large",
                    f"the output has {record.size:,} bytes, where nothing says that it may have more than {most:,}",
                    cure="allow more: `bnw invocation wait` with --max-output takes the call up again",
                )
            await bring(self._parts, manifest, prefer, on_progress)
            payload = StoredPayload(manifest, record)
        if is_completed and limits is not None:
            await self._check_with_profile(target, payload)
        return payload

    async def _check_with_profile(self, target: Target, payload: Payload | StoredPayload) -> None:
        if await self._parts.plugins.describe(target.descriptor) is None:
            raise LocalError(
                "profile-unavailable",
                "the plug-in that read the descriptor is out of order, so the output cannot be checked",
                cure="run `bnw invocation wait` for this call when it works again",
            )
        plugins = self._parts.plugins
        if isinstance(payload, Payload):
            errors = await plugins.check_output(target.descriptor, target.schemas, payload.media_type, payload.data)
        else:
            errors = await plugins.check_unread(target.descriptor, payload.media_type, payload.size, output=True)
        if errors:
            raise InvalidError("output-invalid", f"the output does not fit its schema: {errors[0]}")


def problem_in(payload: Payload | StoredPayload | None) -> Mapping[str, object] | None:
    """The provider's problem document, if it is one. It is shown to people, and nothing is decided by it."""
    if not isinstance(payload, Payload) or payload.media_type != PROBLEM_TYPE:
        return None
    try:
        problem = json.loads(payload.data)
    except (ValueError, RecursionError):
        return None
    return problem if isinstance(problem, dict) else None
