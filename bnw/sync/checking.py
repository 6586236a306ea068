"""Checking received objects in bulk: first size, form and time, then the signatures, and where that work is done.

One object takes about 0.1 ms, more than half of it for the signature. Reading them holds the interpreter, so it is done
on the event loop, a few at a time. Verifying does not: `verify_in_threads` keeps the event loop free and uses a second
processor. `verify_here` is for a simulation, where a thread would be a source of chance. The two steps are apart
because threads that do some of both spend their time waiting for each other (measured: no gain at all from two).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Final

import anyio
import anyio.lowlevel
import anyio.to_thread

from bnw.objects.admission import check_catalog_object
from bnw.objects.signed import SignedObject, UnverifiedObject
from bnw.wire.errors import InvalidError

CHECKED_AT_ONCE: Final = 32
"""Objects that are read or verified on the event loop before other tasks get their turn (1 to 2 ms)."""
VERIFY_THREADS: Final = 2

Verify = Callable[[Sequence[UnverifiedObject]], Awaitable[list[SignedObject | InvalidError]]]
"""Checks the signatures of some objects; what became of each, in the same order."""


Check = Callable[[bytes, int], UnverifiedObject]
"""Everything but the signature of an object for a scope, at a time in milliseconds. Raises `InvalidError`."""


async def read_objects(
    batch: Sequence[bytes], now: int, check: Check = check_catalog_object
) -> list[UnverifiedObject | InvalidError]:
    """Read the bytes of objects of a scope and check everything but their signatures, at a time in milliseconds."""
    results: list[UnverifiedObject | InvalidError] = []
    for start in range(0, len(batch), CHECKED_AT_ONCE):
        results += [_read(data, now, check) for data in batch[start : start + CHECKED_AT_ONCE]]
        await anyio.lowlevel.checkpoint()
    return results


async def verify_here(objects: Sequence[UnverifiedObject]) -> list[SignedObject | InvalidError]:
    """A `Verify` without threads."""
    results: list[SignedObject | InvalidError] = []
    for start in range(0, len(objects), CHECKED_AT_ONCE):
        results += _verify_all(objects[start : start + CHECKED_AT_ONCE])
        await anyio.lowlevel.checkpoint()
    return results


def verify_in_threads() -> Verify:
    """A `Verify` that shares the objects among `VERIFY_THREADS` threads."""
    limiter = anyio.CapacityLimiter(VERIFY_THREADS)

    async def verify(objects: Sequence[UnverifiedObject]) -> list[SignedObject | InvalidError]:
        size = max(1, -(-len(objects) // VERIFY_THREADS))
        parts = [objects[start : start + size] for start in range(0, len(objects), size)]
        results: list[list[SignedObject | InvalidError]] = [[] for _ in parts]

        async def verify_part(number: int) -> None:
            results[number] = await anyio.to_thread.run_sync(_verify_all, parts[number], limiter=limiter)

        async with anyio.create_task_group() as tasks:
            for number in range(len(parts)):
                tasks.start_soon(verify_part, number)
        return [result for part in results for result in part]

    return verify


def _read(data: bytes, now: int, check: Check) -> UnverifiedObject | InvalidError:
    try:
        return check(data, now)
    except InvalidError as error:
        return error


def _verify_all(objects: Sequence[UnverifiedObject]) -> list[SignedObject | InvalidError]:
    results: list[SignedObject | InvalidError] = []
    for obj in objects:
        try:
            results.append(obj.verify())
        except InvalidError as error:
            results.append(error)
    return results
