"""What goes wrong below the store, said as the store's three errors: `disk-full`, `store-damaged`, `store-failed`."""

from __future__ import annotations

import errno
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bnw.wire.errors import LocalError

_OUT_OF_SPACE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_PRIMARY = 0xFF
_DAMAGED = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
_DAMAGED_EXTENDED = (
    sqlite3.SQLITE_IOERR_SHORT_READ,
    sqlite3.SQLITE_IOERR_CORRUPTFS,
    # Whether something is there is always asked before it is added; if the answers differ, two indexes disagree.
    sqlite3.SQLITE_CONSTRAINT_UNIQUE,
    sqlite3.SQLITE_CONSTRAINT_PRIMARYKEY,
)
_NO_ACCESS = (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM, sqlite3.SQLITE_AUTH)
# SQLite says "full" only for ENOSPC; a disk quota or a limit on file sizes shows as a failed write.
_REFUSED_WRITE = (sqlite3.SQLITE_IOERR_WRITE, sqlite3.SQLITE_IOERR_SHMSIZE)


def disk_full(path: Path, cause: str) -> LocalError:
    return LocalError(
        "disk-full",
        f"there is no room to write: {cause}",
        place=str(path),
        cure="free some space; nothing was changed, and the store goes on working then",
    )


def damaged_database(path: Path, cause: str) -> LocalError:
    return LocalError(
        "store-damaged",
        f"the database is damaged: {cause}",
        place=str(path),
        cure=f"restore {path.parent} from a backup, or move it away and start again; "
        "public objects come back from peers, unread mail and the state of calls do not",
    )


def damaged_blob(path: Path, cause: str) -> LocalError:
    return LocalError(
        "store-damaged",
        f"the blob is damaged: {cause}",
        place=str(path),
        cure="delete this file; the blob can be fetched or put again",
    )


def failed(path: Path, cause: str, cure: str) -> LocalError:
    return LocalError("store-failed", cause, place=str(path), cure=cure)


def closed(path: Path) -> LocalError:
    return failed(path, "the store is closed", "use a store only within its `async with`")


def from_sqlite(error: sqlite3.Error, path: Path) -> LocalError:
    """What an error of SQLite means for the database at `path`."""
    code: int = getattr(error, "sqlite_errorcode", 0)
    if code & _PRIMARY == sqlite3.SQLITE_FULL or code in _REFUSED_WRITE:
        return disk_full(path, str(error))
    if code & _PRIMARY in _DAMAGED or code in _DAMAGED_EXTENDED:
        return damaged_database(path, str(error))
    if code & _PRIMARY in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return failed(path, f"the database is in use: {error}", "end the other process that has it open")
    if code & _PRIMARY == sqlite3.SQLITE_IOERR:
        return failed(path, f"the disk fails: {error}", "check the disk and the system log")
    if code & _PRIMARY in _NO_ACCESS:
        return failed(
            path, f"the database cannot be used: {error}", "check the permissions of the file and its directory"
        )
    return failed(path, f"the database refuses a request: {error}", "this is a fault of BNW; please report it")


def from_os(error: OSError, path: Path) -> LocalError:
    """What an error of the operating system means for the file at `path`."""
    if error.errno in _OUT_OF_SPACE:
        return disk_full(path, error.strerror or str(error))
    if error.errno == errno.EIO:
        return failed(path, "the disk fails", "check the disk and the system log")
    return failed(path, error.strerror or str(error), "check the permissions of the file and its directory")


@contextmanager
def translated(path: Path) -> Iterator[None]:
    """Turn errors of SQLite and the operating system into `LocalError`s about `path`."""
    try:
        yield
    except sqlite3.Error as error:
        raise from_sqlite(error, path) from error
    except OSError as error:
        raise from_os(error, path) from error
