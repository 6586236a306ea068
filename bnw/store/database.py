"""The database file: its schema, how it is opened, and how it is told from damaged, foreign and newer ones.

Integrity rests on three things. SQLite's write-ahead log with `synchronous=FULL` makes a committed transaction survive
a crash of the process and of the machine. `quick_check` at opening finds damaged pages. And what is read back is
compared with its content id, which finds the rest.
"""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path

from bnw.identity.private_file import PRIVATE_MODE
from bnw.store.faults import damaged_database, translated
from bnw.wire.errors import LocalError

DATABASE_NAME = "index.sqlite"
APPLICATION_ID = 0x424E5701
"""`BNW` and 1 in SQLite's header, by which `file` and BNW know the file."""
SCHEMA_VERSION = 2

_BUSY_TIMEOUT = 5000
_WRITER_CACHE = 32 * 1024
"""KiB. Ids are random, so inserts touch pages all over the indexes; this keeps about 100,000 objects' worth of them."""
_JOURNAL_SIZE = 64 * 1024 * 1024
"""Bytes to which the log is cut back after it has grown."""

_SCHEMA = (
    # Objects that hold their slot, or need none. `recipients` is empty for the catalog, else 32 bytes for each inbox.
    """CREATE TABLE objects (
        number INTEGER PRIMARY KEY,
        id BLOB NOT NULL UNIQUE,
        kind TEXT NOT NULL,
        signer BLOB NOT NULL,
        slot BLOB,
        sequence INTEGER NOT NULL,
        expires INTEGER NOT NULL,
        size INTEGER NOT NULL,
        recipients BLOB NOT NULL,
        data BLOB NOT NULL
    ) STRICT""",
    "CREATE UNIQUE INDEX objects_by_slot ON objects (slot) WHERE slot IS NOT NULL",
    "CREATE INDEX objects_by_kind ON objects (kind, id)",
    "CREATE INDEX objects_by_signer ON objects (signer, kind, id)",
    # `size` is here so that the statistics come from this index alone.
    "CREATE INDEX objects_by_expiry ON objects (expires, size)",
    "CREATE INDEX objects_by_signer_expiry ON objects (signer, expires)",
    # Which object is in which scope; an object with several recipients is in several. The catalog is the empty blob.
    """CREATE TABLE members (
        scope BLOB NOT NULL,
        id BLOB NOT NULL,
        created INTEGER NOT NULL,
        expires INTEGER NOT NULL,
        PRIMARY KEY (scope, id)
    ) STRICT, WITHOUT ROWID""",
    "CREATE INDEX members_by_expiry ON members (scope, expires)",
    # Running totals over `members` and over the catalog objects of each signer.
    """CREATE TABLE scopes (
        scope BLOB PRIMARY KEY,
        count INTEGER NOT NULL,
        sum BLOB NOT NULL
    ) STRICT, WITHOUT ROWID""",
    """CREATE TABLE usage (
        signer BLOB PRIMARY KEY,
        objects INTEGER NOT NULL,
        bytes INTEGER NOT NULL
    ) STRICT, WITHOUT ROWID""",
    # Both sides of each equivocation.
    """CREATE TABLE proofs (
        id BLOB NOT NULL UNIQUE,
        signer BLOB NOT NULL,
        slot BLOB NOT NULL,
        sequence INTEGER NOT NULL,
        wins INTEGER NOT NULL,
        until INTEGER NOT NULL,
        data BLOB NOT NULL
    ) STRICT""",
    "CREATE UNIQUE INDEX proofs_by_slot ON proofs (signer, slot, sequence, wins)",
    "CREATE INDEX proofs_by_end ON proofs (until)",
    # Ids of objects that lost their slot, oldest first.
    """CREATE TABLE superseded (
        number INTEGER PRIMARY KEY,
        id BLOB NOT NULL UNIQUE,
        signer BLOB NOT NULL,
        expires INTEGER NOT NULL
    ) STRICT""",
    "CREATE INDEX superseded_by_signer ON superseded (signer)",
    "CREATE INDEX superseded_by_expiry ON superseded (expires)",
    # Small blobs; larger ones are files.
    "CREATE TABLE blobs (id BLOB NOT NULL UNIQUE, data BLOB NOT NULL) STRICT",
    """CREATE TABLE records (
        kind TEXT NOT NULL,
        key BLOB NOT NULL,
        value BLOB NOT NULL,
        PRIMARY KEY (kind, key)
    ) STRICT, WITHOUT ROWID""",
)


