"""Files that only their owner may read, and that are replaced whole or not at all.

A write goes to a temporary file beside the target, is flushed to the disk, and then takes the target's name; a reader
or a crash sees the old bytes or the new ones, never a mixture.
"""

from __future__ import annotations

import contextlib
import os
import stat
from pathlib import Path

from bnw.wire.errors import ExitStatus, LocalError

PRIVATE_MODE = 0o600


def write_private_file(path: Path, data: bytes) -> None:
    """Replace `path` with `data`, mode 0600, durably. Raises `LocalError` (`write-failed`)."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        try:
            descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, PRIVATE_MODE)
            with os.fdopen(descriptor, "wb") as file:
                os.fchmod(file.fileno(), PRIVATE_MODE)
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(path)
            sync_directory(path.parent)
        except BaseException:
            with contextlib.suppress(FileNotFoundError):
                temporary.unlink()
            raise
    except OSError as error:
        raise LocalError(
            "write-failed",
            f"cannot write the file: {error.strerror or error}",
            place=str(path),
            cure="check free space and permissions; nothing was changed",
        ) from error


def read_private_file(path: Path, *, max_size: int) -> bytes:
    """Read a file that only its owner may read.

    Raises `LocalError`: `not-found`, `not-private` (others have access), `too-large` or `read-failed`.
    """
    try:
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


def sync_directory(path: Path) -> None:
    """Make a rename within `path` durable."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
