"""Where the plaintext of running calls lies while it is too large for memory: a folder for each call, gone with it.

Only the node's user can read it. What a crash leaves is removed at the next start, before any call runs.
"""

from __future__ import annotations

import logging
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import anyio

from bnw.blobs.offload import Offload
from bnw.wire.content_id import ContentId
from bnw.wire.errors import LocalError

logger = logging.getLogger(__name__)

FOLDER_MODE: Final = 0o700


class Workspace:
    """`offload` does the blocking work. There is one for a home, which one node holds."""

    def __init__(self, path: Path, offload: Offload) -> None:
        self._path = path
        self._offload = offload

    async def clear(self) -> None:
        """Remove what an earlier run has left. Raises `LocalError` (`write-failed`)."""
        await self._offload(self._clear)

    @asynccontextmanager
    async def folder(self, call: ContentId) -> AsyncIterator[CallFolder]:
        """A folder for one call as long as the body runs."""
        folder = CallFolder(self._path / call.hex()[:32], self._offload)
        try:
            yield folder
        finally:
            with anyio.CancelScope(shield=True):
                await folder.remove()

    def _clear(self) -> None:
        try:
            for left in self._path.iterdir():  # the directory itself stays: it may be a link to a larger disk
                shutil.rmtree(left)
        except FileNotFoundError:
            return
        except OSError as error:
            raise _failed(self._path, error) from error


class CallFolder:
    """Made when it is first asked for: most calls are small and need none. May be used from any thread."""

    def __init__(self, path: Path, offload: Offload) -> None:
        self._path = path
        self._offload = offload
        self._is_made = False

    @property
    def path(self) -> Path:
        """Raises `LocalError` (`write-failed`)."""
        if not self._is_made:
            self._make()
            self._is_made = True
        return self._path

    async def remove(self) -> None:
        if self._is_made:
            await self._offload(self._remove)

    def _make(self) -> None:
        try:
            self._path.parent.mkdir(mode=FOLDER_MODE, exist_ok=True)
            self._path.mkdir(mode=FOLDER_MODE, exist_ok=True)
        except OSError as error:
            raise _failed(self._path, error) from error

    def _remove(self) -> None:
        try:
            shutil.rmtree(self._path)
        except OSError as error:
            # The call is over and its receipt signed; what is left goes at the next start.
            logger.error("%s cannot be removed: %s", self._path, error)


def _failed(path: Path, error: OSError) -> LocalError:
    return LocalError(
        "write-failed",
        error.strerror or str(error),
        place=str(path),
        cure="see that the node's user may write there",
    )
