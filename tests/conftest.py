"""Fixtures shared by all tests: asynchronous tests run on Trio, which is what a node runs on."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

# How fast examples are made and run depends on what else the machine does, which is no property of the code.
settings.register_profile("bnw", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("bnw")


@pytest.fixture
def anyio_backend() -> str:
    return "trio"


@pytest.fixture(autouse=True)
def logging_stays_enabled() -> Iterator[None]:
    """A test that turns logging off for good takes from others what they look for in it."""
    yield
    assert logging.root.manager.disable == logging.NOTSET
