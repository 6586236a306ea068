"""Looks for secrets in every file under a directory, in the forms in which they would leak."""

from __future__ import annotations

import base64
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class SearchResult:
    """`found` are the files that hold one of the secrets; `files` and `size` (bytes) are what was searched."""

    found: tuple[Path, ...]
    files: int
    size: int


def search(directory: Path, secrets: Iterable[bytes]) -> SearchResult:
    """Search all files. A file that goes away meanwhile is not searched; nothing else is passed over."""
    forms = [form for secret in secrets for form in _forms(secret)]
    found: list[Path] = []
    files = size = 0
    for path in sorted(directory.rglob("*")):
        if path.is_symlink() or not path.is_file():
            continue
        try:
            data = path.read_bytes()
        except FileNotFoundError:
            continue
        files += 1
        size += len(data)
        # Names of files are as telling as their contents.
        data = str(path).encode() + data
        if any(form in data for form in forms):
            found.append(path)
    return SearchResult(tuple(found), files, size)


def _forms(secret: bytes) -> Iterable[bytes]:
    yield secret
    yield secret.hex().encode()
    yield secret.hex().upper().encode()
    # In base64 a secret looks different at each of three places; the ends depend on their neighbours.
    for shift in range(3):
        encoded = base64.b64encode(bytes(shift) + secret)
        yield encoded[4 if shift else 0 : len(encoded) // 4 * 4 - 4]
