"""Every test that asks for `store` runs against both implementations."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from bnw.store.interface import Store
from bnw.store.memory import MemoryStore
from bnw.store.sqlite import SqliteStore


@pytest.fixture(params=["memory", "sqlite"])
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Store]:
    if request.param == "memory":
        yield MemoryStore()
    else:
        async with SqliteStore.open(tmp_path / "store") as opened:
            yield opened
