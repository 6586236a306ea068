"""A testnet's directory for each test, and the certainty that nothing of it is left after the test."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.testnet.terminal import processes_in, testnet


@pytest.fixture
def directory() -> Iterator[Path]:
    """A place for a testnet; nothing is there yet. Its path is short, so that sockets lie in the homes."""
    parent = Path(tempfile.mkdtemp(prefix="bnw-"))
    yield parent / "net"
    if (parent / "net").exists():
        testnet(parent / "net", "down")
    left = processes_in(parent)
    for process in left:
        process.kill()
    shutil.rmtree(parent)
    assert not left
