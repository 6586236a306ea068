"""A file that is written under another name and takes its own when it is whole.

All methods block, and raise `LocalError`: `exists`, `disk-full` or `write-failed`.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from bnw.identity.private_file import PRIVATE_MODE, sync_directory
from bnw.wire.content_id import ContentId
from bnw.wire.errors import ExitStatus, LocalError

MAX_PARTS: Final = 16
"""Files of one payload that are written in one directory at the same time."""

_OUT_OF_SPACE: Final = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_NO_LINKS: Final = (errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK)
"""How file systems say that a file has one name only."""


class PartFile:
    """The beginning of a file at `path`: `.bnw-<id>-<number>.part` in the same directory, open and locked.

    `id` is that of the payload. A part that a crash left behind is not locked, and is taken over from its start.
    """

    def __init__(self, path: Path, id: ContentId) -> None:
        self._path = path
        with self._translated():
            if os.path.lexists(path):  # told now rather than after a gigabyte; what counts is `publish`
                raise _exists(path)
            self._part, self._descriptor = _open_part(path.parent, id)

    def write(self, data: bytes) -> None:
        """Append `data`."""
        with self._translated():
            view = memoryview(data)
            while view:
                view = view[os.write(self._descriptor, view) :]

    def publish(self) -> None:
        """Make what was written durable and give it its name. Nothing that has this name already is replaced."""
        with self._translated():
            os.fsync(self._descriptor)
            try:
                # Unlike a rename, a link never takes the place of what is there.
                self._path.hardlink_to(self._part)
                self._part.unlink()
            except FileExistsError:
                raise _exists(self._path) from None
            except OSError as error:
                if error.errno not in _NO_LINKS:
                    raise
                self._rename()
            sync_directory(self._path.parent)

    def _rename(self) -> None:
        """Where there are no links: take the name with an empty file first, so that what is replaced is our own."""
        try:
            os.close(os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, PRIVATE_MODE))
        except FileExistsError:
            raise _exists(self._path) from None
        self._part.replace(self._path)

    def close(self) -> None:
        """Let go of the file, and remove the part if it has not been published."""
        try:
            with self._translated():
                if _is_at(self._descriptor, self._part):
                    self._part.unlink()
        finally:
            os.close(self._descriptor)

    @contextlib.contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise _failed(self._path, error) from error


def _open_part(directory: Path, id: ContentId) -> tuple[Path, int]:
    for number in range(MAX_PARTS):
        part = directory / f".bnw-{id.hex()[:32]}-{number}.part"
        try:
            descriptor = os.open(part, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, PRIVATE_MODE)
        except OSError as error:
            if error.errno == errno.ELOOP:  # somebody has put a link there; it is not ours to follow or remove
                continue
            raise
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if _is_ours_alone(descriptor, part):
                os.ftruncate(descriptor, 0)
                return part, descriptor
        except BlockingIOError:
            pass  # it is being written at this moment
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)
    raise LocalError(
        "write-failed",
        f"{MAX_PARTS} files of this payload are being written here already",
        place=str(directory),
        cure="wait for them, or choose another directory",
    )


def _is_ours_alone(descriptor: int, part: Path) -> bool:
    """Whether truncating the file hurts nobody: it is a plain file of ours, with this one name, and still has it."""
    status = os.fstat(descriptor)
    return (
        stat.S_ISREG(status.st_mode)
        and status.st_nlink == 1
        and status.st_uid == os.geteuid()
        and stat.S_IMODE(status.st_mode) & 0o077 == 0
        and _is_at(descriptor, part)
    )


def _is_at(descriptor: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat(follow_symlinks=False))
    except FileNotFoundError:
        return False


def _exists(path: Path) -> LocalError:
    return LocalError(
        "exists",
        "there is a file of this name already; it was not touched",
        place=str(path),
        cure="choose another name",
        exit_status=ExitStatus.USAGE,
    )


def _failed(path: Path, error: OSError) -> LocalError:
    if error.errno in _OUT_OF_SPACE:
        return LocalError(
            "disk-full",
            f"there is no room to write: {error.strerror}",
            place=str(path),
            cure="free some space and try again; the payload itself is kept",
        )
    return LocalError(
        "write-failed",
        error.strerror or str(error),
        place=str(path),
        cure="choose a place that you may write to",
        exit_status=ExitStatus.USAGE,
    )
