"""Private files: for their owner alone, and replaced whole or not at all."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from bnw.identity.private_file import read_private_file, write_private_file
from bnw.wire.errors import ExitStatus, LocalError

OLD, NEW = b"old" * 1000, b"new" * 2000
LIMIT = 64 * 1024


def names_in(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir())


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "secrets"


def test_what_is_written_is_read_and_only_the_owner_has_access(path: Path) -> None:
    write_private_file(path, OLD)
    assert read_private_file(path, max_size=LIMIT) == OLD
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert names_in(path.parent) == ["secrets"]


def test_the_mode_does_not_depend_on_the_umask(path: Path) -> None:
    before = os.umask(0)
    try:
        write_private_file(path, OLD)
    finally:
        os.umask(before)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_file_that_was_open_to_others_is_closed_to_them_by_the_next_write(path: Path) -> None:
    write_private_file(path, OLD)
    path.chmod(0o644)
    write_private_file(path, NEW)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


@pytest.mark.parametrize("mode", [0o604, 0o602, 0o601, 0o640, 0o620, 0o610, 0o644, 0o666, 0o777])
def test_a_file_that_others_may_access_is_not_read(path: Path, mode: int) -> None:
    write_private_file(path, OLD)
    path.chmod(mode)
    with pytest.raises(LocalError, match=f"chmod 600 {path}") as caught:
        read_private_file(path, max_size=LIMIT)
    assert caught.value.code == "not-private"
    assert f"{mode:04o}" in str(caught.value)


@pytest.mark.parametrize("mode", [0o600, 0o400, 0o700])
def test_what_its_owner_may_do_with_it_is_the_owners_business(path: Path, mode: int) -> None:
    write_private_file(path, OLD)
    path.chmod(mode)
    assert read_private_file(path, max_size=LIMIT) == OLD


def test_a_file_of_exactly_the_limit_is_read_and_a_byte_more_is_not(path: Path) -> None:
    write_private_file(path, OLD)
    assert read_private_file(path, max_size=len(OLD)) == OLD
    with pytest.raises(LocalError) as caught:
        read_private_file(path, max_size=len(OLD) - 1)
    assert caught.value.code == "too-large"


def test_a_file_that_is_not_there_is_a_wrong_use_with_a_cure(path: Path) -> None:
    with pytest.raises(LocalError, match="bnw init") as caught:
        read_private_file(path, max_size=LIMIT)
    assert (caught.value.code, caught.value.place) == ("not-found", str(path))
    assert caught.value.exit_status is ExitStatus.USAGE


def test_what_is_no_file_is_not_read(path: Path) -> None:
    path.mkdir(mode=0o700)
    with pytest.raises(LocalError) as caught:
        read_private_file(path, max_size=LIMIT)
    assert caught.value.code == "read-failed"


def test_a_directory_that_is_not_there_is_named(tmp_path: Path) -> None:
    target = tmp_path / "nowhere" / "secrets"
    with pytest.raises(LocalError) as caught:
        write_private_file(target, NEW)
    assert (caught.value.code, caught.value.place) == ("write-failed", str(target))


# Never half-written


def full_disk(*_: object) -> int:
    raise OSError(28, "No space left on device")


def no_rename(*_: object) -> Path:
    raise OSError(5, "Input/output error")


@pytest.mark.parametrize(
    "fail",
    [
        pytest.param(lambda patch: patch.setattr(os, "fsync", full_disk), id="the disk is full"),
        pytest.param(lambda patch: patch.setattr(os, "fchmod", full_disk), id="no mode can be set"),
        pytest.param(lambda patch: patch.setattr(Path, "replace", no_rename), id="no name can be changed"),
    ],
)
def test_a_write_that_fails_leaves_the_old_file_and_nothing_beside_it(
    path: Path, monkeypatch: pytest.MonkeyPatch, fail: Callable[[pytest.MonkeyPatch], None]
) -> None:
    write_private_file(path, OLD)
    with monkeypatch.context() as patch:
        fail(patch)
        with pytest.raises(LocalError) as caught:
            write_private_file(path, NEW)
    assert caught.value.code == "write-failed"
    assert read_private_file(path, max_size=LIMIT) == OLD
    assert names_in(path.parent) == ["secrets"]


DIES = """
import os, sys
from pathlib import Path
from bnw.identity import private_file
path, step = Path(sys.argv[1]), sys.argv[2]
def die(*_): os._exit(9)
where = {"fsync": os, "replace": Path, "_overwrite": private_file}
setattr(where[step], step, die)
private_file.write_private_file(path, b"new" * 2000)
"""


@pytest.mark.parametrize(("step", "expected"), [("fsync", OLD), ("replace", OLD), ("_overwrite", NEW)])
def test_a_process_that_dies_at_any_step_leaves_one_whole_file(path: Path, step: str, expected: bytes) -> None:
    write_private_file(path, OLD)
    died = subprocess.run([sys.executable, "-c", DIES, str(path), step], check=False, timeout=20)
    assert died.returncode == 9
    assert read_private_file(path, max_size=LIMIT) == expected
    write_private_file(path, NEW)
    assert read_private_file(path, max_size=LIMIT) == NEW
    assert names_in(path.parent) == ["secrets"], "what the dead process left is used up by the next write"


def test_what_a_crash_left_is_private_again_and_not_mixed_in(path: Path) -> None:
    leftover = path.with_name(".secrets.tmp")
    leftover.write_bytes(b"x" * 50_000)
    leftover.chmod(0o666)
    write_private_file(path, NEW)
    assert read_private_file(path, max_size=LIMIT) == NEW


def test_a_link_in_place_of_the_temporary_file_is_not_followed(path: Path) -> None:
    victim = path.with_name("victim")
    victim.write_bytes(b"precious")
    path.with_name(".secrets.tmp").symlink_to(victim)
    with pytest.raises(LocalError):
        write_private_file(path, NEW)
    assert victim.read_bytes() == b"precious"


def test_readers_and_writers_at_once_see_whole_files_alone(path: Path) -> None:
    versions = [bytes([number]) * 30_000 for number in range(1, 4)]
    write_private_file(path, versions[0])
    stop = threading.Event()
    seen: set[bytes] = set()
    failures: list[BaseException] = []

    def watch() -> None:
        try:
            while not stop.is_set():
                seen.add(read_private_file(path, max_size=LIMIT))
        except BaseException as error:
            failures.append(error)

    def write(version: bytes) -> None:
        for _ in range(40):
            write_private_file(path, version)

    reader = threading.Thread(target=watch)
    writers = [threading.Thread(target=write, args=(version,)) for version in versions]
    reader.start()
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    stop.set()
    reader.join()
    assert not failures
    assert seen <= set(versions), [data[:8] for data in seen - set(versions)]


def test_a_reader_that_is_overtaken_by_a_writer_reads_the_new_file(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_private_file(path, OLD)
    examined = os.fstat
    overtaken = False

    def fstat(descriptor: int) -> os.stat_result:
        nonlocal overtaken
        if not overtaken:
            overtaken = True
            write_private_file(path, NEW)
        return examined(descriptor)

    monkeypatch.setattr(os, "fstat", fstat)
    assert read_private_file(path, max_size=LIMIT) == NEW
