"""A command that finds no node runs one for itself, and what it said has reached the peers when it ends."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from commands import BNW, bnw, refused, variables
from small_network import Network

from bnw.cli.node_process import NodeProcess
from bnw.node.configuration import Configuration
from bnw.node.home import Home
from bnw.node.opening import initialise_home

NOBODY = "/ip4/127.0.0.1/tcp/1/p2p/12D3KooWHAEBbhBpJb3krotjGLAwyKoudBP8XnJekUCVss1LvEUP"


@pytest.fixture
def joined(tmp_path: Path, network: Network) -> Path:
    """A home without a node, whose one configured peer is the carrier."""
    path = tmp_path / "home"
    initialise_home(Home(path), configuration=Configuration(peers=tuple(network.carrier.ready["addresses"])))
    return path


def names_at(node: NodeProcess) -> set[str]:
    return {entry["name"] for entry in node.client().get("/v1/catalog")["capabilities"]}


def test_what_is_published_or_withdrawn_has_reached_the_peer_when_the_command_ends(
    network: Network, joined: Path
) -> None:
    ended = bnw("publish", "said/quickly", "/dev/null", home=joined).succeeded()
    assert "said/quickly" in names_at(network.carrier)
    assert ended.err.splitlines() == [
        "no node runs on this home; starting one for this command",
        "connecting to 1 peer",
        "asking 1 peer for news",
        "telling 1 peer",
    ]
    assert bnw("withdraw", "said/quickly", "--json", home=joined).succeeded().err == ""
    assert "said/quickly" not in names_at(network.carrier)


def test_such_a_node_hears_from_its_peers_before_it_answers(joined: Path) -> None:
    template = bnw("catalog-inspect", "finance/lookup", "--template", home=joined).succeeded()
    assert sorted(template.document) == ["month", "symbol"]
    # And it is gone with its command.
    refused("status", home=joined, status=3, code="no-node", place=joined / "api.sock", says="there is no socket")


def test_such_a_node_can_call(joined: Path) -> None:
    assert bnw("invoke", "echo", "--data", "hello", home=joined).succeeded().out == "hello"


def test_a_peer_that_is_away_does_not_keep_a_command_from_its_work(tmp_path: Path) -> None:
    initialise_home(Home(tmp_path), configuration=Configuration(peers=(NOBODY,)))
    ended = bnw("publish", "lonely", "/dev/null", home=tmp_path).succeeded()
    assert ended.out.startswith("published lonely\n")
    assert "connecting to 1 peer" in ended.err
    assert f"cannot connect to {NOBODY}" in ended.err
    assert "telling" not in ended.err


def test_a_command_uses_a_node_that_is_only_starting(home: Path) -> None:
    """`bnw run & bnw catalog` is what a script does."""
    node = subprocess.Popen([*BNW, "run"], env=variables(home), stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        lock = home / "lock"
        while not lock.exists() or not lock.read_bytes():
            assert node.poll() is None
        assert bnw("catalog", home=home).succeeded().out == "the catalog is empty\n"
    finally:
        node.terminate()
        node.communicate(timeout=30)


def test_an_error_of_such_a_node_is_the_commands_own(home: Path) -> None:
    (home / "config.toml").write_text("nonsense")
    ended = bnw("catalog", home=home)
    assert (ended.status, len(ended.complaints)) == (2, 1)
    assert str(home / "config.toml") in ended.complaints[0]
