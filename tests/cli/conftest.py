"""A home, and a small network of nodes in processes of their own that all tests share."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import psutil
import pytest
from small_network import Network, provide_programs

from bnw.cli.node_process import NodeProcess
from bnw.node.configuration import Configuration
from bnw.node.home import Home
from bnw.node.opening import initialise_home


@pytest.fixture(scope="package", autouse=True)
def nothing_is_left_running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    yield
    root = tmp_path_factory.getbasetemp()
    commands = [str(process.info["cmdline"]) for process in psutil.process_iter(["cmdline"])]
    # The folder tests/api has a node of its own that lives as long as the whole run.
    assert [line for line in commands if str(root) in line and str(root / "api") not in line] == []


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home with keys, and no node running on it."""
    path = tmp_path / "home"
    initialise_home(Home(path))
    return path


@pytest.fixture(scope="package")
def network(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Network]:
    root = tmp_path_factory.mktemp("network")
    with ExitStack() as stack:
        nodes: list[NodeProcess] = []
        for role in ("carrier", "provider", "requester"):
            known = tuple(nodes[0].ready["addresses"]) if nodes else ()
            initialise_home(Home(root / role), configuration=Configuration(peers=known))
            nodes.append(stack.enter_context(NodeProcess.started(Home(root / role))))
        yield Network(nodes[0], nodes[1], nodes[2], provide_programs(nodes[1]))
