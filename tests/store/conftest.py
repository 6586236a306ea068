"""Every test that asks for `store` runs against both implementations."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from store_objects import OpenStore

from bnw.store.interface import Quota, Store
from bnw.store.memory import MemoryStore
from bnw.store.sqlite import SqliteStore


@pytest.fixture(params=["memory", "sqlite"])
def open_store(request: pytest.FixtureRequest, tmp_path: Path) -> OpenStore:
    """Opens a new, empty store with the given quota."""

    @asynccontextmanager
    async def open_one(quota: Quota | None = None) -> AsyncIterator[Store]:
        if request.param == "memory":
            yield MemoryStore(quota)
        else:
            async with SqliteStore.open(tmp_path / "store", quota) as store:
                yield store

    return open_one


@pytest.fixture
async def store(open_store: OpenStore) -> AsyncIterator[Store]:
    async with open_store() as store:
        yield store
