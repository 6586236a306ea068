"""Blobs as files: `ab/cdef...` by the hexadecimal digits of their id, and `tmp/` for files being written.

The files are the only record of what is here, so nothing can disagree with them. A file is written under a temporary
name, flushed, renamed, and then its directory is flushed; what has a proper name is whole, and what was acknowledged
stays. Every read is compared with the id.

All methods block, may be called from several threads at once, and raise `LocalError`.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

from bnw.identity.private_file import PRIVATE_MODE, sync_directory
from bnw.store.faults import damaged_blob, translated
from bnw.wire.content_id import ContentId, content_id, parse_content_id
from bnw.wire.limits import MAX_BLOB

BLOBS_NAME = "blobs"
PRIVATE_DIRECTORY_MODE = 0o700
_TEMPORARY_NAME = "tmp"
_PREFIX_LENGTH = 2


class BlobFiles:
    """The blob files under `directory`, which is made (in an existing one) if it is missing.

    Files that an earlier run left half-written are removed.
    """

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._temporary = directory / _TEMPORARY_NAME
        self._numbers = itertools.count()
        self._free = threading.Condition()
        self._busy: set[ContentId] = set()
        self._durable: set[Path] = set()
        with translated(directory):
            self._make_durable(directory)
            self._make_durable(self._temporary)
            for leftover in self._temporary.iterdir():
                leftover.unlink()

    def path(self, id: ContentId) -> Path:
        digits = id.hex()
        return self.directory / digits[:_PREFIX_LENGTH] / digits[_PREFIX_LENGTH:]

    def put(self, data: bytes) -> ContentId:
        """Keep `data`. A damaged file of its id is replaced."""
        id = content_id(data)
        path = self.path(id)
        with self._alone(id), translated(path):
            if self._holds(path, data):
                # It may be there from a run that crashed before it was sure of the directory.
                sync_directory(path.parent)
                return id
            self._make_durable(path.parent)
            temporary = self._temporary / f"{id.hex()}.{next(self._numbers)}"
            try:
                _write_flushed(temporary, data)
                temporary.replace(path)
            except BaseException:
                temporary.unlink(missing_ok=True)
                raise
            try:
                sync_directory(path.parent)
            except BaseException:
                path.unlink()
                raise
            return id

    def get(self, id: ContentId) -> bytes | None:
        path = self.path(id)
        with translated(path):
            try:
                with path.open("rb") as file:
                    data = file.read(MAX_BLOB + 1)
            except FileNotFoundError:
                return None
        if content_id(data) != id:
            raise damaged_blob(path, "its bytes do not match its content id")
        return data

    def size(self, id: ContentId) -> int | None:
        path = self.path(id)
        with translated(path):
            try:
                return path.stat().st_size
            except FileNotFoundError:
                return None

    def list(self, after: ContentId | None, limit: int) -> list[tuple[ContentId, int]]:
        """Up to `limit` blobs and their sizes, ordered by id, after `after`."""
        first = "" if after is None else after.hex()
        found: list[tuple[ContentId, int]] = []
        with translated(self.directory):
            prefixes = sorted(entry.name for entry in self.directory.iterdir() if len(entry.name) == _PREFIX_LENGTH)
            for prefix in prefixes:
                if prefix < first[:_PREFIX_LENGTH]:
                    continue
                with os.scandir(self.directory / prefix) as entries:
                    for entry in sorted(entries, key=lambda entry: entry.name):
                        digits = prefix + entry.name
                        if digits > first:
                            # A file that is deleted meanwhile need not be listed.
                            with contextlib.suppress(FileNotFoundError):
                                size = entry.stat(follow_symlinks=False).st_size
                                found.append((parse_content_id(digits), size))
                if len(found) >= limit:
                    break
        return found[:limit]

    def delete(self, id: ContentId, *, unless: Callable[[], bool] = lambda: False) -> bool:
        """Remove a blob; False if it is not there, or `unless` says so while nobody else is at it."""
        path = self.path(id)
        with self._alone(id), translated(path):
            if unless():
                return False
            try:
                path.unlink()
            except FileNotFoundError:
                return False
            return True

    def count(self) -> tuple[int, int]:
        """How many files there are, and how many bytes they hold. Looks at every file."""
        files = size = 0
        with translated(self.directory):
            for prefix in self.directory.iterdir():
                if prefix == self._temporary or not prefix.is_dir():
                    continue
                with os.scandir(prefix) as entries:
                    for entry in entries:
                        # A file that is deleted meanwhile need not be counted.
                        with contextlib.suppress(FileNotFoundError):
                            size += entry.stat(follow_symlinks=False).st_size
                            files += 1
        return files, size

    def _make_durable(self, directory: Path) -> None:
        """Make a directory, or at least be sure once in every run that its entry in its parent is on the disk."""
        if directory not in self._durable:
            directory.mkdir(PRIVATE_DIRECTORY_MODE, exist_ok=True)
            sync_directory(directory.parent)
            self._durable.add(directory)

    @contextlib.contextmanager
    def _alone(self, id: ContentId) -> Iterator[None]:
        """One change of a blob at a time, so that a failed one cannot undo what another has just acknowledged."""
        with self._free:
            self._free.wait_for(lambda: id not in self._busy)
            self._busy.add(id)
        try:
            yield
        finally:
            with self._free:
                self._busy.remove(id)
                self._free.notify_all()

    def _holds(self, path: Path, data: bytes) -> bool:
        try:
            if path.stat().st_size != len(data):
                return False
            return path.read_bytes() == data
        except FileNotFoundError:
            return False


def _write_flushed(path: Path, data: bytes) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, PRIVATE_MODE)
    with os.fdopen(descriptor, "wb", buffering=0) as file:
        view = memoryview(data)
        while view:
            view = view[file.write(view) :]
        os.fsync(file.fileno())
