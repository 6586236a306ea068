"""Sealed messages that belong to no call: which have come, and whether they have been opened.

A message is a payload manifest in the owner's inbox, with its chunks. Here stands what the node remembers of it, until
it is dropped or expires.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from typing import ClassVar, Final

from bnw.identity.keys import IdentityId
from bnw.inbox.delivery import REFUSED_BUSY
from bnw.objects.fields import BOOLEAN, IDENTITY, TIME, integer, read_fields, spec, write_fields
from bnw.objects.mail import PayloadManifest
from bnw.objects.signed import SignedObject
from bnw.store.interface import Store
from bnw.wire.cbor import decode_map, encode
from bnw.wire.content_id import ContentId
from bnw.wire.errors import ExitStatus, InvalidError, LocalError
from bnw.wire.limits import GIB, KIB

MAX_MESSAGES: Final = 1000
"""Messages that are kept; more wait at the mailbox, or are refused as `busy`."""
MAX_MESSAGES_PER_SENDER: Final = 100
MAX_BYTES: Final = 8 * GIB
MAX_BYTES_PER_SENDER: Final = 2 * GIB
"""Of all chunks, as their manifests declare them, before any is fetched."""
PAGE: Final = 1000
_MAX_ENTRY: Final = KIB


@dataclass(frozen=True, slots=True)
class MessageEntry:
    """One message; times in milliseconds since the Unix epoch."""

    TABLE: ClassVar[str] = "messages"

    bytes: int = spec(integer(0))
    """Of its chunks."""
    expires: int = spec(TIME)
    opened: bool = spec(BOOLEAN)
    received: int = spec(TIME)
    sender: IdentityId = spec(IDENTITY)


class Messages:
    """`load` must have returned before anything is taken."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._of: Counter[IdentityId] = Counter()
        self._bytes: Counter[IdentityId] = Counter()

    async def load(self) -> None:
        """Count what is there. Raises `LocalError` (`store-damaged`)."""
        self._of.clear()
        self._bytes.clear()
        async for _, entry in self.all():
            self._count(entry, 1)

    def has_room(self, manifest: SignedObject) -> bool:
        """Whether a message may be kept, to be asked before its chunks are fetched."""
        sender, size = manifest.signer, _size_of(manifest)
        return (
            self._of.total() < MAX_MESSAGES
            and self._of[sender] < MAX_MESSAGES_PER_SENDER
            and self._bytes.total() + size <= MAX_BYTES
            and self._bytes[sender] + size <= MAX_BYTES_PER_SENDER
        )

    async def take(self, manifest: SignedObject, *, now: int) -> None:
        """Keep a message whose chunks are here. Raises `LocalError` (`busy`) if there is no room for it."""
        if await self._store.get_record(MessageEntry.TABLE, manifest.id) is not None:
            return
        if not self.has_room(manifest):
            raise LocalError(
                REFUSED_BUSY, "there are as many messages as may be", cure="drop some with `bnw inbox ack`"
            )
        entry = MessageEntry(
            bytes=_size_of(manifest),
            expires=manifest.body.expires,
            opened=False,
            received=now,
            sender=manifest.signer,
        )
        data = encode(write_fields(entry))
        await self._store.put_record_with_objects(MessageEntry.TABLE, manifest.id, data, [manifest], now=now)
        self._count(entry, 1)

    async def find(self, reference: str) -> tuple[ContentId, MessageEntry]:
        """The message with this id, or with an id that begins so. Raises `LocalError` (`unknown-message`)."""
        found = [(id, entry) async for id, entry in self.all() if id.hex().startswith(reference)]
        if len(found) != 1:
            raise LocalError(
                "unknown-message" if not found else "ambiguous-message",
                "there is no such message" if not found else f"{len(found)} messages have ids that begin so",
                place=reference,
                cure="`bnw inbox list` shows those that there are",
                exit_status=ExitStatus.USAGE,
            )
        return found[0]

    async def opened(self, id: ContentId, entry: MessageEntry) -> None:
        await self._store.put_record(MessageEntry.TABLE, id, encode(write_fields(replace(entry, opened=True))))

    async def drop(self, id: ContentId, entry: MessageEntry) -> None:
        """Forget a message and its chunks. The mailboxes let go of it when they hear that it has been collected."""
        manifest = await self._store.get_object(id)
        await self._store.delete_record(MessageEntry.TABLE, id)
        self._count(entry, -1)
        if manifest is not None and isinstance(manifest.body, PayloadManifest) and manifest.body.public is None:
            for chunk in manifest.body.chunks:
                await self._store.delete_blob(chunk)

    async def remove_expired(self, *, now: int) -> None:
        async for id, entry in self.all():
            if now >= entry.expires:
                await self.drop(id, entry)

    def _count(self, entry: MessageEntry, change: int) -> None:
        self._of[entry.sender] += change
        self._bytes[entry.sender] += change * entry.bytes

    async def all(self) -> AsyncIterator[tuple[ContentId, MessageEntry]]:
        """All messages, ordered by id."""
        after: bytes | None = None
        while page := await self._store.list_records(MessageEntry.TABLE, after=after, limit=PAGE):
            for key, value in page:
                yield ContentId(key), _decode(key, value)
            after = page[-1][0]


def _size_of(manifest: SignedObject) -> int:
    return manifest.body.size if isinstance(manifest.body, PayloadManifest) else 0


def _decode(key: bytes, data: bytes) -> MessageEntry:
    try:
        return MessageEntry(**read_fields(MessageEntry, decode_map(data, max_size=_MAX_ENTRY), "message"))
    except InvalidError as error:
        raise LocalError(
            "store-damaged",
            f"the entry of a message cannot be read: {error.cause}",
            place=key.hex(),
            cure="restore the home from a backup",
        ) from error
