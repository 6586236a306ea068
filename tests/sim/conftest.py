"""Stories that several tests look at are told once."""

from __future__ import annotations

import pytest
from stories import MainJob, main_job


@pytest.fixture(scope="session")
def job() -> MainJob:
    return main_job(1)
