"""The commands that people use on a testnet that is up: real nodes throughout."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.testnet.terminal import processes_in, testnet

COUNT = 4


@pytest.fixture(scope="module")
def net() -> Iterator[Path]:
    """A ring of four nodes that each test leaves as it found it."""
    parent = Path(tempfile.mkdtemp(prefix="bnw-"))
    directory = parent / "net"
    try:
        ended = testnet(directory, "up", "--nodes", str(COUNT), "--topology", "ring")
        assert ended.status == 0, ended.err
        assert f"{COUNT} of {COUNT} nodes run, topology ring" in ended.out.decode()
        assert "starting 4 nodes" in ended.err
        yield directory
        # One that is held must be ended all the same.
        processes_in(directory)[0].suspend()
        ended = testnet(directory, "down", "--json")
        assert (ended.status, ended.json["nodes"]) == (0, COUNT)
        assert not directory.exists()
        assert processes_in(parent) == []
    finally:
        for process in processes_in(parent):
            process.kill()
        shutil.rmtree(parent)


def nodes(net: Path) -> dict[str, Any]:
    ended = testnet(net, "status", "--json")
    assert ended.status == 0
    return {node["name"]: node for node in ended.json["nodes"]}


def wait_for_peers(net: Path, count: int) -> None:
    for _ in range(50):
        if all(node["peers"] == count for node in nodes(net).values() if node["state"] == "running"):
            return
    raise AssertionError(nodes(net))


def test_each_node_is_a_process_of_its_own_on_loopback_that_outlived_up(net: Path) -> None:
    found = nodes(net)
    assert list(found) == [f"node-{number}" for number in range(COUNT)]
    assert all(node["state"] == "running" for node in found.values())
    assert {node["process"] for node in found.values()} == {process.pid for process in processes_in(net)}
    assert all(node["address"].startswith("/ip4/127.0.0.1/tcp/") for node in found.values())
    assert len({node["address"] for node in found.values()}) == COUNT
    assert len({node["identity"] for node in found.values()}) == COUNT


def test_the_topology_is_what_was_asked_for(net: Path) -> None:
    wait_for_peers(net, 2)
    assert nodes(net)["node-0"]["neighbours"] == ["node-1", "node-3"]


def test_exec_runs_any_command_and_ends_as_it_does(net: Path, tmp_path: Path) -> None:
    (tmp_path / "note.txt").write_text("hello")
    ended = testnet(net, "exec", "node-0", "--", "publish", "words/note", "note.txt", "--json", cwd=tmp_path)
    assert ended.status == 0, ended.err
    published = ended.json["manifest_id"]
    seen = testnet(net, "exec", "1", "--json", "--", "catalog-inspect", published)
    assert seen.json["name"] == "words/note", "node-1 has heard of it from its neighbour, or waits until it has"
    ended = testnet(net, "exec", "node-0", "--", "withdraw", "no/such")
    assert ended.status == 1
    assert "no/such" in ended.complaint


def test_a_killed_node_comes_back_with_its_home_and_its_neighbours(net: Path) -> None:
    before = nodes(net)["node-1"]
    process = psutil.Process(before["process"])
    assert testnet(net, "kill", "node-1", "--json").json == {"node": "node-1", "state": "killed"}
    assert not process.is_running() or process.status() == psutil.STATUS_ZOMBIE
    killed = nodes(net)["node-1"]
    assert (killed["state"], killed["process"], killed["address"]) == ("killed", None, None)
    ended = testnet(net, "kill", "1")
    assert (ended.status, ended.complaint) == (
        3,
        "bnw: node-1: this node does not run (`bnw testnet start node-1` starts it)",
    )
    started = testnet(net, "start", "node-1")
    assert started.status == 0, started.err
    back = nodes(net)["node-1"]
    assert back["identity"] == before["identity"]
    assert back["process"] != before["process"]
    wait_for_peers(net, 2)


def test_a_stopped_node_is_not_taken_for_a_crashed_one_and_starts_when_it_can(net: Path) -> None:
    assert testnet(net, "stop", "3").status == 0
    assert nodes(net)["node-3"]["state"] == "stopped"
    assert "stopped" in testnet(net, "status").out.decode()
    configuration = net / "node-3" / "config.toml"
    right = configuration.read_text()
    configuration.write_text('netwrok = "main"\n')
    ended = testnet(net, "start", "3")
    assert ended.status == 1
    assert "node-3: " in ended.complaint
    assert "unknown setting 'netwrok'" in ended.complaint
    assert len(processes_in(net)) == COUNT - 1
    configuration.write_text(right)
    assert testnet(net, "start", "3", "--json").json["state"] == "running"
    again = testnet(net, "start", "3")
    assert (again.status, again.complaint) == (1, "bnw: node-3: this node runs already")


def test_a_node_that_ended_by_itself_is_told_apart(net: Path) -> None:
    psutil.Process(nodes(net)["node-2"]["process"]).kill()
    for _ in range(50):
        if nodes(net)["node-2"]["state"] != "running":
            break
    assert nodes(net)["node-2"]["state"] == "ended by itself"
    assert testnet(net, "start", "2").status == 0


def test_a_held_node_does_not_hold_up_the_others(net: Path) -> None:
    process = psutil.Process(nodes(net)["node-0"]["process"])
    process.suspend()
    try:
        assert nodes(net)["node-0"]["state"] == "paused"
        assert nodes(net)["node-1"]["peers"] is not None
    finally:
        process.resume()


def test_a_second_testnet_in_the_same_place_is_refused(net: Path) -> None:
    ended = testnet(net, "up", "--nodes", "2")
    assert ended.status == 1
    assert "a testnet of 4 nodes is here already" in ended.complaint
    assert len(processes_in(net)) == COUNT


@pytest.mark.parametrize("words", [["kill"], ["stop"], ["start"], ["exec", "--", "status"]])
def test_an_unknown_node_is_said_with_those_that_there_are(net: Path, words: list[str]) -> None:
    ended = testnet(net, words[0], "node-9", *words[1:])
    assert ended.status == 2
    assert "node-9: this testnet has no such node (it has node-0 to node-3" in ended.complaint
