"""Where work that keeps a processor busy is done: off the event loop, or right here.

Sealing, opening and hashing a gigabyte takes seconds, during which a node must answer others; so a real node hands in
`worker_threads`. A simulated one must not use threads, whose order no seed decides, and hands in `inline`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeVar

import anyio
import anyio.lowlevel
import anyio.to_thread

T = TypeVar("T")

WORKERS = 4
"""Pieces of work at once. More than most machines have processors to spare, as some of the work waits for the disk."""


class Offload(Protocol):
    """Does a piece of work and returns, or raises, what it does."""

    async def __call__(self, work: Callable[[], T], /) -> T: ...


async def inline(work: Callable[[], T], /) -> T:
    """Do it here and now; other tasks get their turn before."""
    await anyio.lowlevel.checkpoint()
    return work()


def worker_threads(count: int = WORKERS) -> Offload:
    """Do it in one of at most `count` threads. A caller that is cancelled waits for its piece of work to end."""
    limiter = anyio.CapacityLimiter(count)

    async def in_thread(work: Callable[[], T], /) -> T:
        return await anyio.to_thread.run_sync(work, limiter=limiter)

    return in_thread
