"""Sorts delivered mail of one identity: to the provider's side, to the requester's, or nowhere.

Only what belongs to a call is kept. An invocation may bring the manifest of its input, a receipt that of its output;
anything else that nobody asked for is refused, so that strangers cannot fill the disk.
"""

from __future__ import annotations

from bnw.inbox.delivery import REFUSED_UNWANTED, Mail
from bnw.invoke.provider import Delivered, Provider
from bnw.invoke.requester import Requester
from bnw.objects.calls import Cancellation, Invocation, InvocationUpdate, Receipt
from bnw.objects.mail import PayloadManifest
from bnw.objects.signed import SignedObject
from bnw.transport.interface import PeerId
from bnw.wire.content_id import ContentId
from bnw.wire.errors import LocalError


class MailDesk:
    def __init__(self, provider: Provider, requester: Requester) -> None:
        self._provider = provider
        self._requester = requester

    async def take(self, peer: PeerId, mail: Mail, *, witnessed: bool = False) -> None:
        """Act on a delivery; what is kept of it is durable when this returns.

        `witnessed` as in `bnw.invoke.provider.Delivered`: for mail that was collected from a mailbox. Raises
        `LocalError`: `busy`, `unwanted` if none of it was asked for, or those of the store.
        """
        by_id = {letter.id: letter for letter in mail.letters}
        invocations = {letter.id for letter in mail.letters if isinstance(letter.body, Invocation)}
        cancelled = {letter.body.invocation: letter for letter in mail.letters if isinstance(letter.body, Cancellation)}
        wanted = False
        for letter in mail.letters:
            match letter.body:
                case Invocation():
                    cancellation = cancelled.get(letter.id)
                    await self._provider.accept(
                        Delivered(
                            letter,
                            peer,
                            (*mail.introductions, *_named(letter.body.input, by_id)),
                            chunks=_chunks(letter.body.input, by_id, mail),
                            cancelled=cancellation is not None and cancellation.signer == letter.signer,
                            witnessed=witnessed,
                        )
                    )
                    wanted = True
                case Cancellation(invocation=invocation) if invocation not in invocations:
                    wanted |= await self._provider.cancel(letter)
                case Receipt(output=output):
                    named = _named(output, by_id)
                    manifest = named[0] if named else None
                    chunks = _chunks(output, by_id, mail)
                    wanted |= await self._requester.take_receipt(letter, manifest, list(chunks.values()))
                case InvocationUpdate():
                    wanted |= await self._requester.take_update(letter)
        if not wanted:
            raise LocalError(REFUSED_UNWANTED, "nothing in this delivery belongs to a call that is known here")


def _named(id: ContentId | None, letters: dict[ContentId, SignedObject]) -> list[SignedObject]:
    return [letters[id]] if id is not None and id in letters else []


def _chunks(id: ContentId | None, letters: dict[ContentId, SignedObject], mail: Mail) -> dict[ContentId, bytes]:
    """Those of the blobs that came along that the payload manifest `id` lists."""
    body = letters[id].body if id is not None and id in letters else None
    if not isinstance(body, PayloadManifest):
        return {}
    return {chunk: mail.blobs[chunk] for chunk in body.chunks if chunk in mail.blobs}
