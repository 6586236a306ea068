"""The mailbox's side: holds mail for the identities that it serves, which it cannot read (design section 9).

What is accepted is durable, with all chunks, before the sender hears so, and waits until its recipient releases it with
an acknowledgement, or it expires or becomes too old. Quotas are checked against what an object says of its size before
anything is fetched. Of what was released the mailbox remembers the id until the object expires: a sender that delivers
it again is told that it was delivered, and nobody gets it twice.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import ClassVar, Final

import anyio

from bnw.blobs.fetcher import BlobFetcher
from bnw.identity.keys import IDENTITY_ID_SIZE, IdentityId, did_key
from bnw.inbox.delivery import REFUSED_BUSY, REFUSED_NOT_HERE, Mail
from bnw.inbox.mailbox_refusals import REFUSED_FULL, REFUSED_UNAVAILABLE
from bnw.inbox.mailbox_rules import Allowance, MailboxRules
from bnw.inbox.transfer import fetch_payload
from bnw.objects.fields import BOOLEAN, TIME, integer, read_fields, spec, write_fields
from bnw.objects.mail import Acknowledgement, PayloadManifest
from bnw.objects.rules import recipients_of
from bnw.objects.signed import SignedObject
from bnw.store.interface import Store
from bnw.sync.inbox_access import mailboxes_of
from bnw.transport.interface import PeerId
from bnw.wire.cbor import decode_map, encode
from bnw.wire.content_id import CONTENT_ID_SIZE, ContentId
from bnw.wire.environment import Environment
from bnw.wire.errors import InvalidError, LocalError, RemoteError
from bnw.wire.limits import KIB

logger = logging.getLogger(__name__)

MAX_TAKING: Final = 16
"""Deliveries that are taken in at once, their chunks fetched. Further ones are refused as `busy`."""
MAX_TAKING_PER_PEER: Final = 4
MAX_REMEMBERED: Final = 200_000
"""Objects of one inbox that are held or, until they expire, remembered as released. Beyond that none is taken."""
PAGE: Final = 1000
_MAX_ENTRY: Final = KIB


@dataclass(frozen=True, slots=True)
class HeldMail:
    """One object in one inbox, as its mailbox remembers it. The key is the identity and the object's id."""

    TABLE: ClassVar[str] = "carried-mail"

    accepted: int = spec(TIME)
    bytes: int = spec(integer(0))
    """Of the object and its chunks; 0 once it was released."""
    expires: int = spec(TIME)
    released: bool = spec(BOOLEAN)


@dataclass(frozen=True, slots=True)
class InboxStatus:
    """What a mailbox holds for one identity. `allowance` is None if it is not served any more."""

    identity: IdentityId
    allowance: Allowance | None
    objects: int
    bytes: int
    oldest: int | None
    """When the oldest that waits was accepted."""


