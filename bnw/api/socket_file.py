"""The Unix socket of a node's API: bound for its owner only, and found again by clients."""

from __future__ import annotations

import os
import socket
import stat
from pathlib import Path

from bnw.wire.errors import LocalError

BACKLOG = 128
SOCKET_UMASK = 0o177
"""Leaves 0600: only the owner may connect."""


def check_directory(directory: Path) -> None:
    """Refuse a directory in which another user could put a socket of theirs. Raises `LocalError` (`api-socket`)."""
    found = directory.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or found.st_mode & 0o022:
        raise LocalError(
            "api-socket",
            "not a directory that only this user may write to",
            place=str(directory),
            cure="choose a home that belongs to you, or take away what others may do to it",
        )


def bind_socket(path: Path) -> socket.socket:
    """A listening socket at `path`. The caller holds the home's lock, so a socket file left there is nobody's.

    Raises `LocalError` (`api-socket`).
    """
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        path.parent.mkdir(mode=0o700, exist_ok=True)
        check_directory(path.parent)
        path.unlink(missing_ok=True)
        previous = os.umask(SOCKET_UMASK)
        try:
            listener.bind(str(path))
        finally:
            os.umask(previous)
        listener.listen(BACKLOG)
    except OSError as error:
        listener.close()
        raise LocalError(
            "api-socket",
            f"the socket for commands cannot be made: {error.strerror or error}",
            place=str(path),
            cure="choose a home on a local disk, with a shorter path, that you may write to",
        ) from error
    return listener


def remove_socket(path: Path) -> None:
    path.unlink(missing_ok=True)
