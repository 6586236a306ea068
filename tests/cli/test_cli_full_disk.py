"""A full disk: one line, nothing lost, and everything goes on once there is room.

Two kinds. A limit on the size of files (`RLIMIT_FSIZE`), which anybody may set on a process of theirs, makes writes
fail in the middle; a small file system of its own is really full, but only root can make one.
"""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from commands import bnw, refused, refused_by_node

from bnw.cli.node_process import NodeProcess
from bnw.node.home import Home
from bnw.node.opening import initialise_home
from bnw.wire.errors import LocalError

MIB = 2**20


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "large"
    path.write_bytes(os.urandom(2 * MIB))
    return path


def test_a_blob_for_which_there_is_no_room_is_refused_and_the_node_goes_on(home: Path, file: Path) -> None:
    if not hasattr(resource, "prlimit"):
        pytest.skip("this system cannot limit the files of another process")
    with NodeProcess.started(Home(home)) as node:
        client = node.client()
        kept = client.post_bytes("/v1/blobs", b"kept" * 50_000)["id"]
        _, most = resource.prlimit(node.process.pid, resource.RLIMIT_FSIZE)
        resource.prlimit(node.process.pid, resource.RLIMIT_FSIZE, (MIB, most))
        error = refused("blob", "add", file, home=home, status=1, code="disk-full", place=home / "store")
        assert "free some space" in error["cure"]
        assert client.get_bytes(f"/v1/blobs/{kept}") == b"kept" * 50_000
        bnw("publish", "still/works", "/dev/null", home=home).succeeded()
        resource.prlimit(node.process.pid, resource.RLIMIT_FSIZE, (most, most))
        id = bnw("blob", "add", file, "--json", home=home).succeeded().document["blobs"][0]["id"]
        assert client.get_bytes(f"/v1/blobs/{id}") == file.read_bytes()
        parts = [path for path in (home / "store").rglob("*") if "part" in path.name or "tmp" in path.name]
        assert [path for path in parts if path.is_file()] == []


def test_a_database_that_cannot_grow_refuses_and_loses_nothing(home: Path) -> None:
    if not hasattr(resource, "prlimit"):
        pytest.skip("this system cannot limit the files of another process")
    with NodeProcess.started(Home(home)) as node:
        client = node.client()
        names = {client.post_bytes("/v1/catalog", b"x", name=f"kept-{number}")["name"] for number in range(5)}
        _, most = resource.prlimit(node.process.pid, resource.RLIMIT_FSIZE)
        resource.prlimit(node.process.pid, resource.RLIMIT_FSIZE, (16 * 1024, most))
        refused("publish", "no/room", "/dev/null", home=home, status=1, code="disk-full", place="index.sqlite")
        assert {entry["name"] for entry in client.get("/v1/catalog")["capabilities"]} == names
        resource.prlimit(node.process.pid, resource.RLIMIT_FSIZE, (most, most))
        bnw("publish", "room/again", "/dev/null", home=home).succeeded()
    with NodeProcess.started(Home(home)) as node:
        found = {entry["name"] for entry in node.client().get("/v1/catalog")["capabilities"]}
        assert found == names | {"room/again"}


def test_an_output_file_for_which_there_is_no_room_is_named_and_not_left_in_parts(
    home: Path, tmp_path: Path, file: Path
) -> None:
    with NodeProcess.started(Home(home)) as node:
        id = node.client().post_bytes("/v1/blobs", file.read_bytes())["id"]
        out = tmp_path / "out"
        out.mkdir()
        before = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (MIB, before[1]))
        try:
            arguments = ("blob", "get", id, "--output", out / "blob")
            error = refused(*arguments, home=home, status=2, code="write-failed", place=out / "blob")
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)
        assert "room" in error["cure"]
        assert list(out.iterdir()) == []


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 1 MiB."""
    if os.getuid() != 0 or shutil.which("mount") is None:
        pytest.skip("only root can make a file system; the tests above need none")
    path = tmp_path / "disk"
    path.mkdir()
    made = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", path], capture_output=True, check=False)
    if made.returncode != 0:
        pytest.skip(f"no file system can be made here: {made.stderr.decode().strip()}")
    try:
        yield path
    finally:
        subprocess.run(["umount", "--lazy", path], check=True)


def fill(disk: Path) -> Path:
    path = disk / "filler"
    with path.open("wb", buffering=0) as file, suppress(OSError):
        while True:
            file.write(bytes(4096))
    return path


@pytest.mark.parametrize("pages", [0, 1], ids=["full", "room for one file"])
def test_a_home_cannot_be_made_on_a_full_disk_and_is_made_once_there_is_room(small_disk: Path, pages: int) -> None:
    filler = fill(small_disk)
    os.truncate(filler, filler.stat().st_size - pages * resource.getpagesize())
    home = small_disk / "home"
    error = refused("init", home=home, status=1, code="write-failed", place=home)
    assert "free space" in error["cure"]
    assert not home.exists() or list(home.iterdir()) == []
    filler.unlink()
    bnw("init", home=home).succeeded()


def test_a_node_neither_starts_nor_spoils_anything_on_a_full_disk(small_disk: Path, file: Path) -> None:
    home = small_disk / "home"
    initialise_home(Home(home))
    with NodeProcess.started(Home(home)) as node:
        kept = node.client().post_bytes("/v1/blobs", b"kept")["id"]
        error = refused("blob", "add", file, home=home, status=1, code="disk-full", place=home / "store")
        assert "free some space" in error["cure"]
        assert node.client().get_bytes(f"/v1/blobs/{kept}") == b"kept"
    (home / "lock").unlink()
    filler = fill(small_disk)
    refused_by_node("run", home=home, status=1, code="disk-full", place=home / "store")
    filler.unlink()
    with NodeProcess.started(Home(home)) as node:
        assert node.client().get_bytes(f"/v1/blobs/{kept}") == b"kept"


def test_a_running_node_survives_a_disk_that_fills_up(small_disk: Path) -> None:
    home = small_disk / "home"
    initialise_home(Home(home))
    with NodeProcess.started(Home(home)) as node:
        name = node.client().post_bytes("/v1/catalog", b"x", name="kept")["name"]
        filler = fill(small_disk)
        names = {name}
        with pytest.raises(LocalError) as caught:
            # The log may have room left for a while.
            for number in range(1000):
                names.add(node.client().post_bytes("/v1/catalog", b"x", name=f"more-{number}")["name"])
        assert caught.value.code == "disk-full"
        refused("publish", "no/room", "/dev/null", home=home, status=1, code="disk-full", place=home / "store")
        assert {entry["name"] for entry in node.client().get("/v1/catalog")["capabilities"]} == names
        filler.unlink()
        bnw("publish", "room/again", "/dev/null", home=home).succeeded()
