"""What this node follows, and the blobs that it keeps for it: in the store, so that a restart changes nothing.

Pins are written before the blobs that they pin arrive, so that there is no moment in which a collector of unused blobs
could take one. Of a capability, two versions may be pinned at a time: the one that is whole here, and the one that is
on its way; when that is whole in turn, the older is released.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Final

from bnw.identity.keys import IDENTITY_ID_SIZE, IdentityId, did_key
from bnw.node.descriptors import MAX_LINKS
from bnw.objects.fields import CONTENT_ID, IDENTITY, NAME, TIME, array, optional, read_fields, spec, write_fields
from bnw.store.interface import Store
from bnw.wire.cbor import decode_map, encode
from bnw.wire.content_id import ContentId
from bnw.wire.errors import InvalidError, LocalError
from bnw.wire.limits import KIB

MAX_FOLLOWS: Final = 256
"""Capabilities and identities that one node follows."""
MAX_CAPABILITIES: Final = 1024
"""Capabilities that are kept in all, those of followed identities included.

At most 34 GiB, with two versions of 17 MiB each; a few megabytes in practice.
"""
MAX_RECORD_SIZE: Final = 4 * KIB
MAX_BLOBS_OF_VERSION: Final = 1 + MAX_LINKS


@dataclass(frozen=True, slots=True)
class Follow:
    """What the user asked for: one capability of a publisher, or with `name` None all of them. `since` in ms."""

    TABLE: ClassVar[str] = "follows"

    name: str | None = spec(optional(NAME))
    publisher: IdentityId = spec(IDENTITY)
    since: int = spec(TIME)

    @property
    def key(self) -> bytes:
        return follow_key(self.publisher, self.name)

    @property
    def reference(self) -> str:
        return did_key(self.publisher) if self.name is None else f"{did_key(self.publisher)}/{self.name}"


@dataclass(frozen=True, slots=True)
class Pins:
    """The blobs that are kept for one capability.

    `held` are those of `manifest`, the version that is whole here; `coming` those of the version being fetched.
    """

    TABLE: ClassVar[str] = "pins"

    coming: tuple[ContentId, ...] = spec(array(CONTENT_ID, 0, MAX_BLOBS_OF_VERSION))
    held: tuple[ContentId, ...] = spec(array(CONTENT_ID, 0, MAX_BLOBS_OF_VERSION))
    manifest: ContentId | None = spec(optional(CONTENT_ID))


NO_PINS: Final = Pins(coming=(), held=(), manifest=None)


def follow_key(publisher: IdentityId, name: str | None) -> bytes:
    """The key of a follow, and of the pins of a capability. Identities have a fixed size, so no two are the same."""
    return publisher + (name or "").encode()


def publisher_and_name(key: bytes) -> tuple[IdentityId, str]:
    """What `follow_key` made the key of a capability of."""
    return IdentityId(key[:IDENTITY_ID_SIZE]), key[IDENTITY_ID_SIZE:].decode()


class FollowRecords:
    """The tables of one store. Reading raises `LocalError` (`store-damaged`) for a record that is none."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def follows(self) -> list[Follow]:
        """All that is followed, ordered by publisher and name."""
        rows = await self._store.list_records(Follow.TABLE, limit=MAX_FOLLOWS)
        return [Follow(**_read(Follow, value)) for _, value in rows]

    async def add(self, follow: Follow) -> None:
        await self._store.put_record(Follow.TABLE, follow.key, encode(write_fields(follow)))

    async def remove(self, follow: Follow) -> None:
        await self._store.delete_record(Follow.TABLE, follow.key)

    async def pins(self) -> dict[bytes, Pins]:
        """The pins of all capabilities, by `follow_key`."""
        rows = await self._store.list_records(Pins.TABLE, limit=MAX_CAPABILITIES)
        return {key: Pins(**_read(Pins, value)) for key, value in rows}

    async def pin(self, key: bytes, pins: Pins) -> None:
        await self._store.put_record(Pins.TABLE, key, encode(write_fields(pins)))

    async def release(self, key: bytes) -> None:
        """What was pinned for the capability may go, unless something else pins it."""
        await self._store.delete_record(Pins.TABLE, key)

    async def pinned(self) -> frozenset[ContentId]:
        """All blobs that a collector of unused ones must leave."""
        return frozenset(id for pins in (await self.pins()).values() for id in (*pins.held, *pins.coming))


def _read(cls: type[Follow] | type[Pins], value: bytes) -> dict[str, Any]:
    try:
        return read_fields(cls, decode_map(value, max_size=MAX_RECORD_SIZE), cls.TABLE)
    except InvalidError as error:
        raise LocalError(
            "store-damaged",
            f"a record of what this node follows cannot be read: {error.cause}",
            place=error.place,
            cure="restore the store from a backup, or move it away and start again",
        ) from error
