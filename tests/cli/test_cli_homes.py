"""A home that cannot be used is left as it is, and the command says why."""

from __future__ import annotations

import shutil
import signal
import sqlite3
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest
from commands import BNW, bnw, refused, refused_by_node, variables
from small_network import Network

from bnw.cli.node_process import NodeProcess
from bnw.node.configuration import Configuration
from bnw.node.home import Home
from bnw.node.opening import initialise_home
from bnw.wire.errors import LocalError


def contents(directory: Path) -> dict[str, bytes]:
    return {str(path.relative_to(directory)): path.read_bytes() for path in directory.rglob("*") if path.is_file()}


@pytest.mark.parametrize("mode", [0o640, 0o604], ids=oct)
def test_a_keystore_that_others_may_read_is_not_used(home: Path, mode: int) -> None:
    keystore = home / "keystore"
    keystore.chmod(mode)
    error = refused("id", home=home, status=1, code="not-private", place=keystore, says=f"{mode:04o}")
    assert f"chmod 600 {keystore}" in error["cure"]
    keystore.chmod(0o600)
    bnw("id", home=home).succeeded()


def test_neither_does_a_node_start_with_it(home: Path) -> None:
    (home / "keystore").chmod(0o644)
    refused_by_node("run", home=home, status=1, code="not-private", place=home / "keystore")


@pytest.mark.parametrize("damage", [b"", b"nonsense", b"\xa1"], ids=["empty", "text", "cut off"])
def test_a_damaged_keystore_is_named_and_left_alone(home: Path, damage: bytes) -> None:
    keystore = home / "keystore"
    keystore.write_bytes(damage)
    error = refused("id", home=home, status=2, code="keystore-damaged", place=keystore)
    assert "backup" in error["cure"]
    assert keystore.read_bytes() == damage


def test_a_second_node_on_the_same_home_names_the_first_and_leaves_it_alone(home: Path) -> None:
    with NodeProcess.started(Home(home)) as first:
        says = f"process {first.process.pid}"
        error = refused_by_node("run", home=home, status=1, code="home-in-use", place=home, says=says)
        assert "stop it first" in error["cure"]
        assert bnw("status", "--json", home=home).document["peer"] == first.ready["peer"]


def test_a_port_in_use_is_named(home: Path, tmp_path: Path) -> None:
    with NodeProcess.started(Home(home)) as first:
        address = first.ready["addresses"][0].partition("/p2p/")[0]
        initialise_home(Home(tmp_path / "other"), configuration=Configuration(listen=(address,)))
        error = refused_by_node("run", home=tmp_path / "other", status=1, code="port-in-use", place=address)
        assert "another port" in error["cure"]


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home whose store holds blobs and twenty capabilities."""
    path = tmp_path_factory.mktemp("filled") / "home"
    initialise_home(Home(path))
    with NodeProcess.started(Home(path)) as node:
        for size in (100, 100_000):
            node.client().post_bytes("/v1/blobs", b"x" * size)
        for number in range(20):
            node.client().post_bytes("/v1/catalog", bytes([number]) * 1000, name=f"capability-{number}")
    return path


@pytest.mark.parametrize("damage", ["overwritten", "cut off", "gone"])
def test_a_damaged_database_is_named_and_nothing_is_touched(filled: Path, tmp_path: Path, damage: str) -> None:
    home = tmp_path / "home"
    shutil.copytree(filled, home)
    database = home / "store" / "index.sqlite"
    size = database.stat().st_size
    if damage == "gone":
        database.unlink()
    else:
        with database.open("r+b") as file:
            if damage == "cut off":
                file.truncate(size // 2)
            else:
                file.seek(4096)
                file.write(b"damaged!" * ((size - 4096) // 8))
    before = contents(home)
    error = refused_by_node("run", home=home, status=1, code="store-damaged", place=database)
    assert "restore" in error["cure"]
    after = contents(home)
    # Every file is as it was. SQLite may leave an empty log, and the lock names the last node.
    assert {path: after[path] for path in before if path != "lock"} == {
        path: data for path, data in before.items() if path != "lock"
    }


def test_a_store_of_a_newer_version_is_not_touched(filled: Path, tmp_path: Path) -> None:
    home = tmp_path / "home"
    shutil.copytree(filled, home)
    database = home / "store" / "index.sqlite"
    with closing(sqlite3.connect(database)) as connection:
        connection.execute("PRAGMA user_version = 99")
    before = database.read_bytes()
    refused_by_node("run", home=home, status=1, code="store-version", place=database, says="version 99")
    assert database.read_bytes() == before


def test_a_home_in_which_others_may_write_gets_no_socket(home: Path) -> None:
    home.chmod(0o777)
    refused_by_node("run", home=home, status=1, code="api-socket", place=home, says="only this user may write to")


def test_a_command_does_not_speak_to_a_socket_that_others_may_replace(network: Network) -> None:
    home = network.carrier.home.path
    home.chmod(0o777)
    try:
        refused("status", home=home, status=1, code="api-socket", place=home)
    finally:
        home.chmod(0o700)


def test_the_socket_that_a_killed_node_leaves_behind_misleads_nobody(home: Path) -> None:
    with NodeProcess.started(Home(home)) as node:
        node.process.kill()
        node.process.wait()
        assert (home / "api.sock").exists()
        refused("status", home=home, status=3, code="no-node", place=home / "api.sock", says="Connection refused")
        bnw("catalog", home=home).succeeded()


def test_a_node_that_hangs_is_killed_after_its_time(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bnw.cli.node_process.STOPPING_TIME", 0.2)
    with NodeProcess.started(Home(home)) as node:
        node.process.send_signal(signal.SIGSTOP)
    assert node.process.returncode == -signal.SIGKILL


def test_a_node_that_ends_before_it_is_ready_is_reported(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    silent = shutil.which("true")
    assert silent is not None
    monkeypatch.setattr(sys, "executable", silent)
    with (
        pytest.raises(LocalError, match="the node ended before it was ready") as caught,
        NodeProcess.started(Home(home)),
    ):
        pytest.fail("it started")
    assert (caught.value.code, int(caught.value.exit_status)) == ("node-not-started", 3)


def test_a_node_that_is_stopped_ends_well_and_takes_its_socket_away(tmp_path: Path) -> None:
    def stop(number: signal.Signals) -> None:
        home = tmp_path / number.name
        initialise_home(Home(home))
        process = subprocess.Popen(
            [*BNW, "run", "--json"], env=variables(home), stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        try:
            assert process.stdout is not None
            while process.stdout.readline().strip() != b"}":
                assert process.poll() is None
            process.send_signal(number)
            out, err = process.communicate(timeout=30)
        finally:
            process.kill()
            process.wait()
        assert (process.returncode, out, err) == (0, b"", b""), number
        assert not (home / "api.sock").exists()

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(stop, [signal.SIGINT, signal.SIGTERM]))
