"""Files that commands read and write: bounded, whole or not at all, never over another one by accident."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from bnw.wire.errors import ExitStatus, LocalError


def read_file(path: Path, limit: int) -> bytes:
    """A file's bytes; `-` is standard input. Raises `LocalError`: `unreadable`, or `too-large` above `limit` bytes."""
    try:
        if str(path) == "-":
            data = sys.stdin.buffer.read(limit + 1)
        else:
            with path.open("rb") as file:
                data = file.read(limit + 1)
    except OSError as error:
        raise unreadable(str(path), error.strerror or str(error)) from None
    if len(data) > limit:
        raise LocalError(
            "too-large",
            f"more than {limit:,} bytes",
            place=str(path),
            cure="send less, or something smaller that refers to it",
            exit_status=ExitStatus.USAGE,
        )
    return data


def write_file(path: Path, data: bytes, *, force: bool) -> None:
    """Write a file whole or not at all; never over another unless `force`. Raises `LocalError`."""
    from bnw.identity.private_file import sync_directory

    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with part.open("xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        if force:
            part.replace(path)
        else:
            # Unlike a rename, a link never takes the place of what is there.
            path.hardlink_to(part)
            part.unlink()
        sync_directory(path.parent)
    except FileExistsError:
        part.unlink(missing_ok=True)
        raise LocalError(
            "exists",
            "there is a file of this name already; it was not touched",
            place=str(path),
            cure="choose another name, or --force",
            exit_status=ExitStatus.USAGE,
        ) from None
    except OSError as error:
        part.unlink(missing_ok=True)
        raise LocalError(
            "write-failed",
            error.strerror or str(error),
            place=str(path),
            cure="choose a place with room that you may write to",
            exit_status=ExitStatus.USAGE,
        ) from error


def unreadable(place: str, cause: str) -> LocalError:
    return LocalError(
        "unreadable", cause, place=place, cure="check the path and its permissions", exit_status=ExitStatus.USAGE
    )
