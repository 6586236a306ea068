"""The owner's side of mailboxes: collects mail, hands it on once, and releases it.

Mail is pulled from every connected mailbox that the owner uses, into the owner's own inbox scope, and then handed on in
groups: a call with its input, a receipt with its output. What was handed on is remembered until it expires, so that it
comes no second time, whichever mailbox offers it.

A call is different. If this node's store was restored from a backup, it may have run a call that it knows nothing of.
So a call is handed on only after every mailbox has let go of it, or says that it holds it no more, and it counts as
witnessed only if one of them held it until then (`bnw.invoke.provider.Delivered`).
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Final, Protocol

import anyio

from bnw.blobs.fetcher import BlobFetcher
from bnw.identity.keys import IdentityId, SigningKey
from bnw.inbox.delivery import REFUSED_UNWANTED, Mail
from bnw.inbox.mailbox_protocol import MailboxClient
from bnw.inbox.transfer import fetch_payload
from bnw.objects.admission import check_inbox_object
from bnw.objects.calls import Cancellation, Invocation, Receipt
from bnw.objects.fields import IDENTITY, TIME, array, read_fields, spec, text, write_fields
from bnw.objects.mail import Acknowledgement, PayloadManifest
from bnw.objects.rules import identity_slot, recipients_of
from bnw.objects.signed import SignedObject, UnverifiedObject, sign_object
from bnw.store.interface import Store
from bnw.store.scopes import inbox_scope
from bnw.sync.backoff import Backoff
from bnw.sync.checking import Verify
from bnw.sync.inbox_access import InboxReader
from bnw.sync.puller import Puller
from bnw.sync.scope_index import ScopeIndex
from bnw.transport.interface import PeerId, Transport
from bnw.wire.cbor import decode_map, encode
from bnw.wire.content_id import ContentId
from bnw.wire.environment import Environment, random_below
from bnw.wire.errors import InvalidError, LocalError, RemoteError
from bnw.wire.limits import KIB, MAX_ACKNOWLEDGED, MAX_MAILBOXES, MINUTE

logger = logging.getLogger(__name__)

COLLECT_PERIOD: Final = 5.0
"""Seconds between two looks into a mailbox; each wait is between half and one and a half of it."""
RETRY_PERIOD: Final = 60.0
"""Seconds until a payload that could not be had is tried again."""
MAX_GROUP_WAIT: Final = 2 * MINUTE
"""How long a letter waits for what belongs to it, such as its sender's identity record; then it goes on without."""
PAGE: Final = 1000
_MAX_ENTRY: Final = 2 * KIB


@dataclass(frozen=True, slots=True)
class CollectedLetter:
    """What became of one letter. It is kept until the letter expires."""

    TABLE: ClassVar[str] = "collected-mail"

    expires: int = spec(TIME)
    released_by: tuple[str, ...] = spec(array(text(1, 128), 0, 4 * MAX_MAILBOXES))
    """Mailboxes that know that it has arrived."""
    sender: IdentityId = spec(IDENTITY)


class TakeMail(Protocol):
    async def __call__(self, peer: PeerId, mail: Mail, *, witnessed: bool) -> None:
        """Act on mail; what is kept of it is durable when this returns. `LocalError` with the code `unwanted` refuses
        it for good, any other one for now.
        """


TakeMessage = Callable[[PeerId, SignedObject], Awaitable[None]]
"""Takes a payload that belongs to no call. Raises as `TakeMail` does."""


