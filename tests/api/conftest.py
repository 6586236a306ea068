"""A node in a process of its own, whose API all tests of this folder speak to."""

from __future__ import annotations

from collections.abc import Iterator

import psutil
import pytest
from raw_http import Raw

from bnw.cli.node_process import NodeProcess
from bnw.node.home import Home
from bnw.node.opening import initialise_home


@pytest.fixture(scope="package", autouse=True)
def nothing_is_left_running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    yield
    # Other folders may have nodes of their own that live as long as the whole run.
    root = str(tmp_path_factory.getbasetemp() / "api")
    assert [found for found in psutil.process_iter(["cmdline"]) if root in str(found.info["cmdline"])] == []


@pytest.fixture(scope="package")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NodeProcess]:
    home = Home(tmp_path_factory.mktemp("api") / "home")
    initialise_home(home)
    with NodeProcess.started(home) as running:
        yield running
        assert running.process.poll() is None, "no test may end the node"


@pytest.fixture
def raw(node: NodeProcess) -> Raw:
    return Raw(node.home.socket)
