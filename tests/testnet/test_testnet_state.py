"""The directory of a testnet: one state file, one command at a time, and nobody else's files touched."""

from __future__ import annotations

from pathlib import Path

import pytest

from bnw.cli.testnet.processes import Mark
from bnw.cli.testnet.state import KILLED, RUNNING, STATE_FILE, UP, NetDirectory, NetState, NodeState
from bnw.wire.errors import ExitStatus, LocalError


@pytest.fixture
def place(tmp_path: Path) -> NetDirectory:
    return NetDirectory(tmp_path / "net")


def some_state() -> NetState:
    one = NodeState("node-0", ["node-1"], RUNNING, Mark(123, "boot/456"), "did:key:z", "/ip4/127.0.0.1/tcp/1")
    return NetState("ring", UP, {"node-0": one, "node-1": NodeState("node-1", ["node-0"])})


def test_what_is_saved_is_loaded(place: NetDirectory) -> None:
    with place.locked(create=True):
        place.save(some_state())
    assert place.load() == some_state()
    assert [path.name for path in place.path.iterdir()] == [STATE_FILE]
    assert place.file.stat().st_mode & 0o777 == 0o600


def test_no_state_is_no_testnet(place: NetDirectory) -> None:
    assert place.load() is None
    with pytest.raises(LocalError, match="no testnet is up") as caught, place.locked():
        pass
    assert (caught.value.code, caught.value.exit_status) == ("no-testnet", ExitStatus.UNREACHABLE)


@pytest.mark.parametrize(
    "damage",
    [
        b"",
        b"[]",
        b"{}",
        b'{"format": "bnw-testnet/9", "phase": "up", "topology": "ring", "nodes": []}',
        b'{"format": "bnw-testnet/1", "phase": "up", "topology": "ring", "nodes": [{"name": "x"}]}',
        b'{"format": "bnw-testnet/1", "phase": "up", "topology": "ring", "nodes": '
        b'[{"name": "../../home", "neighbours": [], "process": null}]}',
    ],
)
def test_an_unreadable_state_is_said_and_nothing_is_removed(place: NetDirectory, damage: bytes) -> None:
    place.path.mkdir()
    place.file.write_bytes(damage)
    place.file.chmod(0o600)
    with pytest.raises(LocalError, match="not readable") as caught:
        place.load()
    assert caught.value.code == "testnet-state"
    assert place.file.read_bytes() == damage


def test_only_one_command_is_at_work(place: NetDirectory) -> None:
    with place.locked(create=True):
        place.save(some_state())
        with pytest.raises(LocalError, match="another command is at work"), NetDirectory(place.path).locked():
            pass
    with place.locked():
        pass


def test_a_lock_is_on_the_directory_that_is_there_now(place: NetDirectory) -> None:
    with place.locked(create=True):
        place.path.rmdir()
        with place.locked(create=True):
            place.save(some_state())
    assert place.load() == some_state()


def test_a_directory_in_which_nothing_was_made_is_gone_again(place: NetDirectory) -> None:
    with place.locked(create=True):
        pass
    assert not place.path.exists()


def test_a_file_cannot_be_a_testnet(place: NetDirectory) -> None:
    place.path.write_text("mine")
    with pytest.raises(LocalError) as caught, place.locked(create=True):
        pass
    assert caught.value.code == "testnet-directory"
    assert place.path.read_text() == "mine"


def test_removing_takes_homes_and_sockets_and_leaves_what_is_the_users(tmp_path: Path) -> None:
    place = NetDirectory(tmp_path / ("deep" * 20) / "net")
    state = some_state()
    with place.locked(create=True):
        place.save(state)
        for name in state.nodes:
            home = place.home(name)
            home.create()
            (home.path / "file").write_text("x")
            home.socket.parent.mkdir(exist_ok=True)
            home.socket.write_text("in place of a socket")
        assert place.path not in home.socket.parents, "the path is too long for a socket in the home"
        (place.path / "notes").write_text("mine")
        place.remove(state)
        place.remove_itself()
    assert not home.socket.exists()
    assert [path.name for path in place.path.iterdir()] == ["notes"]


def test_left_over_is_what_was_broken_off_or_has_lost_all_its_nodes() -> None:
    state = some_state()
    assert state.is_left_over, "it should run, and process 123 did not start then"
    state.nodes["node-0"].wanted = KILLED
    assert not state.is_left_over, "nobody expects a node to run"
    state.phase = "starting"
    assert state.is_left_over
