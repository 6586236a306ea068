"""Changes to the database: the single steps that `bnw.store.placement` decides about, and removal of what has expired.

One `SqliteIndex` lives as long as one transaction. It keeps the totals that the transaction touches (per scope and per
signer) in memory and writes them once, when `flush` is called before the commit.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

from bnw.identity.keys import IDENTITY_ID_SIZE, IdentityId
from bnw.objects.rules import is_catalog_object, recipients_of, sequence_of
from bnw.objects.signed import SignedObject
from bnw.store.faults import damaged_database
from bnw.store.interface import PutOutcome, Quota, ScopeChange, ScopeItem
from bnw.store.limits import MAX_REMOVED_AT_ONCE
from bnw.store.placement import Held, Usage, put_object
from bnw.store.scopes import CATALOG_KEY, id_sum, reduce_sum
from bnw.store.watching import KeyedChange
from bnw.wire.content_id import ContentId


class SqliteIndex:
    """The `ObjectIndex` of a `SqliteStore`, within one transaction on `connection` to the database at `path`."""

    def __init__(self, connection: sqlite3.Connection, path: Path) -> None:
        self._execute = connection.execute
        self._path = path
        self._usage: dict[IdentityId, Usage] = {}
        self._totals: dict[bytes, tuple[int, int]] = {}
        self.changes: list[KeyedChange] = []
        """Changes in scopes, for those who watch them once the transaction is committed."""

    def flush(self) -> None:
        """Write the totals that changed."""
        for signer, usage in self._usage.items():
            if usage.objects:
                self._execute("REPLACE INTO usage VALUES (?, ?, ?)", (signer, usage.objects, usage.bytes))
            else:
                self._execute("DELETE FROM usage WHERE signer = ?", (signer,))
        for scope, (count, total) in self._totals.items():
            if count:
                self._execute("REPLACE INTO scopes VALUES (?, ?, ?)", (scope, count, reduce_sum(total)))
            else:
                self._execute("DELETE FROM scopes WHERE scope = ?", (scope,))

    def put(self, objects: Sequence[SignedObject], now: int, quota: Quota) -> list[PutOutcome]:
        return [put_object(self, obj, now=now, quota=quota) for obj in objects]

    # What `put_object` asks.

    def is_known(self, id: ContentId) -> bool:
        return self._exists(
            "SELECT 1 FROM objects WHERE id = ?1 UNION ALL SELECT 1 FROM proofs WHERE id = ?1 LIMIT 1", id
        )

    def is_superseded(self, id: ContentId) -> bool:
        return self._exists("SELECT 1 FROM superseded WHERE id = ?", id)

    def holder(self, slot: bytes) -> Held | None:
        row = self._execute("SELECT id, sequence, expires, size FROM objects WHERE slot = ?", (slot,)).fetchone()
        return None if row is None else Held(*row)

    def usage(self, signer: IdentityId) -> Usage:
        known = self._usage.get(signer)
        if known is None:
            row = self._execute("SELECT objects, bytes FROM usage WHERE signer = ?", (signer,)).fetchone()
            known = self._usage[signer] = Usage(0, 0) if row is None else Usage(*row)
        return known

    def superseded_count(self, signer: IdentityId) -> int:
        return self._count("SELECT count(*) FROM superseded WHERE signer = ?", signer)

    def proof_count(self, signer: IdentityId) -> int:
        return self._count("SELECT count(*) FROM proofs WHERE signer = ? AND wins = 1", signer)

    def has_proof(self, signer: IdentityId, slot: bytes, sequence: int) -> bool:
        return self._exists(
            "SELECT 1 FROM proofs WHERE signer = ? AND slot = ? AND sequence = ? LIMIT 1", signer, slot, sequence
        )

    # What `put_object` changes.

    def add(self, obj: SignedObject, slot: bytes | None) -> None:
        body = obj.body
        recipients = recipients_of(body)
        self._execute(
            "INSERT INTO objects (id, kind, signer, slot, sequence, expires, size, recipients, data)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (
                obj.id,
                obj.kind,
                obj.signer,
                slot,
                sequence_of(body),
                body.expires,
                len(obj.data),
                b"".join(recipients),
                obj.data,
            ),
        )
        for scope in _scopes(recipients):
            self._execute("INSERT INTO members VALUES (?, ?, ?, ?)", (scope, obj.id, body.created, body.expires))
            self.changes.append((scope, ScopeChange(ScopeItem(body.created, obj.id), added=True)))
            self._add_to_scope(scope, 1, id_sum((obj.id,)))
        if is_catalog_object(body):
            self._add_usage(obj.signer, 1, len(obj.data))

    def remove(self, id: ContentId) -> None:
        signer, size, joined = self._row("SELECT signer, size, recipients FROM objects WHERE id = ?", id)
        self._execute("DELETE FROM objects WHERE id = ?", (id,))
        recipients = [joined[at : at + IDENTITY_ID_SIZE] for at in range(0, len(joined), IDENTITY_ID_SIZE)]
        for scope in _scopes(recipients):
            delete = "DELETE FROM members WHERE scope = ? AND id = ? RETURNING created"
            for (created,) in self._execute(delete, (scope, id)).fetchall():
                self.changes.append((scope, ScopeChange(ScopeItem(created, id), added=False)))
            self._add_to_scope(scope, -1, -id_sum((id,)))
        if not recipients:
            self._add_usage(signer, -1, -size)

    def remove_from_inboxes(self, ids: Collection[ContentId]) -> int:
        query = "SELECT 1 FROM objects WHERE id = ? AND length(recipients) > 0"
        found = [id for id in dict.fromkeys(ids) if self._exists(query, id)]
        for id in found:
            self.remove(id)
        return len(found)

    def remember_superseded(self, id: ContentId, signer: IdentityId, expires: int) -> None:
        self._execute("INSERT INTO superseded (id, signer, expires) VALUES (?, ?, ?)", (id, signer, expires))

    def forget_oldest_superseded(self, signer: IdentityId) -> None:
        self._execute(
            "DELETE FROM superseded WHERE number = (SELECT min(number) FROM superseded WHERE signer = ?)", (signer,)
        )

    def add_proof(self, slot: bytes, held: Held, new: SignedObject, *, new_wins: bool) -> None:
        until = max(held.expires, new.body.expires)
        rest = (new.signer, slot, held.sequence)
        (old_data,) = self._row("SELECT data FROM objects WHERE id = ?", held.id)
        insert = "INSERT INTO proofs (id, signer, slot, sequence, wins, until, data) VALUES (?, ?, ?, ?, ?, ?, ?)"
        self._execute(insert, (held.id, *rest, int(not new_wins), until, old_data))
        self._execute(insert, (new.id, *rest, int(new_wins), until, new.data))

    def remove_expired_of(self, signer: IdentityId, now: int) -> None:
        rows = self._execute("SELECT id FROM objects WHERE signer = ? AND expires <= ?", (signer, now)).fetchall()
        for (id,) in rows:
            self.remove(id)
        self._execute("DELETE FROM proofs WHERE signer = ? AND until <= ?", (signer, now))
        self._execute("DELETE FROM superseded WHERE signer = ? AND expires <= ?", (signer, now))

    # Removal of everything that has expired.

    def remove_some_expired(self, now: int) -> int:
        """Drop up to `MAX_REMOVED_AT_ONCE` expired objects, and everything else that has expired; returns how many."""
        rows = self._execute(
            "SELECT id FROM objects WHERE expires <= ? ORDER BY expires LIMIT ?", (now, MAX_REMOVED_AT_ONCE)
        ).fetchall()
        for (id,) in rows:
            self.remove(id)
        self._execute("DELETE FROM proofs WHERE until <= ?", (now,))
        self._execute("DELETE FROM superseded WHERE expires <= ?", (now,))
        return len(rows)

    def _add_usage(self, signer: IdentityId, objects: int, size: int) -> None:
        used = self.usage(signer)
        self._usage[signer] = Usage(used.objects + objects, used.bytes + size)

    def _add_to_scope(self, scope: bytes, objects: int, number: int) -> None:
        known = self._totals.get(scope)
        if known is None:
            row = self._execute("SELECT count, sum FROM scopes WHERE scope = ?", (scope,)).fetchone()
            known = (0, 0) if row is None else (row[0], id_sum((row[1],)))
        self._totals[scope] = (known[0] + objects, known[1] + number)

    def _exists(self, query: str, *values: object) -> bool:
        return self._execute(query, values).fetchone() is not None

    def _row(self, query: str, id: ContentId) -> tuple[Any, ...]:
        """The row of an object that another index has named."""
        row: tuple[Any, ...] | None = self._execute(query, (id,)).fetchone()
        if row is None:
            raise damaged_database(self._path, f"an index names object {id.hex()}, which is not there")
        return row

    def _count(self, query: str, *values: object) -> int:
        (count,) = self._execute(query, values).fetchone()
        assert isinstance(count, int)
        return count


def _scopes(recipients: Sequence[bytes]) -> Sequence[bytes]:
    return recipients or (CATALOG_KEY,)
