"""A program per call: input on standard input, output on standard output, progress through a pipe of its own.

An input that does not fit in memory is a file: its standard input then, and named by the variable BNW_INPUT_FILE.

The program runs in a process group of its own. When its time is up, or the requester cancels, the group gets SIGTERM
and, two seconds later, SIGKILL; when the program ends, what it left running in its group is killed. A child that leaves
the group with `setsid` gets away; the call is over all the same, and its output is what had been written by then.

Progress: the variable BNW_PROGRESS names the pipe. Each line written to it is a JSON object with `stage`, and perhaps
`fraction` (0 to 1) and `note`:

    echo '{"stage": "lookup", "fraction": 0.5}' > "$BNW_PROGRESS"
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import signal
import subprocess
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import IO

import anyio
from anyio.abc import ByteReceiveStream, ByteSendStream, Process

from bnw.identity.keys import did_key
from bnw.inbox.payload import PayloadFile
from bnw.invoke.handler import Answer, Call, HandlerFailure
from bnw.invoke.spool import Spool
from bnw.transport.tasks import background_tasks
from bnw.wire.errors import InvalidError
from bnw.wire.limits import KIB

logger = logging.getLogger(__name__)

MAX_ERROR_OUTPUT = 8 * KIB
"""Bytes of a program's standard error that are kept, from its end, for the requester."""
MAX_PROGRESS_LINE = 4 * KIB
TERMINATION_GRACE = 2.0
"""Seconds between asking a program to stop and killing it."""
PIPE_GRACE = 1.0
"""Seconds for what a program wrote before it ended to be read, when something outside its group holds the pipe."""
_READ_SIZE = 64 * KIB


class ProgramHandler:
    """See the module docstring."""

    def __init__(
        self, arguments: Sequence[str], *, environment: Mapping[str, str], directory: Path | None = None
    ) -> None:
        """`environment` is what the program sees, besides the variables that begin with BNW_ (`docs/calls.md`).

        It runs in `directory`; by default where the node runs.
        """
        self._arguments = list(arguments)
        self._environment = dict(environment)
        self._directory = directory

    async def __call__(self, call: Call) -> Answer:
        error_output = bytearray()
        refused: HandlerFailure | None = None
        async with AsyncExitStack() as stack:
            output = stack.enter_context(Spool(call))
            progress_name, progress_fd = await stack.enter_async_context(_progress_pipe(call))
            variables = self._variables(call, progress_name)
            process = await stack.enter_async_context(
                _running(self._arguments, variables, self._directory, call, progress_fd)
            )
            assert process.stdout is not None
            assert process.stderr is not None
            all_read = anyio.Event()

            async def read_output(stdout: ByteReceiveStream) -> None:
                nonlocal refused
                try:
                    await _collect(stdout, output)
                except HandlerFailure as failure:
                    refused = failure
                    _signal_group(process, signal.SIGKILL)
                all_read.set()

            async with anyio.create_task_group() as group:
                if process.stdin is not None:
                    group.start_soon(_feed, process.stdin, call.data)
                group.start_soon(_collect_tail, process.stderr, error_output)
                group.start_soon(read_output, process.stdout)
                status = await process.wait()
                _signal_group(process, signal.SIGKILL)
                with anyio.move_on_after(PIPE_GRACE):
                    await all_read.wait()
                group.cancel_scope.cancel()
        if refused is not None:
            raise refused
        if status != 0:
            raise _exit_failure(status, error_output.decode(errors="replace"))
        return output.answer()

    def _variables(self, call: Call, progress: str) -> dict[str, str]:
        return {
            **self._environment,
            **({"BNW_INPUT_FILE": str(call.input.path)} if isinstance(call.input, PayloadFile) else {}),
            "BNW_CAPABILITY": call.capability.hex(),
            "BNW_DEADLINE": str(call.deadline),
            "BNW_INVOCATION": call.invocation.hex(),
            "BNW_MEDIA_TYPE": call.input.media_type,
            "BNW_PROGRESS": progress,
            "BNW_REQUESTER": did_key(call.requester),
        }


@asynccontextmanager
async def _running(
    arguments: list[str], variables: dict[str, str], directory: Path | None, call: Call, progress_fd: int
) -> AsyncIterator[Process]:
    try:
        with contextlib.ExitStack() as stack:
            stdin: int | IO[bytes] = subprocess.PIPE
            if isinstance(call.input, PayloadFile):
                stdin = stack.enter_context(call.input.path.open("rb"))
            process = await anyio.open_process(
                arguments,
                stdin=stdin,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env=variables,
                cwd=directory,
                start_new_session=True,
                pass_fds=[progress_fd],
            )
    except (OSError, ValueError) as error:
        raise HandlerFailure(
            "program-not-started",
            "the provider's program cannot be started",
            detail=f"{arguments[0]}: {getattr(error, 'strerror', None) or error}",
        ) from error
    try:
        yield process
    finally:
        with anyio.CancelScope(shield=True):
            await _stop(process)


@asynccontextmanager
async def _progress_pipe(call: Call) -> AsyncIterator[tuple[str, int]]:
    """A pipe for progress: its name and its end for the program. What arrives is reported as long as the body runs."""
    reading, writing = os.pipe()
    os.set_blocking(reading, False)
    try:
        async with background_tasks() as tasks:
            tasks.start_soon(_report_lines, reading, call)
            yield f"/dev/fd/{writing}", writing
        # What was written last, by a program that has ended since.
        with contextlib.suppress(BlockingIOError):
            _report_data(os.read(reading, _READ_SIZE), call)
    finally:
        os.close(reading)
        os.close(writing)


async def _report_lines(reading: int, call: Call) -> None:
    pending = b""
    while True:
        await anyio.wait_readable(reading)
        data = pending + os.read(reading, _READ_SIZE)
        whole, newline, pending = data.rpartition(b"\n")
        pending = pending[:MAX_PROGRESS_LINE]
        if newline:
            _report_data(whole, call)


def _report_data(data: bytes, call: Call) -> None:
    """Report the lines of `data`. A line that is no report is the program's fault and changes nothing."""
    for line in data.splitlines():
        try:
            said = json.loads(line)
            call.report(said["stage"], said.get("fraction"), said.get("note"))
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError, InvalidError) as error:
            logger.info("call %s: a line of progress is not understood: %s", call.invocation.hex(), error)


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


async def _collect(stdout: ByteReceiveStream, output: Spool) -> None:
    """Read all output. Raises `HandlerFailure` (`output-too-large`) as soon as it is more than may be."""
    while True:
        try:
            data = await stdout.receive(_READ_SIZE)
        except (anyio.EndOfStream, anyio.ClosedResourceError):
            return
        if not await output.add(data):
            raise HandlerFailure("output-too-large", f"the program wrote more than {output.most:,} bytes")


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
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, number)
