"""Who may speak to a node: its owner, through a socket in a place of the owner's own."""

from __future__ import annotations

import os
import re
import socket
import stat
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from bnw.api.client import ApiClient
from bnw.api.socket_file import bind_socket, check_directory
from bnw.cli.node_process import NodeProcess
from bnw.node.home import MAX_SOCKET_PATH, Home
from bnw.node.opening import initialise_home
from bnw.wire.errors import LocalError


def test_only_the_owner_may_connect(node: NodeProcess) -> None:
    found = node.home.socket.stat()
    assert stat.S_ISSOCK(found.st_mode)
    assert stat.S_IMODE(found.st_mode) == 0o600
    assert found.st_uid == os.getuid()
    assert stat.S_IMODE(node.home.path.stat().st_mode) == 0o700


def test_another_user_is_refused_by_the_system(node: NodeProcess) -> None:
    if os.getuid() != 0:
        pytest.skip("only root can become another user to try")
    script = (
        "import os, socket, sys\n"
        "os.setgroups([]); os.setgid(65534); os.setuid(65534)\n"
        "socket.socket(socket.AF_UNIX).connect(sys.argv[1])\n"
    )
    tried = subprocess.run(
        [sys.executable, "-c", script, str(node.home.socket)], capture_output=True, text=True, check=False
    )
    assert "PermissionError" in tried.stderr


def test_a_node_listens_on_no_tcp_port_but_that_for_its_peers(node: NodeProcess) -> None:
    listening = {
        connection.laddr.port
        for connection in psutil.Process(node.process.pid).net_connections("tcp")
        if connection.status == psutil.CONN_LISTEN
    }
    ports = {int(re.search(r"/tcp/(\d+)", address)[1]) for address in node.ready["addresses"]}  # type: ignore[index]  # an address without a port is to fail here
    assert listening == ports


def test_the_socket_is_private_from_the_moment_it_exists(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also with a mask that would let everybody in."""
    seen: list[int] = []
    listen = socket.socket.listen

    def watch(self: socket.socket, *arguments: int) -> None:
        seen.append(stat.S_IMODE((tmp_path / "api.sock").stat().st_mode))
        listen(self, *arguments)

    monkeypatch.setattr(socket.socket, "listen", watch)
    before = os.umask(0)
    try:
        bind_socket(tmp_path / "api.sock").close()
    finally:
        os.umask(before)
    assert seen == [0o600]


@pytest.mark.parametrize("mode", [0o770, 0o707, 0o777, 0o1777], ids=oct)
def test_a_place_in_which_others_may_write_is_refused(tmp_path: Path, mode: int) -> None:
    place = tmp_path / "place"
    place.mkdir()
    place.chmod(mode)
    with pytest.raises(LocalError, match="only this user may write to"):
        check_directory(place)
    with pytest.raises(LocalError) as caught:
        bind_socket(place / "api.sock")
    assert (caught.value.code, caught.value.place) == ("api-socket", str(place))
    assert list(place.iterdir()) == []


def test_a_place_that_is_a_link_is_refused(tmp_path: Path) -> None:
    """Somebody else may have put it there and let it point to a place of theirs later."""
    (tmp_path / "mine").mkdir(mode=0o700)
    (tmp_path / "link").symlink_to("mine")
    with pytest.raises(LocalError, match="only this user may write to"):
        check_directory(tmp_path / "link")


def test_a_place_of_another_user_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(os, "getuid", lambda: 12345)
    with pytest.raises(LocalError, match="only this user may write to"):
        check_directory(tmp_path)


def deep(tmp_path: Path) -> Path:
    path = tmp_path / ("d" * 60) / ("e" * 60)
    assert len(os.fsencode(path)) > 107
    return path


def test_a_home_too_deep_for_a_socket_has_it_elsewhere_and_as_private(tmp_path: Path) -> None:
    home = Home(deep(tmp_path))
    initialise_home(home)
    assert len(os.fsencode(home.socket)) <= MAX_SOCKET_PATH
    with NodeProcess.started(home) as running:
        assert running.client().get("/v1/status")["peer"] == running.ready["peer"]
        assert stat.S_IMODE(home.socket.stat().st_mode) == 0o600
        place = home.socket.parent.stat()
        assert (stat.S_IMODE(place.st_mode), place.st_uid) == (0o700, os.getuid())
        # Whatever the path is called, it is the same home.
        (tmp_path / "link").symlink_to(home.path)
        assert ApiClient(Home(tmp_path / "link").socket).get("/v1/status")["peer"] == running.ready["peer"]
    assert not home.socket.exists()


def test_two_deep_homes_have_two_sockets(tmp_path: Path) -> None:
    assert Home(deep(tmp_path / "a")).socket != Home(deep(tmp_path / "b")).socket


def test_a_socket_that_a_killed_node_left_behind_is_replaced(tmp_path: Path) -> None:
    bind_socket(tmp_path / "api.sock").close()
    with bind_socket(tmp_path / "api.sock"), socket.socket(socket.AF_UNIX) as visitor:
        visitor.connect(str(tmp_path / "api.sock"))


def test_without_a_node_the_client_says_so_in_each_way_that_it_can_be_missing(tmp_path: Path) -> None:
    path = tmp_path / "api.sock"
    with pytest.raises(LocalError, match="there is no socket"):
        ApiClient(path)
    bind_socket(path).close()
    client = ApiClient(path)
    with pytest.raises(LocalError, match="Connection refused") as caught:
        client.get("/v1/status")
    assert (caught.value.code, caught.value.place, int(caught.value.exit_status)) == ("no-node", str(path), 3)
    path.unlink()
    with pytest.raises(LocalError, match="No such file"), client.lines("GET", "/v1/events"):
        pytest.fail("it answered")
