"""A process that writes to a store until it is killed. Run by `test_sqlite_crash.py`.

It loads everything once and then forks a writer for every line `DIRECTORY ROUND` on its standard input. The writer
prints its process id, and a line for every write that the store has acknowledged; when it has died, `dead` is printed.
"""

from __future__ import annotations

import os
import sys
from itertools import count
from pathlib import Path

import anyio
from store_objects import NOW, cancellation, delegation, offer

from bnw.store.interface import Quota
from bnw.store.limits import INLINE_BLOB
from bnw.store.sqlite import SqliteStore
from bnw.wire.content_id import content_id
from bnw.wire.limits import MIB

ROOMY = Quota(objects=1_000_000, bytes=1000 * MIB)
PER_ROUND = 1_000_000


def blob(number: int) -> bytes:
    """Every third is large enough to be a file."""
    size = INLINE_BLOB * 3 if number % 3 == 0 else 1000
    return content_id(str(number).encode()) * (size // 32)


def say(*words: object) -> None:
    os.write(1, (" ".join(map(str, words)) + "\n").encode())  # one write, so that a kill cannot cut a line


async def write(directory: Path, first: int) -> None:
    async with SqliteStore.open(directory, ROOMY) as store, anyio.create_task_group() as tasks:

        async def put_objects(start: int) -> None:
            for number in count(first + start, 6):
                await store.put_objects([delegation(number), delegation(number + 3), offer(number + 1)], now=NOW)
                say("objects", number)

        async def put_blobs() -> None:
            for number in count(first):
                await store.put_blob(blob(number))
                say("blob", number)

        async def put_records() -> None:
            for number in count(first):
                value = str(number).encode()
                await store.put_record_with_objects("calls", value, value, [cancellation(number)], now=NOW)
                say("record", number)

        for start in range(3):
            tasks.start_soon(put_objects, start)
        tasks.start_soon(put_blobs)
        tasks.start_soon(put_records)


def main() -> None:
    anyio.run(anyio.sleep, 0, backend="trio")  # loads the backend, which takes longer than a writer lives
    for line in sys.stdin:
        directory, number = line.split()
        child = os.fork()
        if child == 0:
            say("pid", os.getpid())
            anyio.run(write, Path(directory), int(number) * PER_ROUND, backend="trio")
        os.waitpid(child, 0)
        say("dead")


if __name__ == "__main__":
    main()
