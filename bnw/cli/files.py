"""Files that commands read and write: bounded, whole or not at all, never over another one by accident."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable
from pathlib import Path

from bnw.wire.errors import BnwError, ExitStatus, LocalError
from bnw.wire.printable import printable_lines


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
        raise _too_large(path, limit)
    return data


def check_readable(path: Path, limit: int) -> None:
    """Find out early what `read_file` would raise about a file. Raises `LocalError`: `unreadable`, `too-large`."""
    if str(path) == "-":
        return
    try:
        with path.open("rb") as file:
            size = os.fstat(file.fileno()).st_size
    except OSError as error:
        raise unreadable(str(path), error.strerror or str(error)) from None
    if size > limit:
        raise _too_large(path, limit)


def check_json(data: bytes, place: str, *, cure: str) -> None:
    """Say what is wrong with text that is meant to be JSON and is not. Raises `LocalError` (`json`)."""
    try:
        json.loads(data)
    except (ValueError, RecursionError):
        from bnw.profiles.json_reader import salvage_json

        _, faults = salvage_json(data, max_bytes=len(data))
        cause = faults[0].message if faults else "it cannot be read"
        raise LocalError(
            "json",
            f"not readable as JSON: {cause}",
            place=place,
            cure=cure,
            exit_status=ExitStatus.USAGE,
        ) from None


def check_new(path: Path, *, force: bool) -> None:
    """Find out early that `write_file` would not write over what is there. Raises `LocalError` (`exists`)."""
    if not force and (path.exists() or path.is_symlink()):
        raise _exists(path)


def check_place(path: Path) -> None:
    """Find out before long work that its outcome could not be written. Raises `LocalError` (`write-failed`)."""
    there = path if path.exists() else path.parent
    if path.is_dir() or not there.exists() or not os.access(there, os.W_OK):
        raise LocalError(
            "write-failed",
            "is a directory" if path.is_dir() else "cannot be written",
            place=str(path),
            cure="choose a file in a directory that exists and that you may write to",
            exit_status=ExitStatus.USAGE,
        )


def write_file(path: Path, data: bytes, *, force: bool) -> None:
    """Write a file whole or not at all; never over another unless `force`. Raises `LocalError`."""
    write_pieces(path, (data,), force=force)


def write_pieces(path: Path, pieces: Iterable[bytes], *, force: bool) -> None:
    """The same for what comes in pieces. What `pieces` raises leaves no file either."""
    from bnw.identity.private_file import sync_directory

    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with part.open("xb") as file:
            for piece in pieces:
                file.write(piece)
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
        raise _exists(path) from None
    except BnwError:
        part.unlink(missing_ok=True)
        raise
    except OSError as error:
        part.unlink(missing_ok=True)
        raise LocalError(
            "write-failed",
            error.strerror or str(error),
            place=str(path),
            cure="choose a place with room that you may write to",
            exit_status=ExitStatus.USAGE,
        ) from error


def print_bytes(data: bytes) -> None:
    """To standard output, as they are; to a terminal as text that cannot command it, with an end of line."""
    if sys.stdout.isatty():
        text = printable_lines(data.decode(errors="backslashreplace"))
        sys.stdout.write(text if text.endswith("\n") else f"{text}\n")
        sys.stdout.flush()
        return
    sys.stdout.buffer.write(data)
    # Now, since a full disk or a closed pipe could not be reported when Python ends.
    sys.stdout.buffer.flush()


def print_pieces(pieces: Iterable[bytes]) -> None:
    """The same for what is too large for memory; a terminal gets none of it. Raises `LocalError` (`too-large`)."""
    if sys.stdout.isatty():
        raise LocalError(
            "too-large",
            "the output is too large for a terminal",
            place="standard output",
            cure="`bnw invocation wait` with --output writes it to a file",
            exit_status=ExitStatus.USAGE,
        )
    for piece in pieces:
        sys.stdout.buffer.write(piece)
    sys.stdout.buffer.flush()


def _too_large(path: Path, limit: int) -> LocalError:
    return LocalError(
        "too-large",
        f"more than {limit:,} bytes",
        place=str(path),
        cure="send less, or something smaller that refers to it",
        exit_status=ExitStatus.USAGE,
    )


def _exists(path: Path) -> LocalError:
    return LocalError(
        "exists",
        "there is a file of this name already; it was not touched",
        place=str(path),
        cure="choose another name, or --force",
        exit_status=ExitStatus.USAGE,
    )


def unreadable(place: str, cause: str) -> LocalError:
    return LocalError(
        "unreadable", cause, place=place, cure="check the path and its permissions", exit_status=ExitStatus.USAGE
    )