class Carrier:
    """`load` must have returned before anything else is asked. `peer` is this node's peer id."""

    def __init__(
        self, store: Store, environment: Environment, fetcher: BlobFetcher, rules: MailboxRules, *, peer: PeerId
    ) -> None:
        self._store = store
        self._environment = environment
        self._fetcher = fetcher
        self._rules = rules
        self._peer = peer
        self._lock = anyio.Lock()
        self._objects: Counter[IdentityId] = Counter()
        self._bytes: Counter[IdentityId] = Counter()
        self._released: Counter[IdentityId] = Counter()
        self._taking: Counter[PeerId] = Counter()

    async def load(self) -> None:
        """Count what is held. Raises `LocalError` (`store-damaged`)."""
        self._objects.clear()
        self._bytes.clear()
        self._released.clear()
        async for identity, _, held in self._all():
            self._count(identity, held, 1)

    def serves(self, identity: IdentityId) -> bool:
        return identity in self._rules.served

    async def take(self, peer: PeerId, mail: Mail) -> None:
        """Accept a delivery for identities that are served here, whole or not at all.

        If the disk fails in the middle, a part may be held, and the next delivery of the same completes it.

        Raises `LocalError`: `not-here` if none of the recipients of a letter has named this mailbox in its record,
        `mailbox-full`, `busy`, `unavailable` if the chunks cannot be had from the sender, or those of the store.
        """
        letters = [(letter, await self._inboxes_of(letter)) for letter in mail.letters]
        if any(not inboxes for _, inboxes in letters):
            raise LocalError(REFUSED_NOT_HERE, "a letter is for nobody who has named this mailbox")
        async with self._place(peer), self._reserved(letters) as new:
            for letter, _ in new:
                await self._bring_chunks(peer, letter, mail)
            now = self._environment.now_ms()
            await self._store.put_objects(mail.introductions, now=now)
            # What refers to a payload comes first, so that a reader never takes the payload for mail of its own.
            for letter, inboxes in sorted(new, key=lambda item: isinstance(item[0].body, PayloadManifest)):
                for inbox in inboxes:
                    entry = HeldMail(accepted=now, bytes=_size_of(letter), expires=letter.body.expires, released=False)
                    await self._put(inbox, letter.id, entry, letter, now)

    async def release(self, acknowledgement: SignedObject) -> list[ContentId]:
        """Let go of what the recipient says it has; returns those ids that were held until now, durably.

        For a signer that nothing is held for, served or not, that is none. Raises `LocalError` as the store does.
        """
        body = acknowledgement.body
        assert isinstance(body, Acknowledgement)
        owner = acknowledgement.signer
        async with self._lock:
            held = [id for id in body.objects if await self._is_waiting(owner, id)]
            for id in held:
                await self._release(owner, id)
            return held

    async def maintain(self) -> None:
        """Drop what has expired or waited for too long."""
        now = self._environment.now_ms()
        async with self._lock:
            async for identity, id, held in self._all():
                allowance = self._rules.served.get(identity)
                is_old = allowance is not None and now >= held.accepted + allowance.age
                if is_old and not held.released:
                    await self._release(identity, id)
                if now >= held.expires:
                    await self._forget(identity, id, held)

    async def status(self) -> list[InboxStatus]:
        """What is held, for every identity that is served or for which something is held; ordered by identity."""
        oldest: dict[IdentityId, int] = {}
        async for identity, _, held in self._all():
            if not held.released:
                oldest[identity] = min(oldest.get(identity, held.accepted), held.accepted)
        waiting = Counter[IdentityId]()
        async for identity, _, held in self._all():
            waiting[identity] += not held.released
        return [
            InboxStatus(
                identity=identity,
                allowance=self._rules.served.get(identity),
                objects=waiting[identity],
                bytes=self._bytes[identity],
                oldest=oldest.get(identity),
            )
            for identity in sorted({*self._rules.served, *oldest})
        ]

    async def kept_blobs(self) -> AsyncIterator[ContentId]:
        """The chunks of all payloads that wait here."""
        async for _, id, held in self._all():
            if not held.released:
                for chunk in await self._chunks_of(id):
                    yield chunk

    # Inner workings

    async def _inboxes_of(self, letter: SignedObject) -> list[IdentityId]:
        """Whose inboxes of this mailbox the letter is for: not its sender's, who has it."""
        served = [one for one in recipients_of(letter.body) if one != letter.signer and self.serves(one)]
        now = self._environment.now_ms()
        return [one for one in served if self._peer in await mailboxes_of(self._store, one, now=now)]

    @asynccontextmanager
    async def _place(self, peer: PeerId) -> AsyncIterator[None]:
        if self._taking.total() >= MAX_TAKING or self._taking[peer] >= MAX_TAKING_PER_PEER:
            raise LocalError(REFUSED_BUSY, "this mailbox is taking in as much mail as it can at once")
        self._taking[peer] += 1
        try:
            yield
        finally:
            self._taking[peer] -= 1
            if not self._taking[peer]:
                del self._taking[peer]

    @asynccontextmanager
    async def _reserved(
        self, letters: Sequence[tuple[SignedObject, list[IdentityId]]]
    ) -> AsyncIterator[list[tuple[SignedObject, list[IdentityId]]]]:
        """Set room aside for those of `letters` that are not held or released already, and give these."""
        async with self._lock:
            new = [
                (letter, missing)
                for letter, inboxes in letters
                if (missing := [one for one in inboxes if await self._entry(one, letter.id) is None])
            ]
            needed = [(one, _size_of(letter)) for letter, inboxes in new for one in inboxes]
            self._check_room(needed)
            self._set_aside(needed, 1)
        try:
            yield new
        finally:
            # What was put has been counted by itself.
            self._set_aside(needed, -1)

    def _check_room(self, needed: Iterable[tuple[IdentityId, int]]) -> None:
        objects, sizes = Counter[IdentityId](), Counter[IdentityId]()
        for identity, size in needed:
            objects[identity] += 1
            sizes[identity] += size
        for identity in objects:
            allowance = self._rules.served[identity]
            if (
                self._objects[identity] + objects[identity] > allowance.objects
                or self._objects[identity] + self._released[identity] >= MAX_REMEMBERED
                or self._bytes[identity] + sizes[identity] > allowance.bytes
            ):
                raise LocalError(REFUSED_FULL, "the inbox has no room", place=did_key(identity))

    def _set_aside(self, needed: Iterable[tuple[IdentityId, int]], change: int) -> None:
        for identity, size in needed:
            self._objects[identity] += change
            self._bytes[identity] += change * size

    async def _bring_chunks(self, peer: PeerId, letter: SignedObject, mail: Mail) -> None:
        body = letter.body
        if not isinstance(body, PayloadManifest):
            return
        for chunk in body.chunks:
            if chunk in mail.blobs:
                await self._store.put_blob(mail.blobs[chunk])
        try:
            await fetch_payload(self._fetcher, letter, prefer=(peer,))
        except RemoteError as error:
            raise LocalError(REFUSED_UNAVAILABLE, f"the chunks of a payload cannot be had: {error.cause}") from error
        except InvalidError as error:
            raise LocalError(REFUSED_UNAVAILABLE, f"a chunk of a payload is not as declared: {error.cause}") from error

    async def _put(self, inbox: IdentityId, id: ContentId, entry: HeldMail, letter: SignedObject, now: int) -> None:
        async with self._lock:
            if await self._entry(inbox, id) is None:  # or a delivery of the same at the same time was faster
                data = encode(write_fields(entry))
                await self._store.put_record_with_objects(HeldMail.TABLE, inbox + id, data, [letter], now=now)
                self._count(inbox, entry, 1)

    async def _release(self, owner: IdentityId, id: ContentId) -> None:
        entry = await self._entry(owner, id)
        assert entry is not None
        gone = HeldMail(accepted=entry.accepted, bytes=0, expires=entry.expires, released=True)
        await self._store.put_record(HeldMail.TABLE, owner + id, encode(write_fields(gone)))
        self._count(owner, entry, -1)
        self._count(owner, gone, 1)
        await self._drop_unless_wanted(id)

    async def _forget(self, owner: IdentityId, id: ContentId, held: HeldMail) -> None:
        current = await self._entry(owner, id) or held
        await self._store.delete_record(HeldMail.TABLE, owner + id)
        self._count(owner, current, -1)
        await self._drop_unless_wanted(id)

    async def _drop_unless_wanted(self, id: ContentId) -> None:
        """Remove an object and its chunks once it waits for nobody."""
        letter = await self._store.get_object(id)
        if letter is None or any([await self._is_waiting(one, id) for one in recipients_of(letter.body)]):
            return
        body = letter.body
        await self._store.delete_inbox_objects([id])
        # The chunks of a sealed payload belong to it alone; those of a public one may be somebody else's as well.
        if isinstance(body, PayloadManifest) and body.public is None:
            for chunk in body.chunks:
                await self._store.delete_blob(chunk)

    async def _chunks_of(self, id: ContentId) -> tuple[ContentId, ...]:
        letter = await self._store.get_object(id)
        return letter.body.chunks if letter is not None and isinstance(letter.body, PayloadManifest) else ()

    async def _is_waiting(self, owner: IdentityId, id: ContentId) -> bool:
        entry = await self._entry(owner, id)
        return entry is not None and not entry.released

    async def _entry(self, owner: IdentityId, id: ContentId) -> HeldMail | None:
        data = await self._store.get_record(HeldMail.TABLE, owner + id)
        return None if data is None else _decode(owner + id, data)

    async def _all(self) -> AsyncIterator[tuple[IdentityId, ContentId, HeldMail]]:
        after: bytes | None = None
        while page := await self._store.list_records(HeldMail.TABLE, after=after, limit=PAGE):
            for key, value in page:
                yield IdentityId(key[:IDENTITY_ID_SIZE]), ContentId(key[IDENTITY_ID_SIZE:]), _decode(key, value)
            after = page[-1][0]

    def _count(self, identity: IdentityId, entry: HeldMail, change: int) -> None:
        (self._released if entry.released else self._objects)[identity] += change
        self._bytes[identity] += change * entry.bytes


def _size_of(letter: SignedObject) -> int:
    body = letter.body
    return len(letter.data) + (body.size if isinstance(body, PayloadManifest) else 0)


def _decode(key: bytes, data: bytes) -> HeldMail:
    try:
        if len(key) != IDENTITY_ID_SIZE + CONTENT_ID_SIZE:
            raise InvalidError("field", "the key has another length")
        return HeldMail(**read_fields(HeldMail, decode_map(data, max_size=_MAX_ENTRY), "held mail"))
    except InvalidError as error:
        raise LocalError(
            "store-damaged",
            f"an entry of the mailbox cannot be read: {error.cause}",
            place=key.hex(),
            cure="restore the home from a backup",
        ) from error
