"""The store contract.

Objects in a store are verified: only `SignedObject`s go in, and reading one back does not verify again. For replaceable
kinds the store holds one object per slot, decides precedence itself (`bnw.objects.rules.precedence`), and keeps both
sides of an equivocation as proof. Time is handed in; the store has no clock.

All methods raise `LocalError`: `disk-full`, `store-damaged` or `store-failed`. When `put_objects`, `put_blob` or
`put_record` returns, what it was given survives a crash of the process; when it raises, nothing of it is visible.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Protocol

from bnw.identity.keys import IdentityId
from bnw.objects.signed import SignedObject
from bnw.wire.content_id import ContentId


class PutOutcome(Enum):
    """What became of one object that was put."""

    ADDED = "added"
    """New; it may have replaced an older one in its slot."""
    KNOWN = "known"
    """This very object was here before."""
    SUPERSEDED = "superseded"
    """A newer object holds its slot; this one was not kept."""
    EQUIVOCATION = "equivocation"
    """The signer contradicts itself. The one with the lower id holds the slot; both are kept as proof."""
    OVER_QUOTA = "over-quota"
    """The signer's share of this store is used up; not kept."""


@dataclass(frozen=True, slots=True)
class Quota:
    """What one identity may hold in the catalog scope of one store."""

    objects: int = 2048
    bytes: int = 8 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class ScopeSummary:
    """How many live objects a scope holds, and the sum of their ids modulo 2^256 (as 32 little-endian bytes).

    Two nodes with the same summary hold the same objects, unless somebody found a collision in BLAKE3 sums; that would
    only delay reconciliation, never forge an object.
    """

    count: int
    fingerprint: bytes


@dataclass(frozen=True, slots=True)
class StoreStatistics:
    objects: int
    object_bytes: int
    blobs: int
    blob_bytes: int


class Store(Protocol):
    """See the module docstring. Scopes are text: `catalog`, or `inbox:` and a did:key."""

    async def put_objects(self, objects: Sequence[SignedObject], *, now: int) -> list[PutOutcome]:
        """Put many objects in one transaction; outcomes in the same order. Expired ones must not be handed in."""
        ...

    async def get_object(self, id: ContentId) -> SignedObject | None:
        """An object by id, also one kept as proof of equivocation."""
        ...

    async def held_in_slot(self, slot: bytes) -> SignedObject | None:
        """The object that holds a slot (`bnw.objects.rules.slot_of`)."""
        ...

    async def list_objects(
        self,
        *,
        kind: str,
        now: int,
        signer: IdentityId | None = None,
        after: ContentId | None = None,
        limit: int = 1000,
    ) -> list[SignedObject]:
        """Live objects of a kind that hold their slot, ordered by id, after `after`."""
        ...

    async def scope_ids(
        self, scope: str, *, now: int, after: ContentId | None = None, limit: int = 1024
    ) -> list[ContentId]:
        """Ids of the live objects of a scope that are on offer to peers, ascending, after `after`."""
        ...

    async def scope_summary(self, scope: str, *, now: int) -> ScopeSummary: ...

    async def missing_objects(self, ids: Collection[ContentId]) -> list[ContentId]:
        """Those of `ids` that are neither here nor known to be superseded, in the given order."""
        ...

    async def equivocations(self) -> list[tuple[SignedObject, SignedObject]]:
        """Pairs of contradicting objects, the winning one first. Bounded per signer."""
        ...

    async def remove_expired(self, *, now: int) -> int:
        """Drop expired objects; returns how many."""
        ...

    async def put_blob(self, data: bytes) -> ContentId:
        """Keep a blob of at most 16 MiB (`InvalidError` `too-large` above that)."""
        ...

    async def get_blob(self, id: ContentId) -> bytes | None:
        """A blob, or the bytes of an object of this id. Bytes on disk that no longer match are `store-damaged`."""
        ...

    async def blob_size(self, id: ContentId) -> int | None:
        """Size in bytes, or None if it is not here."""
        ...

    async def delete_blob(self, id: ContentId) -> bool: ...

    async def put_record(self, table: str, key: bytes, value: bytes) -> None:
        """Keep a small record of the node's own, for example the state of an invocation."""
        ...

    async def get_record(self, table: str, key: bytes) -> bytes | None: ...

    async def delete_record(self, table: str, key: bytes) -> bool: ...

    async def list_records(self, table: str, *, limit: int = 1000) -> list[tuple[bytes, bytes]]:
        """Records of a table, ordered by key."""
        ...

    async def put_record_with_objects(
        self, table: str, key: bytes, value: bytes, objects: Sequence[SignedObject], *, now: int
    ) -> list[PutOutcome]:
        """A record and the objects that belong to it, in one transaction: both survive a crash or neither."""
        ...

    async def statistics(self) -> StoreStatistics: ...
