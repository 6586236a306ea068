"""How a store on disk writes: in groups, beside the event loop, and in order when it is closed or cancelled."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path

import anyio
import pytest
from store_objects import NOW, cancellation, delegation

from bnw.store.interface import PutOutcome, Quota
from bnw.store.limits import MAX_BATCH_WRITES, MAX_WAITING_WRITES
from bnw.store.sqlite import SqliteStore
from bnw.store.sqlite_index import SqliteIndex
from bnw.wire.content_id import content_id
from bnw.wire.errors import LocalError

pytestmark = pytest.mark.anyio

Write = Callable[[SqliteIndex, sqlite3.Connection], None]


class Gate:
    """A write that occupies the writer until it is opened, so that a test decides what waits together."""

    def __init__(self, store: SqliteStore) -> None:
        self._store = store
        self._open = threading.Event()
        self._entered = threading.Event()

    async def __aenter__(self) -> Gate:
        self._tasks = anyio.create_task_group()
        await self._tasks.__aenter__()
        self._tasks.start_soon(partial(self._store._writer.write, self._hold))
        await anyio.to_thread.run_sync(self._entered.wait)
        return self

    async def __aexit__(self, *exc: object) -> None:
        self._open.set()
        await self._tasks.__aexit__(None, None, None)

    def open(self) -> None:
        self._open.set()

    def _hold(self, _: SqliteIndex, __: sqlite3.Connection) -> None:
        self._entered.set()
        assert self._open.wait(30)


async def test_concurrent_puts_share_transactions(tmp_path: Path) -> None:
    count = 1000
    async with SqliteStore.open(tmp_path) as store:
        statements: list[str] = []
        store._writer._connection.set_trace_callback(statements.append)
        async with anyio.create_task_group() as tasks:
            for number in range(count):
                tasks.start_soon(partial(store.put_objects, [cancellation(number)], now=NOW))
        commits = statements.count("COMMIT")
        assert commits == store.transactions
        # The first put goes alone; the rest gather behind it, as many as one transaction takes.
        assert commits <= 2 + -(-count // MAX_BATCH_WRITES) * 2
        assert (await store.statistics()).objects == count


async def test_puts_one_after_the_other_are_not_delayed_for_company(tmp_path: Path) -> None:
    async with SqliteStore.open(tmp_path) as store:
        for number in range(5):
            await store.put_objects([delegation(number)], now=NOW)
        assert store.transactions == 5


async def test_puts_of_one_batch_see_each_other(tmp_path: Path) -> None:
    outcomes: list[PutOutcome] = []

    async def put(store: SqliteStore, number: int) -> None:
        outcomes.extend(await store.put_objects([delegation(number)], now=NOW))

    async with SqliteStore.open(tmp_path, Quota(objects=2)) as store:
        async with Gate(store) as gate, anyio.create_task_group() as tasks:
            for number in (1, 1, 2, 3):
                tasks.start_soon(put, store, number)
                await anyio.wait_all_tasks_blocked()  # in this order
            gate.open()
        assert store.transactions == 2
    assert sorted(outcome.value for outcome in outcomes) == ["added", "added", "known", "over-quota"]


async def test_a_write_that_fails_is_rolled_back_whole_and_costs_its_neighbours_nothing(tmp_path: Path) -> None:
    def poison(index: SqliteIndex, connection: sqlite3.Connection) -> None:
        connection.execute("REPLACE INTO records VALUES ('t', x'00', x'00')")
        index.put([delegation(1)], NOW, Quota())
        raise ZeroDivisionError

    async with SqliteStore.open(tmp_path) as store:

        async def put_poison() -> None:
            with pytest.raises(ZeroDivisionError):
                await store._writer.write(poison)

        async with Gate(store) as gate, anyio.create_task_group() as tasks:
            tasks.start_soon(partial(store.put_objects, [delegation(2)], now=NOW))
            tasks.start_soon(put_poison)
            tasks.start_soon(partial(store.put_objects, [delegation(3)], now=NOW))
            await anyio.wait_all_tasks_blocked()
            gate.open()
        assert await store.list_records("t") == []
        assert await store.scope_ids("catalog", now=NOW) == sorted([delegation(2).id, delegation(3).id])
        assert (await store.scope_summary("catalog", now=NOW)).count == 2


async def test_the_event_loop_runs_on_while_a_large_batch_is_written(tmp_path: Path) -> None:
    """A task ticks many times between the start and the end of one put; it would tick once if the put blocked."""
    objects = [cancellation(number) for number in range(5000)]
    ticks = 0
    async with SqliteStore.open(tmp_path) as store, anyio.create_task_group() as tasks:

        async def tick() -> None:
            nonlocal ticks
            while True:
                ticks += 1
                await anyio.sleep(0.001)

        tasks.start_soon(tick)
        await store.put_objects(objects, now=NOW)
        tasks.cancel_scope.cancel()
    assert ticks > 5


async def test_reading_and_blob_files_go_on_while_the_writer_is_busy(tmp_path: Path) -> None:
    large = bytes(1_000_000)
    async with SqliteStore.open(tmp_path) as store:
        await store.put_objects([delegation(1)], now=NOW)
        async with Gate(store):
            assert await store.get_object(delegation(1).id) == delegation(1)
            assert await store.get_blob(await store.put_blob(large)) == large


async def test_a_reader_never_sees_part_of_a_batch(tmp_path: Path) -> None:
    """Each batch brings ten objects, so every summary in between counts full tens."""
    counts = set[int]()
    async with SqliteStore.open(tmp_path) as store, anyio.create_task_group() as tasks:

        async def watch() -> None:
            while True:
                summary = await store.scope_summary("catalog", now=NOW)
                counts.add(summary.count)
                assert len(await store.scope_ids("catalog", now=NOW)) >= summary.count

        tasks.start_soon(watch)
        for start in range(0, 500, 10):
            await store.put_objects([delegation(number) for number in range(start, start + 10)], now=NOW)
        tasks.cancel_scope.cancel()
    assert len(counts) > 2
    assert all(count % 10 == 0 for count in counts)


async def test_writes_that_wait_are_bounded(tmp_path: Path) -> None:
    async with SqliteStore.open(tmp_path) as store:
        async with Gate(store) as gate, anyio.create_task_group() as tasks:
            for number in range(MAX_WAITING_WRITES + 50):
                tasks.start_soon(store.put_record, "t", str(number).encode(), b"")
            await anyio.wait_all_tasks_blocked()
            assert len(store._writer._waiting) == MAX_WAITING_WRITES - 1  # the gate has one of the places
            gate.open()
        assert len(await store.list_records("t")) == MAX_WAITING_WRITES + 50


async def test_a_put_that_is_cancelled_while_it_waits_does_not_happen(tmp_path: Path) -> None:
    async with SqliteStore.open(tmp_path) as store:
        async with Gate(store) as gate:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(store.put_record, "t", b"k", b"v")
                await anyio.wait_all_tasks_blocked()
                tasks.cancel_scope.cancel()
            gate.open()
        await store.put_record("t", b"next", b"v")
        assert await store.list_records("t") == [(b"next", b"v")]


async def test_closing_finishes_the_writes_that_wait(tmp_path: Path) -> None:
    async with anyio.create_task_group() as tasks, SqliteStore.open(tmp_path) as store:
        for number in range(20):
            tasks.start_soon(store.put_record, "t", str(number).encode(), b"")
        await anyio.wait_all_tasks_blocked()
    async with SqliteStore.open(tmp_path) as store:
        assert len(await store.list_records("t")) == 20


async def test_a_store_that_is_cancelled_closes_in_order(tmp_path: Path) -> None:
    with anyio.CancelScope() as scope:
        async with SqliteStore.open(tmp_path) as store:
            await store.put_record("t", b"k", b"v")
            scope.cancel()
            await anyio.sleep_forever()
    assert scope.cancelled_caught
    assert not (tmp_path / "index.sqlite-wal").exists()  # SQLite removes it when the last connection is closed
    async with SqliteStore.open(tmp_path) as store:
        assert await store.get_record("t", b"k") == b"v"


async def test_errors_leave_the_context_as_themselves(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError):
        async with SqliteStore.open(tmp_path):
            raise ZeroDivisionError


async def test_a_closed_store_says_so(tmp_path: Path) -> None:
    async with SqliteStore.open(tmp_path) as store:
        pass
    for call in (
        partial(store.put_objects, [delegation()], now=NOW),
        partial(store.get_object, delegation().id),
        partial(store.put_blob, b"small"),
        partial(store.put_blob, bytes(1_000_000)),
        partial(store.get_blob, content_id(b"small")),
    ):
        with pytest.raises(LocalError) as caught:
            await call()
        assert caught.value.code == "store-failed"
        assert "closed" in caught.value.cause


def test_a_store_works_on_asyncio_too(tmp_path: Path) -> None:
    """Nodes run on Trio; applications that embed a store directly may not."""

    async def use() -> None:
        async with SqliteStore.open(tmp_path) as store:
            async with anyio.create_task_group() as tasks:
                for number in range(50):
                    tasks.start_soon(partial(store.put_objects, [delegation(number)], now=NOW))
            assert (await store.statistics()).objects == 50

    anyio.run(use, backend="asyncio")
