"""A full disk: an error with its own code, nothing half-written, and work goes on when there is room again."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import anyio
import pytest
from store_objects import NOW, delegation

import bnw
from bnw.store.interface import PutOutcome, Quota
from bnw.store.limits import INLINE_BLOB
from bnw.store.sqlite import SqliteStore
from bnw.wire.content_id import ContentId, content_id
from bnw.wire.errors import LocalError
from bnw.wire.limits import MIB

pytestmark = pytest.mark.anyio

ROOMY = Quota(objects=100_000, bytes=100 * MIB)


def full(caught: pytest.ExceptionInfo[LocalError], directory: Path) -> bool:
    error = caught.value
    return error.code == "disk-full" and (error.place or "").startswith(str(directory)) and bool(error.cure)


async def put_until_full(store: SqliteStore, directory: Path) -> tuple[int, int]:
    """Put batches of 100 delegations; the numbers of acknowledged ones, and of the first of the batch that failed."""
    for start in range(0, 50_000, 100):
        batch = [delegation(number) for number in range(start, start + 100)]
        try:
            await store.put_objects(batch, now=NOW)
        except LocalError as error:
            assert error.code == "disk-full"
            assert (error.place or "").startswith(str(directory))
            return start, start
    raise AssertionError("the disk never filled up")


async def test_a_database_without_room_refuses_whole_batches_until_there_is_room(tmp_path: Path) -> None:
    async with SqliteStore.open(tmp_path, ROOMY) as store:
        writer = store._writer._connection
        (pages,) = writer.execute("PRAGMA page_count").fetchone()
        writer.execute(f"PRAGMA max_page_count = {pages + 60}")
        kept, lost = await put_until_full(store, tmp_path)
        assert kept > 0
        before = await store.scope_summary("catalog", now=NOW)
        assert before.count == kept == (await store.statistics()).objects
        assert await store.get_object(delegation(lost).id) is None
        with pytest.raises(LocalError) as caught:
            await store.put_record_with_objects("t", b"k", bytes(500_000), [delegation(lost)], now=NOW)
        assert full(caught, tmp_path)
        assert await store.get_record("t", b"k") is None
        with pytest.raises(LocalError) as caught:
            for number in range(10):  # a few may still fit into pages that rolled-back batches left free
                await store.put_blob(bytes([number]) * INLINE_BLOB)
        assert full(caught, tmp_path)
        writer.execute(f"PRAGMA max_page_count = {pages + 1000}")
        assert await store.put_objects([delegation(lost)], now=NOW) == [PutOutcome.ADDED]
        assert (await store.scope_summary("catalog", now=NOW)).count == kept + 1


async def test_in_a_batch_that_does_not_fit_the_writes_that_do_are_kept(tmp_path: Path) -> None:
    """Writers that happen to share a transaction do not share its failure."""
    results: dict[int, str] = {}
    async with SqliteStore.open(tmp_path) as store:
        writer = store._writer._connection
        (pages,) = writer.execute("PRAGMA page_count").fetchone()
        writer.execute(f"PRAGMA max_page_count = {pages + 20}")

        async def put(size: int) -> None:
            try:
                await store.put_record("t", str(size).encode(), bytes(size))
                results[size] = "kept"
            except LocalError as error:
                results[size] = error.code

        async with anyio.create_task_group() as tasks:
            for size in (1, 2, 500_000, 3, 4):
                tasks.start_soon(put, size)
        assert results == {1: "kept", 2: "kept", 500_000: "disk-full", 3: "kept", 4: "kept"}
        assert [key for key, _ in await store.list_records("t")] == [b"1", b"2", b"3", b"4"]


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EFBIG])
@pytest.mark.parametrize("step", ["write", "flush", "rename", "flush-directory"])
async def test_whatever_step_of_a_blob_write_fails_nothing_of_it_is_visible(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, step: str
) -> None:
    data = bytes(INLINE_BLOB + 1)

    def refuse(*_: object, **__: object) -> None:
        raise OSError(number, os.strerror(number))

    def write_half(path: Path, data: bytes) -> None:
        path.write_bytes(data[: len(data) // 2])
        refuse()

    async with SqliteStore.open(tmp_path) as store:
        other = await store.put_blob(b"x" * (INLINE_BLOB + 1))
        with monkeypatch.context() as patch:
            match step:
                case "write":
                    patch.setattr("bnw.store.blob_files._write_flushed", write_half)
                case "flush":
                    patch.setattr("bnw.store.blob_files.os.fsync", refuse)
                case "rename":
                    patch.setattr("bnw.store.blob_files.Path.replace", refuse)
                case "flush-directory":
                    store._files._make_durable(store._files.path(content_id(data)).parent)
                    patch.setattr("bnw.store.blob_files.sync_directory", refuse)
            with pytest.raises(LocalError) as caught:
                await store.put_blob(data)
            assert full(caught, tmp_path)
        assert await store.get_blob(content_id(data)) is None
        assert (await store.statistics()).blobs == 1
        assert list((tmp_path / "blobs" / "tmp").iterdir()) == []
        assert await store.get_blob(await store.put_blob(data)) == data
        assert await store.get_blob(other) is not None


LIMITED = """
import resource, sys
from pathlib import Path
import trio
from bnw.store.sqlite import SqliteStore
from bnw.wire.errors import LocalError

