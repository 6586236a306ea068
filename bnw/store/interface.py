"""The store contract.

Objects in a store are verified: only `SignedObject`s go in, and reading one back does not verify again. For replaceable
kinds the store holds one object per slot, decides precedence itself (`bnw.store.placement`), and keeps both sides of an
equivocation as proof. Time is handed in; the store has no clock.

All methods raise `LocalError`: `disk-full`, `store-damaged` or `store-failed`. When `put_objects`, `put_blob` or
`put_record` returns, what it was given survives a crash of the process; when it raises, nothing of it is visible. (A
call that is cancelled may have happened or not.) Values that break a limit or a form raise `InvalidError`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple, Protocol

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
    """The signer contradicts itself. The one with the lower id holds the slot; both are kept as proof.

    One pair proves it for a slot and sequence, and a few for a signer; further losers are not kept.
    """
    OVER_QUOTA = "over-quota"
    """The signer's share of this store is used up; not kept."""


@dataclass(frozen=True, slots=True)
class Quota:
    """What one identity may hold in the catalog scope of one store."""

    objects: int = 2048
    bytes: int = 8 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class ScopeSummary:
    """How many live objects a scope holds, and the sum of their ids modulo 2^256.

    As in Negentropy, ids are read as little-endian integers and the sum is written as 32 little-endian bytes.

    Two nodes with the same summary hold the same objects, unless somebody found a collision in BLAKE3 sums; that would
    only delay reconciliation, never forge an object.
    """

    count: int
    fingerprint: bytes


class ScopeItem(NamedTuple):
    """An object of a scope in the order of reconciliation: by the time it says it was created, then by id."""

    created: int
    """The `created` field of the signed body, in milliseconds: only the signer chooses it, and it never changes."""
    id: ContentId


class ScopeChange(NamedTuple):
    item: ScopeItem
    added: bool
    """False if it was removed: replaced, expired, or lost to a contradiction."""


ScopeWatcher = Callable[[Sequence[ScopeChange]], None]
"""Told of changes in a scope, in order. Must neither block nor raise."""


@dataclass(frozen=True, slots=True)
class StoreStatistics:
    """Numbers and bytes of the objects that are held (not those kept only as proof) and of the blobs."""

    objects: int
    object_bytes: int
    blobs: int
    blob_bytes: int


class Store(Protocol):
    """See the module docstring. Scopes are text: `catalog`, or `inbox:` and a did:key (`bnw.store.scopes`)."""

    async def put_objects(self, objects: Sequence[SignedObject], *, now: int) -> list[PutOutcome]:
        """Put many objects in one transaction; outcomes in the same order.

        Raises `InvalidError` (`expired`), and puts nothing, if one of them has expired at `now`.
        """
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

    async def scope_items(
        self, scope: str, *, now: int, after: ContentId | None = None, limit: int = 1024
    ) -> list[ScopeItem]:
        """Like `scope_ids`, with the time of each object; ascending by id, not by time."""
        ...

    async def expired_items(self, scope: str, *, now: int) -> list[ScopeItem]:
        """What has expired in a scope and has not been removed yet; ascending by id."""
        ...

    async def scope_objects(self, scope: str, ids: Collection[ContentId], *, now: int) -> list[bytes]:
        """The bytes of those of `ids` that are live in the scope, in the given order.

        An id that is not in this very scope is passed over as if it were unknown, so that peers who may read one scope
        cannot read another by id.
        """
        ...

    def watch_scope(self, scope: str, watcher: ScopeWatcher) -> Callable[[], None]:
        """Tell `watcher` of every change in the scope from now on; returns the function that ends it.

        A change is told once it is durable, on the event loop, before the call that caused it returns. Expired objects
        count as removed when `remove_expired` or a put removes them, not at the moment of expiry.
        """
        ...

    async def missing_objects(self, ids: Collection[ContentId]) -> list[ContentId]:
        """Those of `ids` that are neither here nor known to be superseded, in the given order."""
        ...

    async def equivocations(self, *, limit: int = 1000) -> list[tuple[SignedObject, SignedObject]]:
        """Pairs of contradicting objects, the winning one first, ordered by its id.

        A pair is kept until both have expired; at most `bnw.store.limits.MAX_PROOFS_PER_SIGNER` per signer.
        """
        ...

    async def remove_expired(self, *, now: int) -> int:
        """Drop expired objects, proofs and memories of superseded ids; returns how many objects."""
        ...

    async def delete_inbox_objects(self, ids: Collection[ContentId]) -> int:
        """Drop objects that lie in inboxes, from all of them, in one transaction; returns how many were here.

        Objects of the catalog are not touched: what they say counts until it is replaced or expires.
        """
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

    async def delete_blob(self, id: ContentId) -> bool:
        """Drop a blob; False if it is not here. Objects are not touched, although they can be read as blobs."""
        ...

    async def list_blobs(self, *, after: ContentId | None = None, limit: int = 1000) -> list[tuple[ContentId, int]]:
        """Blobs and their sizes in bytes, ordered by id, after `after`. Objects are not among them."""
        ...

    def collecting(self) -> AbstractContextManager[None]:
        """Within the body, `collect_blob` may be called; one collection at a time."""
        ...

    async def collect_blob(self, id: ContentId) -> bool:
        """Drop a blob that nothing needs; False if it is not here, or was put or asked for since `collecting` began.

        Whoever puts a blob, or finds it here, while a collection runs can rely on it.
        """
        ...

    async def put_record(self, table: str, key: bytes, value: bytes) -> None:
        """Keep a small record of the node's own, for example the state of an invocation.

        At most 1 MiB (`InvalidError` `too-large` above that).
        """
        ...

    async def get_record(self, table: str, key: bytes) -> bytes | None: ...

    async def delete_record(self, table: str, key: bytes) -> bool: ...

    async def list_records(
        self, table: str, *, after: bytes | None = None, limit: int = 1000
    ) -> list[tuple[bytes, bytes]]:
        """Records of a table, ordered by key, after the key `after`."""
        ...

    async def put_record_with_objects(
        self, table: str, key: bytes, value: bytes, objects: Sequence[SignedObject], *, now: int
    ) -> list[PutOutcome]:
        """A record and the objects that belong to it, in one transaction: both survive a crash or neither."""
        ...

    async def statistics(self) -> StoreStatistics: ...