def open_writer(path: Path, *, must_exist: bool) -> sqlite3.Connection:
    """Open the database for writing, making it if it is new and not `must_exist`.

    Raises `LocalError`: `store-version` for a newer or foreign database, `store-damaged`, `disk-full`, `store-failed`.
    """
    with translated(path):
        is_new = not path.exists() or path.stat().st_size == 0
        if is_new and must_exist:
            raise damaged_database(path, "it is missing or empty, although there are blobs beside it")
        # Made here so that it is private from its first byte; SQLite gives its log and index the same mode.
        os.close(os.open(path, os.O_RDWR | os.O_CREAT, PRIVATE_MODE))
        connection = _connect(path)
        try:
            _check_version(connection, path)
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = FULL")
            connection.execute(f"PRAGMA cache_size = -{_WRITER_CACHE}")
            connection.execute(f"PRAGMA journal_size_limit = {_JOURNAL_SIZE}")
            if _is_empty(connection):
                _create(connection)
            else:
                _check_pages(connection, path)
        except BaseException:
            connection.close()
            raise
        return connection


def open_reader(path: Path) -> sqlite3.Connection:
    """Open a database that `open_writer` has open, for reading only."""
    with translated(path):
        connection = _connect(path)
        connection.execute("PRAGMA query_only = ON")
        return connection


def _connect(path: Path) -> sqlite3.Connection:
    # A connection is used by one thread at a time, but not always by the same one. Transactions are begun by hand.
    connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False, cached_statements=256)
    connection.execute(f"PRAGMA busy_timeout = {_BUSY_TIMEOUT}")
    connection.execute("PRAGMA trusted_schema = OFF")
    return connection


def _check_version(connection: sqlite3.Connection, path: Path) -> None:
    """Refuse what this code must not touch; reading the header does not change the file."""
    application = _pragma(connection, "application_id")
    version = _pragma(connection, "user_version")
    if application == 0 and version == 0 and _is_empty(connection):
        return
    if application != APPLICATION_ID:
        raise LocalError(
            "store-version",
            "this is the database of another program",
            place=str(path),
            cure="choose another home directory, or move this file away",
        )
    if version != SCHEMA_VERSION:
        raise LocalError(
            "store-version",
            f"this store has version {version}; this BNW reads version {SCHEMA_VERSION}",
            place=str(path),
            cure="use the version of BNW that wrote it, or another home directory",
        )


def _is_empty(connection: sqlite3.Connection) -> bool:
    return connection.execute("SELECT 1 FROM sqlite_schema LIMIT 1").fetchone() is None


def _create(connection: sqlite3.Connection) -> None:
    """Make the schema in one transaction, so that a crash leaves an empty database or a whole one."""
    connection.execute("BEGIN IMMEDIATE")
    connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
    for statement in _SCHEMA:
        connection.execute(statement)
    connection.execute("COMMIT")


def _check_pages(connection: sqlite3.Connection, path: Path) -> None:
    (verdict,) = connection.execute("PRAGMA quick_check(1)").fetchone()
    if verdict != "ok":
        raise damaged_database(path, str(verdict).replace("\n", " "))


def _pragma(connection: sqlite3.Connection, name: str) -> int:
    (value,) = connection.execute(f"PRAGMA {name}").fetchone()
    assert isinstance(value, int)
    return value
