"""A task that fails ends neither its service nor the process.

Fault (libp2p 0.8.1): whatever runs under a service's manager (`Swarm`, `Pubsub`, `GossipSub`) cancels the whole service
when it raises, and with it the program around it. Much of what runs there handles bytes from peers. A manager also
refuses, by raising, a thousand-and-first child task.

On the stock library: one gossip message whose key is junk ends the program (tests/transport/test_crash_frames.py).

Can go when a manager reports what a task raised instead of ending its service.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import anyio
from libp2p.tools.anyio_service import Service, TrioManager

from bnw.transport.tasks import background_tasks, log

MAX_TASKS = 1_000_000
"""Child tasks of one task. What peers can start is bounded where they start it."""

RESTART_AFTER = 1.0
"""Seconds before a failed task starts again that is meant to run as long as its service."""


class ContainedManager(TrioManager):
    """Runs tasks like its base, and logs what they raise."""

    def __init__(self, service: Service) -> None:
        super().__init__(service, max_children_per_task=MAX_TASKS)

    # The base declares this with a decorator of `trio_typing` that mypy cannot compare with a signature.
    def run_task(  # type: ignore[override,unused-ignore]  # see above
        self,
        async_fn: Callable[..., Awaitable[Any]],
        *args: Any,
        daemon: bool = False,
        name: str | None = None,
        _internal: bool = False,
    ) -> None:
        label = name or str(getattr(async_fn, "__qualname__", async_fn))
        # The service's own `run` is ours to get right, and must end what depends on it.
        contained = async_fn if _internal else partial(_contain, async_fn, daemon, label)
        super().run_task(contained, *args, daemon=daemon, name=label, _internal=_internal)


async def _contain(async_fn: Callable[..., Awaitable[Any]], restart: bool, name: str, *args: Any) -> None:
    while True:
        try:
            await async_fn(*args)
            return
        except Exception as error:  # noqa: BLE001 - the point of this module
            log.info("a task of libp2p failed: %s: %r", name, error)
        if not restart:
            return
        await anyio.sleep(RESTART_AFTER)


@asynccontextmanager
async def contained_service(service: Service) -> AsyncIterator[None]:
    """Run `service` while the body runs. In place of libp2p's `background_trio_service`."""
    async with background_tasks() as tasks:
        manager = ContainedManager(service)
        service._manager = manager
        tasks.start_soon(manager.run)
        await manager.wait_started()
        try:
            yield
        finally:
            with anyio.CancelScope(shield=True):
                await manager.stop()