BIG = bytes(1_000_000)

async def main(directory):
    async with SqliteStore.open(directory) as store:
        resource.setrlimit(resource.RLIMIT_FSIZE, (500_000, resource.RLIM_INFINITY))
        for put in (lambda: store.put_blob(BIG), lambda: store.put_record("t", b"big", BIG)):
            try:
                await put()
            except LocalError as error:
                print(error.code)
        await store.put_record("t", b"small", b"v")
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        id = await store.put_blob(BIG)
        await store.put_record("t", b"big", BIG)
        print([key for key, _ in await store.list_records("t")], await store.get_blob(id) == BIG)
        print(list((directory / "blobs" / "tmp").iterdir()))

trio.run(main, Path(sys.argv[1]))
"""


def test_a_limit_on_file_sizes_counts_as_a_full_disk(tmp_path: Path) -> None:
    """In a process of its own, because the limit is one of the process. A disk quota shows in the same way."""
    done = subprocess.run(
        [sys.executable, "-c", LIMITED, str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env={**os.environ, "PYTHONPATH": str(Path(bnw.__file__).parents[1])},
    )
    assert done.stdout.splitlines() == ["disk-full", "disk-full", "[b'big', b'small'] True", "[]"], done.stderr


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 6 MiB."""
    place = tmp_path / "disk"
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=6m", "tmpfs", str(place)]
    try:
        done = subprocess.run(mount, capture_output=True, text=True, timeout=10, check=False)
        problem = done.stderr if done.returncode else ""
    except OSError as error:
        problem = str(error)
    if problem:
        pytest.skip(f"a small file system cannot be mounted here: {problem.strip()}")
    try:
        yield place
    finally:
        subprocess.run(["umount", str(place)], timeout=10, check=True)


async def test_on_a_file_system_that_is_really_full(small_disk: Path) -> None:
    home = small_disk / "store"
    filler = small_disk / "filler"
    async with SqliteStore.open(home, ROOMY) as store:
        await store.put_objects([delegation(-1)], now=NOW)
        filler.write_bytes(bytes(3 * MIB))
        blobs: list[ContentId] = []
        with pytest.raises(LocalError) as caught:
            for number in range(10):
                blobs.append(await store.put_blob(bytes([number]) * MIB))
        assert full(caught, home)
        assert (await store.statistics()).blobs == len(blobs) > 0
        kept, _ = await put_until_full(store, home)
        assert (await store.scope_summary("catalog", now=NOW)).count == kept + 1
        assert await store.get_object(delegation(-1).id) == delegation(-1)
        filler.unlink()
        assert await store.put_objects([delegation(kept)], now=NOW) == [PutOutcome.ADDED]
        blobs.append(await store.put_blob(bytes([99]) * MIB))
    async with SqliteStore.open(home, ROOMY) as store:
        assert (await store.statistics()).objects == kept + 2
        for id in blobs:
            assert len(await store.get_blob(id) or b"") == MIB


async def test_a_full_disk_at_opening_is_told_as_such(small_disk: Path) -> None:
    with (small_disk / "filler").open("wb", buffering=0) as file, pytest.raises(OSError, match="No space"):
        while True:
            file.write(bytes(4096))
    with pytest.raises(LocalError) as caught:
        async with SqliteStore.open(small_disk / "store"):
            pass
    assert full(caught, small_disk)
    (small_disk / "filler").unlink()
    async with SqliteStore.open(small_disk / "store") as store:
        assert await store.put_objects([delegation()], now=NOW) == [PutOutcome.ADDED]
