"""A file as the plaintext of a payload."""

from __future__ import annotations

import os
import stat
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Self

import anyio

from bnw.blobs.offload import Offload
from bnw.wire.errors import ExitStatus, LocalError
from bnw.wire.limits import PAYLOAD_CHUNK


class FileSource:
    """The bytes of the file at `path`, in pieces; use within its `async with`. Raises `LocalError` (`unreadable`).

    `size` is the file's size when it was opened; None for what is no plain file, such as a pipe.
    """

    def __init__(self, path: Path, offload: Offload) -> None:
        self._path = path
        self._offload = offload
        self._descriptor = -1
        self.size: int | None = None

    async def __aenter__(self) -> Self:
        try:
            self._descriptor = await self._offload(partial(os.open, self._path, os.O_RDONLY | os.O_CLOEXEC))
            status = os.fstat(self._descriptor)
        except OSError as error:
            raise self._unreadable(error) from error
        self.size = status.st_size if stat.S_ISREG(status.st_mode) else None
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        with anyio.CancelScope(shield=True):
            await self._offload(partial(os.close, self._descriptor))

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        try:
            data = await self._offload(partial(os.read, self._descriptor, PAYLOAD_CHUNK))
        except OSError as error:
            raise self._unreadable(error) from error
        if not data:
            raise StopAsyncIteration
        return data

    def _unreadable(self, error: OSError) -> LocalError:
        return LocalError(
            "unreadable",
            error.strerror or str(error),
            place=str(self._path),
            cure="check the path and its permissions",
            exit_status=ExitStatus.USAGE,
        )
