"""Measure the store: `python scripts/bench_store.py [--objects N] [--directory DIR] [--json]`.

Rates are per second, of one run on one machine; what carries over to another machine are the ratios, which compare the
store with plain sqlite3 inserts in the same run, on the same disk and with the same durability (write-ahead log,
`synchronous=FULL`, batches of the same size):

- `ratio_to_raw_table`: against one table (id, data) and nothing else. The store also decides about each object, counts
  quotas and totals, and keeps the indexes that lists, scopes and expiry need.
- `ratio_to_raw_schema`: against the same rows put into the store's own tables and indexes without any decision.
"""

from __future__ import annotations

import argparse
import json
import sqlite3
import tempfile
import time
from collections.abc import Callable, Coroutine, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import anyio

from bnw.identity.keys import IdentityId, SigningKey
from bnw.objects.authority import Caveats, Delegation
from bnw.objects.rules import CATALOG
from bnw.objects.signed import SignedObject, sign_object
from bnw.store.database import open_writer
from bnw.store.interface import Quota
from bnw.store.limits import INLINE_BLOB
from bnw.store.memory import MemoryStore
from bnw.store.sqlite import SqliteStore
from bnw.wire.content_id import content_id
from bnw.wire.limits import DAY, MIB

NOW = 1_700_000_000_000
BATCH = 500
SINGLES = 300
READS = 500
SIGNERS = 50
Call = Callable[[], Coroutine[Any, Any, object]]
ROOMY = Quota(objects=10_000_000, bytes=10_000 * MIB)


def make_objects(count: int) -> list[SignedObject]:
    keys = [SigningKey(content_id(b"bench %d" % number)) for number in range(SIGNERS)]
    return [
        sign_object(
            Delegation(
                created=NOW,
                expires=NOW + DAY,
                audience=IdentityId(content_id(b"audience %d" % number)),
                caveats=Caveats(None, None, None, None, None),
                not_before=NOW,
                parent=None,
                rights=("invoke",),
            ),
            keys[number % SIGNERS],
        )
        for number in range(count)
    ]


def batches(objects: Sequence[SignedObject]) -> list[Sequence[SignedObject]]:
    return [objects[start : start + BATCH] for start in range(0, len(objects), BATCH)]


def raw_table(directory: Path, objects: Sequence[SignedObject]) -> float:
    connection = sqlite3.connect(directory / "raw.sqlite", isolation_level=None)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("CREATE TABLE objects (id BLOB PRIMARY KEY, data BLOB NOT NULL)")
    begin = time.perf_counter()
    for batch in batches(objects):
        connection.execute("BEGIN")
        connection.executemany("INSERT INTO objects VALUES (?, ?)", [(obj.id, obj.data) for obj in batch])
        connection.execute("COMMIT")
    rate = len(objects) / (time.perf_counter() - begin)
    connection.close()
    return rate


def raw_schema(directory: Path, objects: Sequence[SignedObject]) -> float:
    connection = open_writer(directory / "schema.sqlite", must_exist=False)
    begin = time.perf_counter()
    for batch in batches(objects):
        connection.execute("BEGIN")
        connection.executemany(
            "INSERT INTO objects (id, kind, signer, slot, sequence, expires, size, recipients, data)"
            " VALUES (?, ?, ?, NULL, 0, ?, ?, x'', ?)",
            [(obj.id, obj.kind, obj.signer, obj.body.expires, len(obj.data), obj.data) for obj in batch],
        )
        connection.executemany(
            "INSERT INTO members VALUES (x'', ?, ?, ?)",
            [(obj.id, obj.body.created, obj.body.expires) for obj in batch],
        )
        connection.execute("COMMIT")
    rate = len(objects) / (time.perf_counter() - begin)
    connection.close()
    return rate


async def rate(count: int, work: Call) -> float:
    begin = time.perf_counter()
    await work()
    return count / (time.perf_counter() - begin)


async def all_at_once(calls: Sequence[Call]) -> None:
    async with anyio.create_task_group() as tasks:
        for call in calls:
            tasks.start_soon(call)


async def one_by_one(calls: Sequence[Call]) -> None:
    for call in calls:
        await call()


async def measure(directory: Path, count: int) -> dict[str, float]:
    objects = make_objects(count + 2 * SINGLES)
    batched, single, concurrent = objects[:count], objects[count : count + SINGLES], objects[count + SINGLES :]
    figures: dict[str, float] = {}
    async with SqliteStore.open(directory / "store", ROOMY) as store:
        put = partial(store.put_objects, now=NOW)
        figures["batched_objects"] = await rate(
            count, lambda: one_by_one([partial(put, batch) for batch in batches(batched)])
        )
        figures["single_objects"] = await rate(SINGLES, lambda: one_by_one([partial(put, [obj]) for obj in single]))
        before = store.transactions
        figures["concurrent_single_objects"] = await rate(
            SINGLES, lambda: all_at_once([partial(put, [obj]) for obj in concurrent])
        )
        figures["concurrent_puts_per_transaction"] = SINGLES / (store.transactions - before)
        figures["object_reads"] = await rate(
            READS, lambda: one_by_one([partial(store.get_object, obj.id) for obj in batched[:READS]])
        )
        figures["scope_summaries"] = await rate(
            READS, lambda: one_by_one([partial(store.scope_summary, CATALOG, now=NOW)] * READS)
        )
        for name, size in (("small_blobs", INLINE_BLOB // 8), ("large_blobs", MIB)):
            blobs = [content_id(b"%d" % number) * (size // 32) for number in range(100)]
            puts: list[Call] = [partial(store.put_blob, data) for data in blobs]
            figures[f"concurrent_{name}"] = await rate(len(puts), partial(all_at_once, puts))
    figures["raw_table_rows"] = raw_table(directory, batched)
    figures["raw_schema_rows"] = raw_schema(directory, batched)
    figures["ratio_to_raw_table"] = figures["batched_objects"] / figures["raw_table_rows"]
    figures["ratio_to_raw_schema"] = figures["batched_objects"] / figures["raw_schema_rows"]
    figures["ratio_batched_to_single"] = figures["batched_objects"] / figures["single_objects"]
    memory = MemoryStore(ROOMY)
    figures["memory_objects"] = await rate(count, lambda: memory.put_objects(batched, now=NOW))
    return figures


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure the store of BNW.")
    parser.add_argument("--objects", type=int, default=20_000, help="how many objects the batched measurements put")
    parser.add_argument("--directory", type=Path, help="where to write (default: the directory for temporary files)")
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.directory, prefix="bench-store-") as directory:
        figures = anyio.run(measure, Path(directory), options.objects, backend="trio")
    if options.json:
        print(json.dumps({"objects": options.objects, "batch": BATCH, "figures": figures}))
        return
    for name, value in figures.items():
        print(f"{name:34} {value:>12,.2f}" if value < 100 else f"{name:34} {value:>12,.0f}")


if __name__ == "__main__":
    main()
