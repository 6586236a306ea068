"""Questions to the database: plain functions of a connection that is inside a transaction.

Objects are rebuilt from their bytes and compared with the id they are kept under, so a flipped bit on the disk shows as
`store-damaged` and never as a wrong object.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Collection
from pathlib import Path

from bnw.identity.keys import IdentityId
from bnw.objects.signed import SignedObject, trusted_object
from bnw.store.faults import damaged_database
from bnw.store.interface import ScopeItem, ScopeSummary
from bnw.store.scopes import id_sum, summary
from bnw.wire.content_id import ContentId, content_id
from bnw.wire.errors import InvalidError

_FIRST = b""
"""Sorts before every id."""


class Queries:
    """The questions, about the database at `path` (which only errors mention)."""

    def __init__(self, connection: sqlite3.Connection, path: Path) -> None:
        self._execute = connection.execute
        self._path = path

    def get_object(self, id: ContentId) -> SignedObject | None:
        data = self._object_data(id)
        return None if data is None else self._rebuild(id, data)

    def held_in_slot(self, slot: bytes) -> SignedObject | None:
        row = self._execute("SELECT id, data FROM objects WHERE slot = ?", (slot,)).fetchone()
        return None if row is None else self._rebuild(*row)

    def list_objects(
        self, kind: str, signer: IdentityId | None, now: int, after: ContentId | None, limit: int
    ) -> list[SignedObject]:
        if signer is None:
            query = "SELECT id, data FROM objects WHERE kind = ? AND id > ? AND expires > ? ORDER BY id LIMIT ?"
            rows = self._execute(query, (kind, after or _FIRST, now, limit))
        else:
            query = (
                "SELECT id, data FROM objects WHERE signer = ? AND kind = ? AND id > ? AND expires > ?"
                " ORDER BY id LIMIT ?"
            )
            rows = self._execute(query, (signer, kind, after or _FIRST, now, limit))
        return [self._rebuild(*row) for row in rows]

    def scope_ids(self, scope: bytes, now: int, after: ContentId | None, limit: int) -> list[ContentId]:
        rows = self._execute(
            "SELECT id FROM members WHERE scope = ? AND id > ? AND expires > ? ORDER BY id LIMIT ?",
            (scope, after or _FIRST, now, limit),
        )
        return [id for (id,) in rows]

    def scope_summary(self, scope: bytes, now: int) -> ScopeSummary:
        row = self._execute("SELECT count, sum FROM scopes WHERE scope = ?", (scope,)).fetchone()
        count, total = (0, 0) if row is None else (row[0], id_sum((row[1],)))
        expired = self._execute("SELECT id FROM members WHERE scope = ? AND expires <= ?", (scope, now))
        return summary(count, total, [id for (id,) in expired])

    def scope_items(self, scope: bytes, now: int, after: ContentId | None, limit: int) -> list[ScopeItem]:
        rows = self._execute(
            "SELECT created, id FROM members WHERE scope = ? AND id > ? AND expires > ? ORDER BY id LIMIT ?",
            (scope, after or _FIRST, now, limit),
        )
        return [ScopeItem(*row) for row in rows]

    def expired_items(self, scope: bytes, now: int) -> list[ScopeItem]:
        query = "SELECT created, id FROM members WHERE scope = ? AND expires <= ? ORDER BY id"
        return [ScopeItem(*row) for row in self._execute(query, (scope, now))]

    def scope_objects(self, scope: bytes, ids: Collection[ContentId], now: int) -> list[bytes]:
        query = (
            "SELECT objects.data FROM members JOIN objects ON objects.id = members.id"
            " WHERE members.scope = ? AND members.id = ? AND members.expires > ?"
        )
        found: list[bytes] = []
        for id in ids:
            row = self._execute(query, (scope, id, now)).fetchone()
            if row is None:
                continue
            # Nobody parses these bytes here, so the hash is all that shows that they are still the ones verified.
            if content_id(row[0]) != id:
                raise self._mismatch(id)
            found.append(row[0])
        return found

    def missing_objects(self, ids: Collection[ContentId]) -> list[ContentId]:
        query = (
            "SELECT 1 FROM objects WHERE id = ?1 UNION ALL SELECT 1 FROM superseded WHERE id = ?1"
            " UNION ALL SELECT 1 FROM proofs WHERE id = ?1 LIMIT 1"
        )
        return [id for id in ids if self._execute(query, (id,)).fetchone() is None]

    def equivocations(self, limit: int) -> list[tuple[SignedObject, SignedObject]]:
        rows = self._execute(
            "SELECT winner.id, winner.data, loser.id, loser.data FROM proofs AS winner JOIN proofs AS loser"
            " ON loser.signer = winner.signer AND loser.slot = winner.slot AND loser.sequence = winner.sequence"
            " WHERE winner.wins = 1 AND loser.wins = 0 ORDER BY winner.id LIMIT ?",
            (limit,),
        )
        return [(self._rebuild(*row[:2]), self._rebuild(*row[2:])) for row in rows]

    def small_blob(self, id: ContentId) -> bytes | None:
        """The bytes of an object or of a blob that is kept in the database."""
        data = self._object_data(id)
        if data is None:
            row = self._execute("SELECT data FROM blobs WHERE id = ?", (id,)).fetchone()
            data = None if row is None else row[0]
        if data is not None and content_id(data) != id:
            raise self._mismatch(id)
        return data

    def small_blob_size(self, id: ContentId) -> int | None:
        row = self._execute(
            "SELECT size FROM objects WHERE id = ?1 UNION ALL SELECT length(data) FROM proofs WHERE id = ?1"
            " UNION ALL SELECT length(data) FROM blobs WHERE id = ?1 LIMIT 1",
            (id,),
        ).fetchone()
        return None if row is None else int(row[0])

    def list_small_blobs(self, after: ContentId | None, limit: int) -> list[tuple[ContentId, int]]:
        """Blobs that are kept in the database, and their sizes, ordered by id."""
        rows = self._execute(
            "SELECT id, length(data) FROM blobs WHERE id > ? ORDER BY id LIMIT ?",
            (b"" if after is None else after, limit),
        )
        return [(ContentId(id), int(size)) for id, size in rows]

    def get_record(self, table: str, key: bytes) -> bytes | None:
        row = self._execute("SELECT value FROM records WHERE kind = ? AND key = ?", (table, key)).fetchone()
        return None if row is None else bytes(row[0])

    def list_records(self, table: str, after: bytes | None, limit: int) -> list[tuple[bytes, bytes]]:
        start = b"" if after is None else after + b"\0"  # the next key that there can be
        query = "SELECT key, value FROM records WHERE kind = ? AND key >= ? ORDER BY key LIMIT ?"
        return self._execute(query, (table, start, limit)).fetchall()

    def counts(self) -> tuple[int, int, int, int]:
        """Objects, their bytes, blobs in the database, their bytes."""
        objects = self._execute("SELECT count(*), ifnull(sum(size), 0) FROM objects").fetchone()
        blobs = self._execute("SELECT count(*), ifnull(sum(length(data)), 0) FROM blobs").fetchone()
        return (*objects, *blobs)

    def _object_data(self, id: ContentId) -> bytes | None:
        row = self._execute(
            "SELECT data FROM objects WHERE id = ?1 UNION ALL SELECT data FROM proofs WHERE id = ?1 LIMIT 1", (id,)
        ).fetchone()
        return None if row is None else row[0]

    def _rebuild(self, id: ContentId, data: bytes) -> SignedObject:
        try:
            obj = trusted_object(data)
        except InvalidError:
            raise self._mismatch(id) from None
        if obj.id != id:
            raise self._mismatch(id)
        return obj

    def _mismatch(self, id: ContentId) -> Exception:
        return damaged_database(self._path, f"the bytes kept under {id.hex()} do not match this content id")
