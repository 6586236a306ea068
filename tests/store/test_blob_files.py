"""Blob files: the order in which they are made durable, and what happens when several threads want the same one."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from bnw.store.blob_files import BlobFiles
from bnw.wire.content_id import content_id

DATA = b"some bytes"


@pytest.fixture
def files(tmp_path: Path) -> BlobFiles:
    return BlobFiles(tmp_path / "blobs")


def test_a_file_is_named_after_the_digits_of_its_id(files: BlobFiles, tmp_path: Path) -> None:
    digits = files.put(DATA).hex()
    assert (tmp_path / "blobs" / digits[:2] / digits[2:]).read_bytes() == DATA


def test_bytes_are_flushed_before_they_get_their_name_and_the_name_before_it_is_acknowledged(
    files: BlobFiles, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps: list[str] = []
    fsync, replace = os.fsync, Path.replace

    def traced_fsync(descriptor: int) -> None:
        target = Path(f"/proc/self/fd/{descriptor}").readlink()
        steps.append(f"flush {target.relative_to(tmp_path)}")
        fsync(descriptor)

    def traced_replace(self: Path, target: Path) -> Path:
        steps.append(f"rename {self.relative_to(tmp_path)} to {target.relative_to(tmp_path)}")
        return replace(self, target)

    if not Path("/proc/self/fd").exists():
        pytest.skip("names of open files can only be seen under /proc")
    monkeypatch.setattr(os, "fsync", traced_fsync)
    monkeypatch.setattr(Path, "replace", traced_replace)
    digits = files.put(DATA).hex()
    prefix, rest = digits[:2], digits[2:]
    assert steps == [
        "flush blobs",  # which has a new directory in it
        f"flush blobs/tmp/{digits}.0",
        f"rename blobs/tmp/{digits}.0 to blobs/{prefix}/{rest}",
        f"flush blobs/{prefix}",
    ]


def test_a_blob_that_is_there_is_not_written_again(files: BlobFiles) -> None:
    path = files.path(files.put(DATA))
    before = path.stat()
    files.put(DATA)
    assert path.stat().st_ino == before.st_ino


@pytest.mark.parametrize("damage", [b"", b"SOME BYTES", DATA + b"!"])
def test_a_damaged_file_is_replaced(files: BlobFiles, damage: bytes) -> None:
    id = files.put(DATA)
    files.path(id).write_bytes(damage)
    files.put(DATA)
    assert files.get(id) == DATA


def test_many_threads_may_put_the_same_blobs(files: BlobFiles, tmp_path: Path) -> None:
    blobs = [str(number).encode() * 100 for number in range(10)]
    with ThreadPoolExecutor(8) as threads:
        ids = list(threads.map(files.put, blobs * 8))
    assert ids == [content_id(data) for data in blobs] * 8
    assert files.count() == (10, sum(map(len, blobs)))
    assert [files.get(id) for id in ids] == blobs * 8
    assert list((tmp_path / "blobs" / "tmp").iterdir()) == []
