"""Files that only their owner may read, and that are replaced whole or not at all.

A write goes to a temporary file beside the target, is flushed to the disk, and then takes the target's name; a reader
or a crash sees the old bytes or the new ones, never a mixture. The old bytes, once nothing names them, are overwritten
where they were, so that a secret which left the file is gone from the disk too. That holds for file systems that write
in place (ext4, XFS, UFS); copy-on-write file systems, snapshots and flash memory may keep what they had.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import stat
from collections.abc import Iterator
from pathlib import Path

from bnw.wire.errors import ExitStatus, LocalError

PRIVATE_MODE = 0o600
WIPE_SIZE = 64 * 1024


def write_private_file(path: Path, data: bytes) -> None:
    """Replace `path` with `data`, mode 0600, durably. Raises `LocalError` (`write-failed`)."""
    # One name for all writers, so that what a crash leaves behind is overwritten and old secrets do not pile up.
    temporary = path.with_name(f".{path.name}.tmp")
    try:
        with os.fdopen(_open_alone(temporary), "wb") as file:
            try:
                os.fchmod(file.fileno(), PRIVATE_MODE)
                file.truncate()
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
                with _previous(path) as previous:
                    temporary.replace(path)
                    sync_directory(path.parent)
                    _overwrite(previous)
            except BaseException:
                with contextlib.suppress(FileNotFoundError):
                    temporary.unlink()
                raise
    except OSError as error:
        raise LocalError(
            "write-failed",
            f"cannot write the file: {error.strerror or error}",
            place=str(path),
            cure="check free space and permissions; the file itself is whole, old or new",
        ) from error


def _open_alone(temporary: Path) -> int:
    """Open the temporary file with a lock, for one writer at a time among threads and processes."""
    while True:
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW, PRIVATE_MODE)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            with contextlib.suppress(FileNotFoundError):
                # The writer before this one may have given the file its final name while we waited for the lock.
                if os.path.samestat(os.fstat(descriptor), temporary.stat(follow_symlinks=False)):
                    return descriptor
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)


@contextlib.contextmanager
def _previous(path: Path) -> Iterator[int | None]:
    """What is at `path` now, open for writing; None if there is nothing, or nothing of ours."""
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        yield None
        return
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _overwrite(descriptor: int | None) -> None:
    """Fill a file that has lost its last name with zeros. One that has another name is somebody's backup."""
    if descriptor is None:
        return
    status = os.fstat(descriptor)
    if status.st_nlink > 0 or not stat.S_ISREG(status.st_mode):
        return
    left = status.st_size
    while left:
        left -= os.write(descriptor, bytes(min(left, WIPE_SIZE)))
    os.fsync(descriptor)


def read_private_file(path: Path, *, max_size: int) -> bytes:
    """Read a file that only its owner may read.

    Raises `LocalError`: `not-found`, `not-private` (others have access), `too-large` or `read-failed`.
    """
    try:
        while (data := _read_whole(path, max_size)) is None:
            pass
    except FileNotFoundError:
        raise LocalError(
            "not-found", "no such file", place=str(path), cure="`bnw init` makes one", exit_status=ExitStatus.USAGE
        ) from None
    except OSError as error:
        raise LocalError(
            "read-failed",
            f"cannot read the file: {error.strerror or error}",
            place=str(path),
            cure="check its permissions",
            exit_status=ExitStatus.USAGE,
        ) from error
    if len(data) > max_size:
        raise LocalError("too-large", f"more than {max_size:,} bytes", place=str(path), cure="restore it from a backup")
    return data


def _read_whole(path: Path, max_size: int) -> bytes | None:
    """The first `max_size` bytes and one more; None if a writer put another file there while this one was read."""
    with path.open("rb") as file:
        status = os.fstat(file.fileno())
        if stat.S_IMODE(status.st_mode) & 0o077:
            raise LocalError(
                "not-private",
                f"others may access this file (mode {stat.S_IMODE(status.st_mode):04o})",
                place=str(path),
                cure=f"chmod 600 {path}, and consider the keys in it known to others",
            )
        data = file.read(max_size + 1)
        # A file is overwritten only after it has lost its last name, so what still has one was read as it was.
        return data if os.fstat(file.fileno()).st_nlink else None


def sync_directory(path: Path) -> None:
    """Make a rename within `path` durable."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
