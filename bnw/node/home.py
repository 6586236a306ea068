"""The directory a node lives in, and the lock that keeps it to one node at a time."""

from __future__ import annotations

import fcntl
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from bnw.wire.content_id import content_id
from bnw.wire.errors import ExitStatus, LocalError

HOME_MODE = 0o700
MAX_SOCKET_PATH = 100
"""Bytes; Linux allows 107, macOS 103."""
SHORT_PLACE = Path("/tmp")  # noqa: S108 - for a folder of the user's own, whose owner and mode are checked


@dataclass(frozen=True, slots=True)
class Home:
    """Paths in a node's home."""

    path: Path

    @property
    def keystore(self) -> Path:
        return self.path / "keystore"

    @property
    def configuration(self) -> Path:
        return self.path / "config.toml"

    @property
    def store(self) -> Path:
        return self.path / "store"

    @property
    def workspace(self) -> Path:
        """For the plaintext of calls that run: what is too large for memory."""
        return self.path / "running"

    @property
    def lock(self) -> Path:
        return self.path / "lock"

    @property
    def socket(self) -> Path:
        """Where commands reach the node. The system bounds a socket's path, so that of a deep home lies elsewhere."""
        usual = self.path.resolve() / "api.sock"
        if len(os.fsencode(usual)) <= MAX_SOCKET_PATH:
            return usual
        short = content_id(os.fsencode(usual)).hex()[:32]
        # Not in TMPDIR, which may be deep too, or another one for the node than for the command.
        folder = SHORT_PLACE if SHORT_PLACE.is_dir() else Path(tempfile.gettempdir())
        return folder / f"bnw-{os.getuid()}" / f"{short}.sock"

    def create(self) -> None:
        """Make the directory, for its owner only. Raises `LocalError` (`home`)."""
        try:
            self.path.mkdir(mode=HOME_MODE, parents=True, exist_ok=True)
        except OSError as error:
            raise LocalError(
                "home",
                f"cannot make the directory: {error.strerror or error}",
                place=str(self.path),
                cure="choose another with --home or BNW_HOME",
                exit_status=ExitStatus.USAGE,
            ) from error

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the home for one node. The lock goes with the process, however that ends.

        Raises `LocalError`: `home-missing`, or `home-in-use` when another process holds it.
        """
        try:
            descriptor = os.open(self.lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise LocalError(
                "home-missing",
                f"there is no node home: {error.strerror or error}",
                place=str(self.path),
                cure="`bnw init` makes one",
                exit_status=ExitStatus.USAGE,
            ) from error
        try:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                holder = os.pread(descriptor, 20, 0).decode(errors="replace").strip()
                raise LocalError(
                    "home-in-use",
                    f"another node runs on this home{f' (process {holder})' if holder else ''}",
                    place=str(self.path),
                    cure="stop it first, or choose another home with --home",
                ) from None
            # The number is only for people, and the disk may be full.
            with suppress(OSError):
                os.ftruncate(descriptor, 0)
                os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
            yield
        finally:
            os.close(descriptor)