class Collector:
    """`run` ends only when cancelled. `mailboxes` gives the peers that the owner uses as mailboxes now.

    A letter that `is_ready` says no to stays in the mailbox for now.
    """

    def __init__(
        self,
        transport: Transport,
        store: Store,
        environment: Environment,
        *,
        fetcher: BlobFetcher,
        key: SigningKey,
        mailboxes: Callable[[], Collection[PeerId]],
        is_ready: Callable[[SignedObject], bool],
        on_mail: TakeMail,
        on_message: TakeMessage,
        verify: Verify,
    ) -> None:
        self._transport = transport
        self._store = store
        self._environment = environment
        self._fetcher = fetcher
        self._key = key
        self._mailboxes = mailboxes
        self._is_ready = is_ready
        self._on_mail = on_mail
        self._on_message = on_message
        self._scope = inbox_scope(key.identity)
        self._client = MailboxClient(transport)
        self._puller = Puller(
            transport,
            store,
            environment,
            ScopeIndex(store, self._scope),
            check=self._check,
            verify=verify,
            on_news=self._take_news,
            reader=InboxReader(key, transport.peer_id),
        )
        self._backoff = Backoff()
        self._pending: dict[ContentId, int] = {}
        """Letters to be handed on, and since when they have been here."""
        self._unreleased: dict[ContentId, CollectedLetter] = {}
        """Letters that were handed on, and of which some mailbox does not know that yet."""
        self._looked_into: set[PeerId] = set()
        """Mailboxes of which everything has been collected since this node started."""
        self._not_before: dict[ContentId, float] = {}
        """When to try again those whose payload could not be had."""
        self._witnessed: set[ContentId] = set()
        """Of these, calls that a mailbox has let go of since this node started."""
        self._wake = anyio.Event()

    def may_still_hand_on(self, id: ContentId) -> bool:
        """Whether a letter is about to be handed on, or may be: not all mailboxes have been looked into yet."""
        return id in self._pending or not self._looked_into.issuperset(self._mailboxes())

    def collect_soon(self) -> None:
        """Look into the mailboxes now."""
        self._wake.set()

    async def run(self) -> None:
        await self._find_pending()
        while True:
            for peer in self._connected():
                await self._visit(peer)
            with anyio.move_on_after(COLLECT_PERIOD * (0.5 + random_below(self._environment, 1000) / 1000)):
                await self._wake.wait()
            self._wake = anyio.Event()

    async def _visit(self, peer: PeerId) -> None:
        now = anyio.current_time()
        if self._backoff.remaining(peer, now):
            return
        try:
            report = await self._puller.pull(peer)
            if report.refused is not None:
                jitter = random_below(self._environment, 1000) / 1000
                self._backoff.failed(peer, now, jitter, first=float(report.refused.retry_after))
                return
            self._backoff.succeeded(peer)
            if report.is_complete:
                self._looked_into.add(peer)
            await self._hand_on(peer)
            await self._release_taken(peer)
        except RemoteError as error:
            logger.info("mailbox %s: %s", peer, error)
            self._backoff.failed(peer, now, random_below(self._environment, 1000) / 1000)
        except LocalError as error:
            logger.error("mail from %s: %s", peer, error)

    # What has arrived

    def _check(self, data: bytes, now: int) -> UnverifiedObject:
        obj = check_inbox_object(data, now)
        if self._key.identity not in recipients_of(obj.body):
            raise InvalidError("wrong-scope", "an object of somebody else's inbox", place=obj.id.hex())
        return obj

    def _take_news(self, obj: SignedObject) -> None:
        if obj.signer != self._key.identity:
            self._pending[obj.id] = self._environment.now_ms()

    async def _find_pending(self) -> None:
        """What a crash has left between arrival and handing on, and between that and releasing."""
        self._unreleased = {id: entry async for id, entry in self._all() if not self._is_released(entry)}
        now, after = self._environment.now_ms(), None
        while ids := await self._store.scope_ids(self._scope, now=now, after=after, limit=PAGE):
            for id in ids:
                if await self._collected(id) is None:
                    letter = await self._store.get_object(id)
                    if letter is not None and letter.signer != self._key.identity:
                        self._pending[id] = now
            after = ids[-1]

    async def _hand_on(self, peer: PeerId) -> None:
        now = self._environment.now_ms()
        letters = [letter for id in list(self._pending) if (letter := await self._store.get_object(id)) is not None]
        held = {letter.id for letter in letters}
        for id in [id for id in self._pending if id not in held]:
            self._forget(id)  # expired meanwhile
        for letter in sorted(letters, key=lambda letter: letter.body.created):
            if letter.id in self._pending and not isinstance(letter.body, PayloadManifest):
                await self._hand_on_one(peer, letter, letters, now)
        for letter in letters:
            if letter.id in self._pending and isinstance(letter.body, PayloadManifest):
                await self._hand_on_message(peer, letter, letters)

    async def _hand_on_one(self, peer: PeerId, letter: SignedObject, letters: Sequence[SignedObject], now: int) -> None:
        if not self._is_ready(letter):
            return
        named = _payload_named_by(letter)
        payload = None if named is None else await self._store.get_object(named)
        introductions = await self._introductions(letter)
        is_whole = (named is None or payload is not None) and bool(introductions)
        if not is_whole and now < self._pending[letter.id] + MAX_GROUP_WAIT:
            return
        group = [letter]
        if payload is not None:
            if not await self._has_chunks(peer, letter, payload):
                return
            group.append(payload)
        if isinstance(letter.body, Invocation):
            group += [
                other
                for other in letters
                if isinstance(other.body, Cancellation) and other.body.invocation == letter.id
            ]
            witnessed = await self._is_released_everywhere(group)
            if witnessed is None:
                return
        else:
            witnessed = False
        try:
            await self._on_mail(peer, Mail(tuple(introductions), tuple(group)), witnessed=witnessed)
        except LocalError as error:
            if error.code != REFUSED_UNWANTED:
                logger.info("a letter stays in the inbox: %s", error)
                return
            logger.info("a letter is of no use here: %s", error)
        except InvalidError as error:
            logger.warning("a letter is invalid: %s", error)
        await self._remember(group)

    async def _hand_on_message(self, peer: PeerId, letter: SignedObject, letters: Sequence[SignedObject]) -> None:
        if letter.id in {_payload_named_by(other) for other in letters}:
            return  # it is handed on with what names it
        if not self._is_ready(letter) or not await self._has_chunks(peer, letter, letter):
            return
        try:
            await self._on_message(peer, letter)
        except LocalError as error:
            if error.code != REFUSED_UNWANTED:
                logger.info("a message stays in the inbox: %s", error)
                return
            logger.info("a message is of no use here: %s", error)
        except InvalidError as error:
            logger.warning("a message is invalid: %s", error)
        await self._remember([letter])

    async def _has_chunks(self, peer: PeerId, letter: SignedObject, payload: SignedObject) -> bool:
        """Bring the chunks that a letter needs; whether they are here. What cannot be had must not keep other mail."""
        now = anyio.current_time()
        if now < self._not_before.get(letter.id, now):
            return False
        try:
            await fetch_payload(self._fetcher, payload, prefer=(peer,))
        except RemoteError as error:
            logger.info("the payload of letter %s: %s", letter.id.hex(), error)
            self._not_before[letter.id] = now + RETRY_PERIOD
            return False
        return True

    async def _introductions(self, letter: SignedObject) -> list[SignedObject]:
        record = await self._store.held_in_slot(identity_slot(letter.signer))
        found = [] if record is None else [record]
        if isinstance(letter.body, Invocation):
            links = [await self._store.get_object(id) for id in letter.body.delegations]
            found += [link for link in links if link is not None]
        return found

    # Releasing

    async def _is_released_everywhere(self, group: Sequence[SignedObject]) -> bool | None:
        """Have all mailboxes let go of a call; whether one held it until now. None if one of them cannot be asked."""
        mailboxes = self._mailboxes()
        connected = self._connected()
        if any(peer not in connected for peer in mailboxes):
            return None
        ids = tuple(sorted(letter.id for letter in group))
        acknowledgement = self._acknowledge(group[0].signer, ids)
        for peer in connected:
            try:
                if group[0].id in await self._client.release(peer, acknowledgement):
                    self._witnessed.add(group[0].id)
            except RemoteError as error:
                logger.info("mailbox %s has not released a call: %s", peer, error)
                return None
        return group[0].id in self._witnessed

    async def _remember(self, letters: Sequence[SignedObject]) -> None:
        for letter in letters:
            if await self._collected(letter.id) is None:
                entry = CollectedLetter(expires=letter.body.expires, released_by=(), sender=letter.signer)
                await self._put(letter.id, entry)
                self._unreleased[letter.id] = entry
            self._forget(letter.id)

    def _forget(self, id: ContentId) -> None:
        self._pending.pop(id, None)
        self._witnessed.discard(id)
        self._not_before.pop(id, None)

    async def _release_taken(self, peer: PeerId) -> None:
        """Tell a mailbox of what was handed on and it does not know of."""
        now = self._environment.now_ms()
        by_sender: dict[IdentityId, list[tuple[ContentId, CollectedLetter]]] = {}
        for id, entry in list(self._unreleased.items()):
            if now >= entry.expires:
                del self._unreleased[id]
            elif peer not in entry.released_by:
                by_sender.setdefault(entry.sender, []).append((id, entry))
        for sender, entries in by_sender.items():
            for start in range(0, len(entries), MAX_ACKNOWLEDGED):
                some = entries[start : start + MAX_ACKNOWLEDGED]
                await self._client.release(peer, self._acknowledge(sender, tuple(sorted(id for id, _ in some))))
                for id, entry in some:
                    told = (*entry.released_by, str(peer))[-4 * MAX_MAILBOXES :]
                    known = replace(entry, released_by=told)
                    await self._put(id, known)
                    self._unreleased[id] = known
                    if self._is_released(known):
                        del self._unreleased[id]

    def _is_released(self, entry: CollectedLetter) -> bool:
        return set(self._mailboxes()).issubset(entry.released_by)

    async def forget_expired(self) -> None:
        """Forget letters that no mailbox may offer any more. Raises `LocalError`."""
        now = self._environment.now_ms()
        for id, expires in [(id, entry.expires) async for id, entry in self._all()]:
            if now >= expires:
                await self._store.delete_record(CollectedLetter.TABLE, id)

    def _acknowledge(self, sender: IdentityId, ids: tuple[ContentId, ...]) -> SignedObject:
        now = self._environment.now_ms()
        body = Acknowledgement(created=now, expires=now + 10 * MINUTE, objects=ids, recipient=sender)
        return sign_object(body, self._key)

    # Inner workings

    def _connected(self) -> list[PeerId]:
        here = {info.peer for info in self._transport.peers()}
        return sorted(peer for peer in self._mailboxes() if peer in here)

    async def _collected(self, id: ContentId) -> CollectedLetter | None:
        data = await self._store.get_record(CollectedLetter.TABLE, id)
        return None if data is None else _decode(id, data)

    async def _put(self, id: ContentId, entry: CollectedLetter) -> None:
        await self._store.put_record(CollectedLetter.TABLE, id, encode(write_fields(entry)))

    async def _all(self) -> AsyncIterator[tuple[ContentId, CollectedLetter]]:
        after: bytes | None = None
        while page := await self._store.list_records(CollectedLetter.TABLE, after=after, limit=PAGE):
            for key, value in page:
                yield ContentId(key), _decode(key, value)
            after = page[-1][0]


def _payload_named_by(letter: SignedObject) -> ContentId | None:
    match letter.body:
        case Invocation(input=payload):
            return payload
        case Receipt(output=payload):
            return payload
        case _:
            return None


def _decode(key: bytes, data: bytes) -> CollectedLetter:
    try:
        return CollectedLetter(**read_fields(CollectedLetter, decode_map(data, max_size=_MAX_ENTRY), "collected mail"))
    except InvalidError as error:
        raise LocalError(
            "store-damaged",
            f"an entry about collected mail cannot be read: {error.cause}",
            place=key.hex(),
            cure="restore the home from a backup",
        ) from error
