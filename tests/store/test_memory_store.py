"""What the simulator relies on in a store in memory."""

from __future__ import annotations

import threading
import tracemalloc

import pytest
from store_objects import NOW, delegation

from bnw.store.interface import Quota
from bnw.store.memory import MemoryStore
from bnw.wire.limits import KIB

pytestmark = pytest.mark.anyio


def test_an_empty_store_takes_less_than_100_kib() -> None:
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        stores = [MemoryStore() for _ in range(100)]
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert (after - before) / len(stores) < 100 * KIB


def test_calls_never_suspend_and_start_no_threads() -> None:
    threads = threading.active_count()
    store = MemoryStore(Quota())
    for call in (
        store.put_objects([delegation()], now=NOW),
        store.put_blob(b"x"),
        store.scope_summary("catalog", now=NOW),
    ):
        with pytest.raises(StopIteration):
            call.send(None)
    assert threading.active_count() == threads
