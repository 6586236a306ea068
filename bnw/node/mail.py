"""Mail of a node: the mailbox that it may be for others, the mailboxes that it uses, and messages without a call."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import anyio

from bnw.blobs.fetcher import BlobFetcher
from bnw.blobs.offload import Offload
from bnw.blobs.transfer import OnProgress
from bnw.identity.inbox_keys import InboxKey
from bnw.identity.keys import IdentityId, SigningKey, did_key
from bnw.inbox.access import AccessRecord
from bnw.inbox.carrier import Carrier
from bnw.inbox.collector import Collector
from bnw.inbox.delivery import REFUSED_BUSY, Courier, InboxServer, Mail
from bnw.inbox.file_source import FileSource
from bnw.inbox.mailbox_protocol import MailboxServer
from bnw.inbox.mailbox_rules import MailboxRules
from bnw.inbox.manifest import payload_body, read_access
from bnw.inbox.messages import MessageEntry, Messages
from bnw.inbox.opening import received_name, save_payload
from bnw.inbox.post import Post, Posted
from bnw.inbox.sealing import OnSealed, Outgoing, seal_to_store
from bnw.inbox.transfer import fetch_payload
from bnw.invoke.mail_desk import MailDesk
from bnw.invoke.resolve import Catalog
from bnw.objects.calls import Invocation
from bnw.objects.catalog import Mailbox
from bnw.objects.mail import PayloadManifest
from bnw.objects.signed import SignedObject
from bnw.store.interface import Store
from bnw.sync.checking import Verify
from bnw.transport.interface import PeerId, Transport
from bnw.wire.content_id import ContentId
from bnw.wire.environment import Environment
from bnw.wire.errors import BnwError, ExitStatus, InvalidError, LocalError, RemoteError

logger = logging.getLogger(__name__)

MAX_ASKED_FOR_RECIPIENT = 64
"""Connected peers that are asked whether they are the recipient of a message."""


@dataclass(frozen=True, slots=True)
class MessageView:
    """A message in the inbox. `size`, `media_type` and `name` are what the sender says; None if it cannot be read."""

    id: ContentId
    entry: MessageEntry
    carried_size: int
    size: int | None
    media_type: str | None
    name: str | None
    problem: str | None


class NodeMail:
    """`load` must have returned before the node is reachable; `run` ends only when cancelled."""

    def __init__(
        self,
        *,
        key: SigningKey,
        inbox_keys: Callable[[], tuple[InboxKey, ...]],
        catalog: Catalog,
        store: Store,
        transport: Transport,
        fetcher: BlobFetcher,
        courier: Courier,
        environment: Environment,
        desk: MailDesk,
        provides: Callable[[ContentId], bool],
        mailboxes: Sequence[str],
        verify: Verify,
    ) -> None:
        self._key = key
        self._inbox_keys = inbox_keys
        self._catalog = catalog
        self._store = store
        self._transport = transport
        self._fetcher = fetcher
        self._courier = courier
        self._environment = environment
        self._provides = provides
        self.used = tuple(mailbox_at(address) for address in mailboxes)
        """The mailboxes that this identity names in its record."""
        self.rules = MailboxRules(store)
        self.carrier = Carrier(store, environment, fetcher, self.rules, peer=transport.peer_id)
        self.messages = Messages(store)
        self.post = Post(transport, catalog.identity_record)
        self._collector = Collector(
            transport,
            store,
            environment,
            fetcher=fetcher,
            key=key,
            mailboxes=lambda: [PeerId(mailbox.peer) for mailbox in self.used],
            is_ready=self._is_ready,
            on_mail=desk.take,
            on_message=self._take_message,
            verify=verify,
        )
        InboxServer(transport, environment, identities=frozenset({key.identity}), on_mail=desk.take)
        MailboxServer(transport, environment, self.carrier, own=key.identity, on_own=self._take_own)

    async def load(self) -> None:
        await self.rules.load()
        await self.carrier.load()
        await self.messages.load()

    async def run(self) -> None:
        if self.used:
            await self._collector.run()

    async def maintain(self) -> None:
        """Before the store removes what has expired, so that chunks go with the objects that list them."""
        await self.carrier.maintain()
        await self._collector.forget_expired()
        await self.messages.remove_expired(now=self._environment.now_ms())

    # Sending

    async def send_file(
        self,
        recipient: IdentityId,
        path: Path,
        *,
        media_type: str,
        name: str | None,
        offload: Offload,
        on_progress: OnSealed,
    ) -> tuple[SignedObject, Posted]:
        """Seal a file for `recipient` and bring it to it, or to its mailboxes; returns once one of them has all of it.

        Raises `LocalError` (`no-inbox-key`, `unreadable`), `InvalidError` and `RemoteError` (`no-mailbox`,
        `mail-not-taken`).
        """
        theirs = await self._catalog.inbox_key(recipient)
        if theirs is None:
            raise LocalError(
                "no-inbox-key",
                "the recipient's identity record is not known here",
                place=did_key(recipient),
                cure="connect to the network it is in; its record may still be on its way",
                exit_status=ExitStatus.UNREACHABLE,
            )
        async with FileSource(path, offload) as source:
            manifest = await seal_to_store(
                Outgoing(source, media_type, name, source.size),
                self._store,
                sender=self._key,
                recipients={recipient: theirs},
                environment=self._environment,
                offload=offload,
                on_progress=on_progress,
            )
        try:
            return manifest, await self._bring(recipient, manifest)
        finally:
            # Whoever holds the message now has all of them, and if nobody does, it has to be sent again.
            with anyio.CancelScope(shield=True):
                for chunk in payload_body(manifest).chunks:
                    await self._store.delete_blob(chunk)

    async def _bring(self, recipient: IdentityId, manifest: SignedObject) -> Posted:
        own = await self._catalog.identity_record(self._key.identity)
        objects = [*([] if own is None else [own]), manifest]
        peer = await self._peer_of(recipient)
        if peer is not None:
            try:
                await self.post.hand_to(peer, objects)
                return Posted((peer,), ())
            except RemoteError as error:
                logger.info("the message %s goes to a mailbox: %s", manifest.id.hex(), error)
        return await self.post.deposit(recipient, objects)

    async def _peer_of(self, recipient: IdentityId) -> PeerId | None:
        """The connected peer that says that it is the recipient's node."""
        for info in self._transport.peers()[:MAX_ASKED_FOR_RECIPIENT]:
            try:
                await self._courier.knock(info.peer, recipient)
            except BnwError:
                continue
            return info.peer
        return None

    # Receiving

    def may_still_hand_on(self, letter: ContentId) -> bool:
        """Whether a mailbox may hold it. Without mailboxes none does."""
        return bool(self.used) and self._collector.may_still_hand_on(letter)

    def _is_ready(self, letter: SignedObject) -> bool:
        """A call waits for its capability, which may be provided a moment after the node has started, or tomorrow; a
        message waits for room.
        """
        body = letter.body
        if isinstance(body, PayloadManifest):
            return self.messages.has_room(letter)
        if not isinstance(body, Invocation) or self._environment.now_ms() >= body.deadline:
            return True
        return self._provides(body.capability)

    async def _take_own(self, peer: PeerId, mail: Mail) -> None:
        """A delivery for this very node that came as to a mailbox: of messages."""
        await self._store.put_objects(mail.introductions, now=self._environment.now_ms())
        for letter in mail.letters:
            if not isinstance(letter.body, PayloadManifest):
                raise InvalidError("wrong-scope", f"a {letter.kind} is delivered otherwise")
            if not self.messages.has_room(letter):
                raise LocalError(REFUSED_BUSY, "there is no room for another message")
            for chunk in letter.body.chunks:
                if chunk in mail.blobs:
                    await self._store.put_blob(mail.blobs[chunk])
            await fetch_payload(self._fetcher, letter, prefer=(peer,))
            await self._take_message(peer, letter)

    async def _take_message(self, peer: PeerId, manifest: SignedObject) -> None:
        await self.messages.take(manifest, now=self._environment.now_ms())

    async def list_messages(self) -> list[MessageView]:
        """All messages, the latest first."""
        views = [await self._view(id, entry) async for id, entry in self.messages.all()]
        return sorted(views, key=lambda view: (-view.entry.received, view.id))

    async def open_message(
        self, reference: str, directory: Path, *, offload: Offload, on_progress: OnProgress
    ) -> tuple[MessageView, Path]:
        """Open a message into a new file in `directory`, under the sender's name made safe.

        Raises `LocalError` (`unknown-message`, `exists`, `inbox-key-gone`, those of writing), `InvalidError`.
        """
        id, entry = await self.messages.find(reference)
        manifest, record = await self._readable(id)
        path = directory / received_name(manifest, record)
        await save_payload(self._store, manifest, record, path, offload=offload, on_progress=on_progress)
        await self.messages.opened(id, entry)
        return await self._view(id, entry), path

    async def drop_message(self, reference: str) -> ContentId:
        """Forget a message. Raises `LocalError` (`unknown-message`)."""
        id, entry = await self.messages.find(reference)
        await self.messages.drop(id, entry)
        return id

    async def _readable(self, id: ContentId) -> tuple[SignedObject, AccessRecord]:
        manifest = await self._store.get_object(id)
        if manifest is None:
            raise LocalError("message-gone", "the message has expired", place=id.hex())
        return manifest, read_access(manifest, reader=self._key.identity, inbox_keys=self._inbox_keys())

    async def _view(self, id: ContentId, entry: MessageEntry) -> MessageView:
        size: int | None = None
        media_type = name = problem = None
        carried = 0
        try:
            manifest, record = await self._readable(id)
            assert isinstance(manifest.body, PayloadManifest)
            carried = manifest.body.size
            size, media_type, name = record.size, record.media_type, record.name
        except BnwError as error:
            problem = error.cause
        return MessageView(id, entry, carried, size, media_type, name, problem)


def mailbox_at(address: str) -> Mailbox:
    """The mailbox at a dial address, which ends with its peer id."""
    mark = "/p2p/" if "/p2p/" in address else ":"  # the second in a simulated network
    peer = address.rpartition(mark)[2]
    return Mailbox(endpoints=(address,), peer=peer)
