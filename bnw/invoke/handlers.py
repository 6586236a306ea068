"""What a provider runs for a call: a Python callable, or a program that reads its input and writes its output.

A handler that cannot answer raises `HandlerFailure`. Its code and message go into the receipt, which carriers can read,
so they never quote the input or the output; `detail` goes into the sealed problem document.
"""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

import anyio
from anyio.abc import ByteReceiveStream, ByteSendStream, Process

from bnw.identity.keys import IdentityId, did_key
from bnw.inbox.payload import Payload
from bnw.wire.content_id import ContentId
from bnw.wire.limits import KIB

MAX_ERROR_OUTPUT = 8 * KIB
"""Bytes of a program's standard error that are kept, from its end, for the requester."""
TERMINATION_GRACE = 2.0
"""Seconds between asking a program to stop and killing it."""
_READ_SIZE = 64 * KIB


@dataclass(frozen=True, slots=True)
class Call:
    """What a handler is told. `deadline` is in milliseconds since the Unix epoch."""

    invocation: ContentId
    capability: ContentId
    requester: IdentityId
    deadline: int
    input: Payload
    max_output: int


@dataclass(frozen=True, slots=True)
class Answer:
    """A handler's output. Without a media type it is of the descriptor's first one."""

    data: bytes = field(repr=False)
    media_type: str | None = None


class HandlerFailure(Exception):
    """The handler could not answer. `code` is a name in the shared alphabet."""

    def __init__(self, code: str, message: str, *, detail: str = "") -> None:
        super().__init__(code, message)
        self.code = code
        self.message = message
        self.detail = detail


class Handler(Protocol):
    async def __call__(self, call: Call) -> Answer:
        """Answer a call. Cancelled when the deadline passes or the requester cancels."""
        ...


class ProgramHandler:
    """Runs a program per call, in a process group of its own: input on standard input, output on standard output."""

    def __init__(
        self, arguments: Sequence[str], *, environment: Mapping[str, str], directory: Path | None = None
    ) -> None:
        """`environment` is what the program sees, besides BNW_REQUESTER, BNW_INVOCATION and BNW_CAPABILITY.

        It runs in `directory`; by default where the node runs.
        """
        self._arguments = list(arguments)
        self._environment = dict(environment)
        self._directory = directory

    async def __call__(self, call: Call) -> Answer:
        output, error_output = bytearray(), bytearray()
        process = await self._start(call)
        try:
            async with anyio.create_task_group() as group:
                assert process.stdin is not None
                assert process.stdout is not None
                assert process.stderr is not None
                group.start_soon(_feed, process.stdin, call.input.data)
                group.start_soon(_collect_tail, process.stderr, error_output)
                too_large = not await _collect(process.stdout, output, call.max_output)
                if too_large:
                    _signal_group(process, signal.SIGKILL)
                status = await process.wait()
                # A child of the program may hold the pipes open; the call is over when the program is.
                _signal_group(process, signal.SIGKILL)
                group.cancel_scope.cancel()
        finally:
            with anyio.CancelScope(shield=True):
                await _stop(process)
        detail = error_output.decode(errors="replace")
        if too_large:
            raise HandlerFailure("output-too-large", f"the program wrote more than {call.max_output:,} bytes")
        if status != 0:
            raise _exit_failure(status, detail)
        return Answer(bytes(output))

    async def _start(self, call: Call) -> Process:
        variables = {
            **self._environment,
            "BNW_CAPABILITY": call.capability.hex(),
            "BNW_INVOCATION": call.invocation.hex(),
            "BNW_REQUESTER": did_key(call.requester),
        }
        try:
            return await anyio.open_process(
                self._arguments,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env=variables,
                cwd=self._directory,
                start_new_session=True,
            )
        except OSError as error:
            raise HandlerFailure(
                "program-not-started",
                "the provider's program cannot be started",
                detail=f"{self._arguments[0]}: {error.strerror or error}",
            ) from error


def _exit_failure(status: int, detail: str) -> HandlerFailure:
    if status < 0:
        known = {number.value: number.name for number in signal.Signals}
        name = known.get(-status, str(-status))
        return HandlerFailure("program-signal", f"the program was ended by signal {name}", detail=detail)
    return HandlerFailure("program-exit", f"the program exited with status {status}", detail=detail)


async def _feed(stdin: ByteSendStream, data: bytes) -> None:
    """Write the input. A program may stop reading whenever it likes."""
    try:
        async with stdin:
            await stdin.send(data)
    except (anyio.BrokenResourceError, anyio.ClosedResourceError):
        return


async def _collect(stdout: ByteReceiveStream, output: bytearray, limit: int) -> bool:
    """Read all output; False as soon as it exceeds `limit` bytes."""
    while True:
        try:
            output += await stdout.receive(_READ_SIZE)
        except anyio.EndOfStream:
            return True
        if len(output) > limit:
            return False


async def _collect_tail(stderr: ByteReceiveStream, tail: bytearray) -> None:
    while True:
        try:
            tail += await stderr.receive(_READ_SIZE)
        except (anyio.EndOfStream, anyio.ClosedResourceError):
            return
        del tail[:-MAX_ERROR_OUTPUT]


async def _stop(process: Process) -> None:
    """Make sure that the program and its children are gone, and its pipes closed."""
    if process.returncode is None:
        _signal_group(process, signal.SIGTERM)
        with anyio.move_on_after(TERMINATION_GRACE):
            await process.wait()
        _signal_group(process, signal.SIGKILL)
    await process.aclose()


def _signal_group(process: Process, number: signal.Signals) -> None:
    try:
        os.killpg(process.pid, number)
    except ProcessLookupError:
        return
