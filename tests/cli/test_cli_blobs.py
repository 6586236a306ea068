"""`bnw blob list|why|gc|pin|unpin`: what is here, for what, and what goes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from commands import bnw, refused

from bnw.cli.node_process import NodeProcess
from bnw.node.configuration import Configuration
from bnw.node.home import Home
from bnw.node.opening import initialise_home


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NodeProcess]:
    home = Home(tmp_path_factory.mktemp("blobs") / "home")
    initialise_home(home, configuration=Configuration(network="blobs"))
    with NodeProcess.started(home) as running:
        yield running


def test_a_blob_that_was_added_says_why_it_is_kept_and_until_when(node: NodeProcess, tmp_path: Path) -> None:
    home = node.home.path
    (tmp_path / "file").write_bytes(b"some bytes")
    [added] = bnw("blob", "add", tmp_path / "file", "--json", home=home).succeeded().document["blobs"]
    id = added["id"]
    assert "added by hand" in bnw("blob", "why", id, home=home).succeeded().out
    [listed] = bnw("blob", "list", "--json", home=home).succeeded().document["blobs"]
    assert (listed["id"], listed["size"], len(listed["reasons"])) == (id, 10, 1)
    assert "removed 0 blobs" in bnw("blob", "gc", home=home).succeeded().out
    bnw("blob", "unpin", id, home=home).succeeded()
    assert "nothing needs it" in bnw("blob", "why", id, home=home).succeeded().out
    collected = bnw("blob", "gc", "--json", home=home).succeeded().document
    assert (collected["removed"], collected["waiting"], collected["waiting_bytes"]) == (0, 1, 10)
    bnw("blob", "pin", id, home=home).succeeded()
    assert bnw("blob", "gc", "--dry-run", "--json", home=home).succeeded().document["waiting"] == 0


def test_a_blob_that_is_not_here_is_said_to_be_missing(node: NodeProcess) -> None:
    home, elsewhere = node.home.path, "ab" * 32
    assert "it is not here" in bnw("blob", "why", elsewhere, home=home).succeeded().out
    refused("blob", "pin", elsewhere, home=home, status=1, code="blob-missing", place=elsewhere)
