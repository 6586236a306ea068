"""How a real provider's program gets its answer from the workload: over a Unix socket.

The provider runs a program for each call, as for any other. This one hands the call to the process that plays the
scenario, where the workload's handler thinks about it and counts it, as it does in the simulator.
"""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Final

import anyio
import anyio.abc

from bnw.identity.keys import IdentityId
from bnw.inbox.payload import Payload
from bnw.invoke.handlers import Answer, Call
from bnw.wire.content_id import ContentId
from bnw.wire.limits import MAX_PAYLOAD_IN_MEMORY

Handler = Callable[[Call], Awaitable[Answer]]

PROGRAM: Final = """\
import os, shutil, socket, sys
with socket.socket(socket.AF_UNIX) as s:
    s.connect(sys.argv[1])
    with s.makefile("rwb") as f:
        f.write(bytes.fromhex(os.environ["BNW_INVOCATION"]) + bytes.fromhex(os.environ["BNW_CAPABILITY"]))
        shutil.copyfileobj(sys.stdin.buffer, f)
        f.flush()
        s.shutdown(socket.SHUT_WR)
        shutil.copyfileobj(f, sys.stdout.buffer)
"""
_IDS: Final = 64
"""Bytes of the two ids before the input."""


class AnswerDesk:
    """Answers the programs of all providers. `path` is where they find it."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.handlers: dict[ContentId, Handler] = {}
        """By capability."""

    @property
    def arguments(self) -> list[str]:
        """The program for `bnw provide --exec`, which starts in the time that an empty Python takes."""
        return [sys.executable, "-I", "-S", "-c", PROGRAM, str(self._path)]

    async def run(self, *, task_status: anyio.abc.TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Listen and answer until cancelled."""
        listener = await anyio.create_unix_listener(self._path, mode=0o600)
        task_status.started()
        await listener.serve(self._serve)

    async def _serve(self, stream: anyio.abc.SocketStream) -> None:
        data = bytearray()
        async with stream:
            try:
                async for part in stream:
                    data += part
                    if len(data) > MAX_PAYLOAD_IN_MEMORY + _IDS:
                        return
                handler = self.handlers.get(ContentId(bytes(data[_IDS // 2 : _IDS])))
                if handler is None:
                    return
                await stream.send((await handler(_call(data))).data)
            except (anyio.BrokenResourceError, OSError):
                # The provider was killed over it; nobody waits for the answer.
                return


def _call(data: bytearray) -> Call:
    """What the workload's handler looks at, of what a handler within a node is told."""
    return Call(
        invocation=ContentId(bytes(data[: _IDS // 2])),
        capability=ContentId(bytes(data[_IDS // 2 : _IDS])),
        requester=IdentityId(bytes(32)),
        deadline=0,
        input=Payload(bytes(data[_IDS:]), "application/octet-stream"),
        max_output=MAX_PAYLOAD_IN_MEMORY,
    )
