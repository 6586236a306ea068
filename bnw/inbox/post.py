"""Brings mail to whoever it is for: directly if that can be, else to the mailboxes that the recipient has named."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Final

from bnw.identity.keys import IdentityId, did_key
from bnw.inbox.mailbox_protocol import MailboxClient
from bnw.objects.catalog import IdentityRecord, Mailbox
from bnw.objects.signed import SignedObject
from bnw.transport.interface import PeerId, Transport
from bnw.wire.errors import BnwError, ExitStatus, RemoteError

DIAL_TIMEOUT: Final = 8.0

FindRecord = Callable[[IdentityId], Awaitable[SignedObject | None]]
"""The current record of an identity, if it is known."""


@dataclass(frozen=True, slots=True)
class Posted:
    """Which mailboxes hold the mail now. `problems` are those of the others."""

    mailboxes: tuple[PeerId, ...]
    problems: tuple[str, ...]


class Post:
    def __init__(self, transport: Transport, find_record: FindRecord) -> None:
        self._transport = transport
        self._find_record = find_record
        self._client = MailboxClient(transport)

    async def mailboxes_of(self, recipient: IdentityId) -> tuple[Mailbox, ...]:
        record = await self._find_record(recipient)
        if record is None or not isinstance(record.body, IdentityRecord):
            return ()
        return tuple(mailbox for mailbox in record.body.mailboxes if mailbox.peer != self._transport.peer_id)

    async def hand_to(self, peer: PeerId, objects: Sequence[SignedObject], chunks: Sequence[bytes] = ()) -> None:
        """Hand a message to its recipient's own node, which fetches the chunks. Raises `RemoteError`."""
        await self._client.deposit(peer, objects, chunks)

    async def deposit(
        self, recipient: IdentityId, objects: Sequence[SignedObject], chunks: Sequence[bytes] = ()
    ) -> Posted:
        """Leave `objects` at every mailbox of `recipient` that takes them; one is enough.

        `chunks` go with them if they are small; otherwise the mailbox fetches them from here before it confirms. Raises
        `RemoteError`: `no-mailbox` if the recipient has none that is known, or `mail-not-taken` with all their reasons.
        """
        mailboxes = await self.mailboxes_of(recipient)
        if not mailboxes:
            raise RemoteError(
                "no-mailbox",
                "the recipient cannot be reached and has named no mailbox",
                place=did_key(recipient),
                cure="try again when it is online",
                exit_status=ExitStatus.UNREACHABLE,
            )
        held: list[PeerId] = []
        problems: list[str] = []
        for mailbox in mailboxes:
            try:
                peer = await self._reach(mailbox)
                await self._client.deposit(peer, objects, chunks)
                held.append(peer)
            except BnwError as error:
                problems.append(f"mailbox {mailbox.peer}: {error.cause}")
        if not held:
            raise RemoteError(
                "mail-not-taken",
                "; ".join(problems),
                place=did_key(recipient),
                cure="try again later",
                exit_status=ExitStatus.UNREACHABLE,
            )
        return Posted(tuple(held), tuple(problems))

    async def _reach(self, mailbox: Mailbox) -> PeerId:
        peer = PeerId(mailbox.peer)
        if any(info.peer == peer for info in self._transport.peers()):
            return peer
        problems: list[str] = []
        for endpoint in mailbox.endpoints:
            try:
                found = await self._transport.dial(endpoint, timeout=DIAL_TIMEOUT)
            except BnwError as error:
                problems.append(f"{endpoint}: {error.cause}")
                continue
            if found == peer:
                return peer
            problems.append(f"{endpoint}: another peer is there")
        raise RemoteError("unreachable", "; ".join(problems) or "its record names no endpoint", place=f"peer {peer}")
