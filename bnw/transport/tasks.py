"""Background tasks behind a context manager, without turning the caller's exceptions into groups."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import anyio
from anyio.abc import TaskGroup

from bnw.transport.interface import MessageHandler, PeerId, Stream, StreamHandler, Validator, Verdict
from bnw.wire.errors import BnwError

log = logging.getLogger("bnw.transport")


@asynccontextmanager
async def background_tasks() -> AsyncIterator[TaskGroup]:
    """A task group whose tasks are cancelled when the body is done.

    A lone exception leaves as itself: somebody who writes `except LocalError` around an endpoint must not need to know
    that the endpoint has a task group inside. Nor does it matter whether a cancellation from outside came at the same
    time: whoever cancelled sees the exception pass, as without a task group.
    """
    try:
        async with anyio.create_task_group() as tasks:
            yield tasks
            tasks.cancel_scope.cancel()
    except BaseExceptionGroup as group:
        _, errors = group.split(anyio.get_cancelled_exc_class())
        if errors is not None and (lone := _lone(errors)) is not None:
            raise lone from None
        raise


def _lone(error: BaseException) -> BaseException | None:
    while isinstance(error, BaseExceptionGroup):
        if len(error.exceptions) > 1:
            return None
        error = error.exceptions[0]
    return error


async def serve_stream(stream: Stream, handler: StreamHandler) -> None:
    """Run a stream handler to its end; close the stream after success and reset it after anything else.

    An exception ends this stream and nothing more. `BnwError` is how handlers give up on a peer; any other exception
    is a fault of ours, so it is logged with its traceback.
    """
    finished = False
    try:
        await handler(stream)
        finished = True
    except BnwError as error:
        log.info("stream %s with %s given up: %s", stream.protocol, stream.peer, error)
    except Exception:  # a handler's fault must not end the endpoint
        log.exception("the handler of %s failed; its stream with %s is reset", stream.protocol, stream.peer)
    finally:
        if finished:
            await stream.aclose()
        else:
            await stream.reset()


async def judge(validator: Validator, peer: PeerId, data: bytes) -> Verdict:
    """The validator's verdict. One that raises is our fault, never the sender's: ignore the message, log the fault."""
    try:
        return await validator(peer, data)
    except Exception:
        log.exception("a gossip validator failed; the message from %s is ignored", peer)
        return Verdict.IGNORE


async def hand_over(handler: MessageHandler, peer: PeerId, data: bytes) -> None:
    """Give an accepted message to its handler. A handler that raises loses this message, not the subscription."""
    await _logged(lambda: handler(peer, data), "a gossip handler failed on a message from %s", peer)


async def _logged(call: Callable[[], Awaitable[None]], text: str, *values: object) -> None:
    try:
        await call()
    except Exception:
        log.exception(text, *values)
