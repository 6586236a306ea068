"""Runs an asynchronous function in virtual time, with all that Trio decides decided by a seed."""

from __future__ import annotations

import gc
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Final, TypeVar, TypeVarTuple, Unpack

import anyio
import trio.testing

from bnw.sim.environment import derived_bytes
from bnw.sim.scheduler import SEED_SIZE, deterministic_scheduling

Arguments = TypeVarTuple("Arguments")
Result = TypeVar("Result")

GARBAGE_THRESHOLDS: Final = (50_000, 20, 100)
"""When Python looks for cyclic garbage (`gc.set_threshold`). A world is millions of objects that stay and few that go:
with Python's own thresholds a third of the time of a run goes into looking through them again and again."""


def run_virtual(
    seed: int, function: Callable[[Unpack[Arguments]], Awaitable[Result]], *arguments: *Arguments
) -> Result:
    """Run `function(*arguments)` to its end and return its result. Virtual time starts at 0 seconds.

    Time stands still while any task can run, and jumps to the next deadline when none can; a function that waits for
    something that never comes, with no deadline left, never returns. What the function does follows from the seed as
    long as it takes randomness and time from a `SeededEnvironment` and uses no threads, files, sockets or processes.

    Raises whatever the function raises, `InvalidError` (`cbor-integer`) for a seed outside ±(2^53−1), and `LocalError`
    as `deterministic_scheduling` does.
    """
    clock = trio.testing.MockClock(autojump_threshold=0)
    with _rare_garbage_collection(), deterministic_scheduling(derived_bytes(seed, SEED_SIZE, "scheduler")):
        return anyio.run(function, *arguments, backend="trio", backend_options={"clock": clock})


@contextmanager
def _rare_garbage_collection() -> Iterator[None]:
    before = gc.get_threshold()
    gc.set_threshold(*GARBAGE_THRESHOLDS)
    try:
        yield
    finally:
        gc.set_threshold(*before)
