"""However a testnet is ended, by whom and when, no process and no file of it is left, and no stranger is harmed."""

from __future__ import annotations

import signal
import subprocess
from pathlib import Path

import psutil
import pytest

from bnw.cli.testnet.net import Net
from bnw.cli.testnet.processes import Mark, mark_of, pause
from bnw.cli.testnet.starting import Starting
from bnw.cli.testnet.state import RUNNING, STATE_FILE, UP, NetDirectory, NetState, NodeState
from bnw.node.opening import initialise_home
from bnw.wire.errors import LocalError
from tests.cli.terminal import environment
from tests.testnet.terminal import command, processes_in, testnet


def starting(directory: Path, nodes_running: int) -> subprocess.Popen[bytes]:
    """An `up` of three nodes that has got so far that so many nodes answer and the next are on their way."""
    process = subprocess.Popen(
        command("up", "--nodes", "3"), stderr=subprocess.PIPE, env=environment(BNW_TESTNET=str(directory))
    )
    while process.poll() is None:
        state = NetDirectory(directory).load()
        if state is not None:
            nodes = state.nodes.values()
            if sum(bool(node.address) for node in nodes) >= nodes_running and any(
                node.process is not None and not node.address for node in nodes
            ):
                return process
        pause()
    raise AssertionError(process.communicate()[1])


@pytest.mark.parametrize(("number", "nodes_running"), [(signal.SIGINT, 0), (signal.SIGTERM, 1), (signal.SIGHUP, 0)])
def test_an_interrupted_up_takes_everything_with_it(
    directory: Path, number: signal.Signals, nodes_running: int
) -> None:
    up = starting(directory, nodes_running)
    up.send_signal(number)
    _, said = up.communicate(timeout=20)
    assert up.returncode == (130 if number == signal.SIGINT else 128 + number)
    assert b"Traceback" not in said
    assert processes_in(directory) == []
    assert not directory.exists()


def test_a_second_up_removes_what_a_killed_one_left(directory: Path) -> None:
    up = starting(directory, 1)
    up.kill()
    up.communicate()
    left = processes_in(directory)
    assert left
    assert "(starting)" in testnet(directory, "status").out.decode()
    again = testnet(directory, "up", "--nodes", "1", "--json")
    assert again.status == 0, again.err
    _, alive = psutil.wait_procs(left, timeout=0)
    assert [process for process in alive if process.status() != psutil.STATUS_ZOMBIE] == []
    assert len(processes_in(directory)) == 1
    assert sorted(path.name for path in directory.iterdir()) == ["node-0", STATE_FILE]


def test_nobody_elses_process_is_touched_when_it_has_the_id_of_a_node(directory: Path) -> None:
    place = NetDirectory(directory)
    stranger = subprocess.Popen(["sleep", "100"])
    try:
        # As if the system had given the id of a node to somebody else: that id, and the moment when the node started.
        node = NodeState("node-0", [], RUNNING, Mark(stranger.pid, "an earlier boot/1"))
        with place.locked(create=True):
            place.save(NetState("ring", UP, {"node-0": node}))
        value = testnet(directory, "status", "--json").json
        assert value["nodes"][0]["state"] == "ended by itself"
        assert testnet(directory, "kill", "0").status == 3
        assert testnet(directory, "down").status == 0
        assert not directory.exists()
        assert stranger.poll() is None
        assert mark_of(stranger.pid) is not None
    finally:
        stranger.kill()
        stranger.wait()


def test_a_starter_that_dies_before_it_has_noted_the_process_leaves_none(directory: Path) -> None:
    place = NetDirectory(directory)
    initialise_home(place.home("node-0"))
    seen: list[int] = []

    def die(mark: object) -> None:
        seen.extend(process.pid for process in processes_in(directory))
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Starting(place, "node-0", [], die, looks=100)
    assert len(seen) == 1, "the shell was there, waiting for its word"
    psutil.wait_procs([psutil.Process(id) for id in seen if psutil.pid_exists(id)], timeout=5)
    assert processes_in(directory) == []


def test_a_start_that_comes_too_late_starts_nothing(directory: Path) -> None:
    with Net.new(NetDirectory(directory), "ring", {"node-0": []}) as net:
        home = directory / "node-0"
        net.remove(gently=False)
        home.mkdir()
        with pytest.raises(LocalError, match="this testnet is being removed"):
            net.start(["node-0"])
        assert processes_in(directory) == []
        net.directory.remove_home("node-0")
        net.directory.remove_itself()
    assert not directory.exists()
