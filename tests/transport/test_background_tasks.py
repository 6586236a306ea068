"""Tasks behind a context manager: how exceptions leave it."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

import anyio
import pytest

from bnw.transport.tasks import background_tasks
from bnw.wire.errors import RemoteError

pytestmark = pytest.mark.anyio

GONE = RemoteError("gone", "it went away")


async def fail() -> None:
    raise GONE


async def fail_when_cancelled() -> None:
    try:
        await anyio.sleep_forever()
    finally:
        raise GONE


async def test_what_the_body_raises_leaves_as_itself() -> None:
    with pytest.raises(RemoteError) as caught:
        async with background_tasks():
            raise GONE
    assert caught.value is GONE


@pytest.mark.parametrize("task", [fail, fail_when_cancelled])
async def test_what_a_task_raises_leaves_as_itself(task: Callable[[], Coroutine[Any, Any, None]]) -> None:
    with pytest.raises(RemoteError) as caught:
        async with background_tasks() as tasks:
            tasks.start_soon(task)
            await anyio.lowlevel.checkpoint()
    assert caught.value is GONE


async def test_a_failure_in_the_moment_of_a_cancellation_from_outside_leaves_as_itself() -> None:
    with pytest.raises(RemoteError) as caught, anyio.CancelScope() as scope:
        async with background_tasks() as tasks:
            tasks.start_soon(fail_when_cancelled)
            tasks.start_soon(anyio.sleep_forever)
            await anyio.lowlevel.checkpoint()
            scope.cancel()
            await anyio.sleep_forever()
    assert caught.value is GONE


async def test_a_cancellation_from_outside_is_swallowed_by_its_own_scope_only() -> None:
    with anyio.CancelScope() as scope:
        async with background_tasks() as tasks:
            tasks.start_soon(anyio.sleep_forever)
            scope.cancel()
            await anyio.sleep_forever()
    assert scope.cancelled_caught


async def test_failures_of_several_tasks_leave_together() -> None:
    with pytest.raises(ExceptionGroup) as caught:
        async with background_tasks() as tasks:
            tasks.start_soon(fail_when_cancelled)
            tasks.start_soon(fail_when_cancelled)
            await anyio.lowlevel.checkpoint()
    assert caught.value.exceptions == (GONE, GONE)
