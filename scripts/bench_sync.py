"""Measure synchronisation: `python scripts/bench_sync.py [--json]`.

- Reconciliation of 100,000 items with 50 differences on each side: round trips, bytes, and CPU time of each side.
- The index: bytes per item, changes and questions per second.
- A catalog of 10,000 signed objects to an empty peer, over an in-process network: with stores in memory and objects
  verified on the event loop, as the simulator does it, and with stores on disk and threads that verify, as a node does
  it. Both peers share this process, so the figures include the work of the side that answers. `ed25519_alone` is what
  verifying the same signatures takes, one after the other, and nothing else. Seconds of CPU count all threads; on a
  machine that does other work as well, they are the ones to compare.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import random
import tempfile
import time
import tracemalloc
from contextlib import AsyncExitStack
from pathlib import Path

import anyio
from bench_store import NOW, ROOMY, make_objects

from bnw.objects.rules import CATALOG
from bnw.objects.signed import SignedObject, parse_object
from bnw.store.interface import Store
from bnw.store.memory import MemoryStore
from bnw.store.sqlite import SqliteStore
from bnw.sync.checking import Verify, verify_here, verify_in_threads
from bnw.sync.negentropy.coding import item_key
from bnw.sync.negentropy.index import BlockedIndex
from bnw.sync.negentropy.reconciler import Initiator, Responder
from bnw.sync.puller import Puller
from bnw.sync.scope_index import ScopeIndex
from bnw.sync.server import SyncServer
from bnw.transport.memory import MemoryNetwork
from bnw.transport.memory.links import Link
from bnw.wire.limits import DAY

PUT_AT_ONCE = 500


class BenchEnvironment:
    """The time of the objects, and random bytes from a seed."""

    def __init__(self) -> None:
        self._random = random.Random(1)

    def now_ms(self) -> int:
        return NOW

    def random_bytes(self, count: int) -> bytes:
        return self._random.randbytes(count)


def make_keys(count: int, seed: str) -> list[bytes]:
    draw = random.Random(seed)
    return [
        item_key(NOW - draw.randrange(30 * DAY), hashlib.sha256(f"{seed} {number}".encode()).digest())
        for number in range(count)
    ]


def measure_reconciliation(items: int, differences: int) -> dict[str, float]:
    common = make_keys(items - differences, "common")
    ours, theirs = common + make_keys(differences, "ours"), common + make_keys(differences, "theirs")
    initiator, responder = Initiator(BlockedIndex(ours)), Responder(BlockedIndex(theirs))
    round_trips = size = 0
    found: list[bytes] = []
    asking = answering = 0.0
    begin = time.process_time()
    message: bytes | None = initiator.start()
    asking += time.process_time() - begin
    while message is not None:
        round_trips += 1
        begin = time.process_time()
        answer = responder.answer(message)
        answering += time.process_time() - begin
        size += len(message) + len(answer)
        begin = time.process_time()
        step = initiator.take(answer)
        asking += time.process_time() - begin
        found += step.have + step.need
        message = step.message
    assert len(found) == 2 * differences
    return {
        "reconcile_round_trips": round_trips,
        "reconcile_bytes": size,
        "reconcile_initiator_ms": 1000 * asking,
        "reconcile_responder_ms": 1000 * answering,
    }


def measure_index(items: int) -> dict[str, float]:
    keys, more = make_keys(items, "index"), make_keys(1000, "more")
    tracemalloc.start()
    # Copies, since the keys themselves are part of what an index holds.
    index = BlockedIndex(bytes(bytearray(key)) for key in keys)
    size, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    begin = time.perf_counter()
    for key in more:
        index.add(key)
    changed = time.perf_counter()
    for key in more:
        index.remove(key)
    removed = time.perf_counter()
    index.sum_below(items)
    renewed = time.perf_counter()
    for number in range(len(more)):
        index.sum_below(number * items // len(more))
    asked = time.perf_counter()
    return {
        "index_bytes_per_item": size / items,
        "index_additions_per_second": len(more) / (changed - begin),
        "index_removals_per_second": len(more) / (removed - changed),
        "index_first_question_after_changes_ms": 1000 * (renewed - removed),
        "index_sums_per_second": len(more) / (asked - renewed),
    }


async def transfer(full: Store, empty: Store, verify: Verify) -> tuple[float, float]:
    """Seconds until everything in one store is in the other, and seconds of CPU of this process meanwhile."""
    environment = BenchEnvironment()
    async with (
        MemoryNetwork(environment, link=Link(latency=0)) as network,
        network.endpoint("full") as serving,
        network.endpoint("empty") as asking,
    ):
        index = ScopeIndex(full, CATALOG)
        await index.at(NOW)
        SyncServer(serving, full, environment, {CATALOG: index}, on_hint=lambda *_: None)
        news: list[SignedObject] = []
        puller = Puller(asking, empty, environment, ScopeIndex(empty, CATALOG), verify=verify, on_news=news.append)
        peer = await asking.dial("mem:full")
        begin, begin_cpu = time.perf_counter(), time.process_time()
        report = await puller.pull(peer)
        seconds, cpu = time.perf_counter() - begin, time.process_time() - begin_cpu
    assert report.is_complete, report
    assert await empty.scope_summary(CATALOG, now=NOW) == await full.scope_summary(CATALOG, now=NOW)
    return seconds, cpu


async def measure_transfers(objects: list[SignedObject]) -> dict[str, float]:
    figures: dict[str, float] = {}
    full, empty = MemoryStore(ROOMY), MemoryStore(ROOMY)
    await full.put_objects(objects, now=NOW)
    figures["catalog_seconds_in_memory"], figures["catalog_cpu_seconds_in_memory"] = await transfer(
        full, empty, verify_here
    )
    with tempfile.TemporaryDirectory(prefix="bench-sync-") as directory:
        async with AsyncExitStack() as stack:
            stores = [
                await stack.enter_async_context(SqliteStore.open(Path(directory) / name, ROOMY))
                for name in ("full", "empty")
            ]
            for start in range(0, len(objects), PUT_AT_ONCE):
                await stores[0].put_objects(objects[start : start + PUT_AT_ONCE], now=NOW)
            seconds, cpu = await transfer(stores[0], stores[1], verify_in_threads())
            figures["catalog_seconds_on_disk"], figures["catalog_cpu_seconds_on_disk"] = seconds, cpu
    parsed = [parse_object(obj.data) for obj in objects]
    begin = time.process_time()
    for obj in parsed:
        obj.verify()
    figures["catalog_cpu_seconds_ed25519_alone"] = time.process_time() - begin
    return figures


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure synchronisation of BNW.")
    parser.add_argument("--items", type=int, default=100_000, help="items that are reconciled")
    parser.add_argument("--differences", type=int, default=50, help="items that either side has alone")
    parser.add_argument("--objects", type=int, default=10_000, help="objects of the catalog that is transferred")
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    options = parser.parse_args()
    figures = measure_reconciliation(options.items, options.differences)
    figures |= measure_index(options.items)
    figures |= anyio.run(measure_transfers, make_objects(options.objects), backend="trio")
    if options.json:
        print(json.dumps({**vars(options), "figures": figures}))
        return
    for name, value in figures.items():
        print(f"{name:40} {value:>12,.2f}" if value < 100 else f"{name:40} {value:>12,.0f}")


if __name__ == "__main__":
    main()
