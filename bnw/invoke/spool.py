"""Output of a handler as it comes: in memory as long as it is small, then in a file of the call's folder."""

from __future__ import annotations

import os
from types import TracebackType
from typing import Final, Self

import anyio
import anyio.to_thread

from bnw.identity.private_file import PRIVATE_MODE
from bnw.invoke.handler import Answer, Call, HandlerFailure
from bnw.wire.errors import LocalError
from bnw.wire.limits import MAX_PAYLOAD_IN_MEMORY

OUTPUT_NAME: Final = "output"


class Spool:
    """Takes at most `call.max_output` bytes; use within its `with`."""

    def __init__(self, call: Call) -> None:
        self._call = call
        self.most = call.max_output if call.folder is not None else min(call.max_output, MAX_PAYLOAD_IN_MEMORY)
        self._memory = bytearray()
        self._descriptor: int | None = None
        self._size = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)

    async def add(self, data: bytes) -> bool:
        """Keep `data`; False, and nothing is kept of it, if it is more than may be. Raises `HandlerFailure`."""
        self._size += len(data)
        if self._size > self.most:
            return False
        if self._size <= MAX_PAYLOAD_IN_MEMORY:
            self._memory += data
        else:
            with anyio.CancelScope(shield=True):  # the thread writes to a descriptor that is closed afterwards
                await anyio.to_thread.run_sync(self._write, data)
        return True

    def answer(self, media_type: str | None = None) -> Answer:
        """All that was added."""
        if self._descriptor is None:
            return Answer(bytes(self._memory), media_type)
        assert self._call.folder is not None
        return Answer(media_type=media_type, file=self._call.folder.path / OUTPUT_NAME)

    def _write(self, data: bytes) -> None:
        try:
            if self._descriptor is None:
                self._descriptor = self._open()
                data, self._memory = bytes(self._memory) + data, bytearray()
            view = memoryview(data)
            while view:
                view = view[os.write(self._descriptor, view) :]
        except OSError as error:
            raise _not_kept(error.strerror or str(error)) from error
        except LocalError as error:
            raise _not_kept(error.cause) from error

    def _open(self) -> int:
        assert self._call.folder is not None
        path = self._call.folder.path / OUTPUT_NAME
        return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, PRIVATE_MODE)


def _not_kept(cause: str) -> HandlerFailure:
    return HandlerFailure("output-not-kept", "the provider could not keep the output", detail=cause)
