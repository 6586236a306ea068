"""Fixtures for the tests of synchronisation. Time is virtual, except where a test module says otherwise."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from js_peer import Unavailable, install
from trio.testing import MockClock


@pytest.fixture
def anyio_backend() -> tuple[str, dict[str, Any]]:
    return "trio", {"clock": MockClock(autojump_threshold=0)}


@pytest.fixture(scope="session")
def js_negentropy(request: pytest.FixtureRequest) -> Path:
    """Where the independent implementation is installed; skips, with the reason, where it cannot be."""
    assert request.config.cache is not None
    try:
        return install(request.config.cache.mkdir("js"))
    except Unavailable as error:
        pytest.skip(f"no independent implementation of Negentropy: {error}")
