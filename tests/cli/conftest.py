"""Homes and nodes for the tests of the command line: real processes throughout."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from bnw.cli.node_process import NodeProcess
from bnw.node.configuration import Configuration
from bnw.node.home import Home
from bnw.node.opening import initialise_home


@pytest.fixture
def home(tmp_path: Path) -> Home:
    """A new home without a node."""
    home = Home(tmp_path / "home")
    initialise_home(home)
    return home


@pytest.fixture
def node(home: Home) -> Iterator[NodeProcess]:
    """A node that runs on `home`."""
    with NodeProcess.started(home) as process:
        yield process


@pytest.fixture
def second(tmp_path: Path, node: NodeProcess) -> Iterator[NodeProcess]:
    """Another node, which knows the first."""
    home = Home(tmp_path / "second")
    initialise_home(home, configuration=Configuration(peers=tuple(node.ready["addresses"])))
    with NodeProcess.started(home) as process:
        yield process
