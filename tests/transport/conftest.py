"""The `world` fixture: a test that takes it runs over the memory network and over libp2p."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from worlds import World, open_world


@pytest.fixture(params=["memory", "p2p"])
async def world(request: pytest.FixtureRequest) -> AsyncIterator[World]:
    async with open_world(request.param) as opened:
        yield opened
