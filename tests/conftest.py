"""Fixtures shared by all tests: asynchronous tests run on Trio, which is what a node runs on."""

from __future__ import annotations

import pytest


@pytest.fixture
def anyio_backend() -> str:
    return "trio"
