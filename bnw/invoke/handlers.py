"""What a provider runs for a call: a Python callable, a program per call, or a service that listens on this machine.

`bnw.invoke.handler` says what they have in common, `python_handler` makes a handler of a callable,
`bnw.invoke.programs` runs programs, and `bnw.invoke.services` asks services. Programs that embed a node take all of it
from here.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from dataclasses import replace
from functools import partial
from typing import cast

import anyio
import anyio.from_thread
import anyio.to_thread

from bnw.inbox.payload import Payload, PayloadFile
from bnw.invoke.handler import Answer, Call, Handler, HandlerFailure, Report
from bnw.invoke.programs import ProgramHandler
from bnw.invoke.services import ServiceHandler

__all__ = [
    "Answer",
    "Call",
    "Function",
    "Handler",
    "HandlerFailure",
    "Payload",
    "PayloadFile",
    "ProgramHandler",
    "Report",
    "ServiceHandler",
    "python_handler",
]

MAX_THREADS = 8
"""Synchronous callables that run at once, those that were given up included."""
THREAD_GRACE = 2.0
"""Seconds that a synchronous callable has to notice that it is to stop. Then its thread is left to itself."""

Function = Callable[[Call], Answer | bytes] | Callable[[Call], Awaitable[Answer | bytes]]


def python_handler(function: Function) -> Handler:
    """A handler of a callable that answers with an `Answer` or with bytes. A synchronous one runs in a thread."""
    if inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(type(function).__call__):
        asynchronous = cast(Callable[[Call], Awaitable[Answer | bytes]], function)

        async def handle(call: Call) -> Answer:
            return _answer(await asynchronous(call))

        return handle
    return _ThreadHandler(cast(Callable[[Call], Answer | bytes], function))


class _ThreadHandler:
    def __init__(self, function: Callable[[Call], Answer | bytes]) -> None:
        self._function = function
        self._limiter = anyio.CapacityLimiter(MAX_THREADS)

    async def __call__(self, call: Call) -> Answer:
        ended, thread = anyio.Event(), anyio.CancelScope(shield=True)
        outcome: list[Answer | bytes | Exception] = []
        stopping = False

        def report(stage: str, fraction: float | None = None, note: str | None = None) -> None:
            anyio.from_thread.run_sync(partial(call.report, stage, fraction, note))

        told = replace(call, report=report, stopping=lambda: stopping)

        def run() -> Answer | bytes | Exception:
            try:
                return self._function(told)
            except Exception as error:  # noqa: BLE001 - raised again where the call is awaited
                return error

        async def wait_for_thread() -> None:
            with thread:
                outcome.append(await anyio.to_thread.run_sync(run, abandon_on_cancel=True, limiter=self._limiter))
            ended.set()

        async with anyio.create_task_group() as group:
            group.start_soon(wait_for_thread)
            try:
                await ended.wait()
            finally:
                stopping = True
                with anyio.move_on_after(THREAD_GRACE, shield=True):
                    await ended.wait()
                thread.cancel()
        [answer] = outcome
        if isinstance(answer, Exception):
            raise answer
        return _answer(answer)


def _answer(value: Answer | bytes) -> Answer:
    return value if isinstance(value, Answer) else Answer(bytes(value))
