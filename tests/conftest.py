"""Fixtures shared by all tests: asynchronous tests run on Trio, which is what a node runs on."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, settings

# How fast examples are made and run depends on what else the machine does, which is no property of the code.
settings.register_profile("bnw", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("bnw")


@pytest.fixture
def anyio_backend() -> str:
    return "trio"
