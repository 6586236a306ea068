"""A store on disk: what opening makes, what it refuses, and how damage shows."""

from __future__ import annotations

import os
import sqlite3
import stat
from pathlib import Path

import pytest
from store_objects import NOW, delegation, offer

from bnw.store.database import APPLICATION_ID, SCHEMA_VERSION
from bnw.store.interface import PutOutcome, Quota
from bnw.store.limits import INLINE_BLOB
from bnw.store.sqlite import SqliteStore
from bnw.wire.content_id import ContentId
from bnw.wire.errors import LocalError

pytestmark = pytest.mark.anyio

LARGE = bytes(INLINE_BLOB + 1)
PAGE = 4096


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    return tmp_path / "home" / "store"


@pytest.fixture
def database(directory: Path) -> Path:
    return directory / "index.sqlite"


async def fill(directory: Path, count: int = 300) -> ContentId:
    """A closed store with `count` objects and a blob file, whose id is returned."""
    async with SqliteStore.open(directory) as store:
        await store.put_objects([delegation(number) for number in range(count)], now=NOW)
        return await store.put_blob(LARGE)


async def refusal(directory: Path) -> LocalError:
    with pytest.raises(LocalError) as caught:
        async with SqliteStore.open(directory):
            pass
    return caught.value


async def test_what_was_put_is_there_after_reopening(directory: Path) -> None:
    blob = await fill(directory)
    async with SqliteStore.open(directory) as store:
        await store.put_record("t", b"k", b"v")
    async with SqliteStore.open(directory) as store:
        assert (await store.statistics()).objects == 300
        assert await store.get_object(delegation(7).id) == delegation(7)
        assert await store.get_blob(blob) == LARGE
        assert await store.get_record("t", b"k") == b"v"


async def test_files_and_directories_are_for_their_owner_only(directory: Path) -> None:
    old = os.umask(0)
    try:
        async with SqliteStore.open(directory) as store:
            await store.put_objects([offer()], now=NOW)
            await store.put_blob(LARGE)
            modes = {path: stat.S_IMODE(path.stat().st_mode) for path in [directory, *directory.rglob("*")]}
    finally:
        os.umask(old)
    assert {path.name for path in modes} >= {"index.sqlite", "index.sqlite-wal", "blobs", "tmp"}
    assert all(mode == (0o700 if path.is_dir() else 0o600) for path, mode in modes.items()), modes


async def test_the_header_says_whose_file_it_is(directory: Path, database: Path) -> None:
    await fill(directory, 1)
    header = database.read_bytes()[:100]
    assert int.from_bytes(header[68:72]) == APPLICATION_ID
    assert int.from_bytes(header[60:64]) == SCHEMA_VERSION


async def test_commits_are_flushed_to_the_disk(directory: Path) -> None:
    async with SqliteStore.open(directory) as store:
        connection = store._writer._connection
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
        assert connection.execute("PRAGMA synchronous").fetchone() == (2,)


async def test_leftovers_of_broken_writes_are_removed(directory: Path) -> None:
    await fill(directory, 1)
    leftover = directory / "blobs" / "tmp" / "half.0"
    leftover.write_bytes(b"half")
    async with SqliteStore.open(directory) as store:
        assert not leftover.exists()
        assert (await store.statistics()).blobs == 1


async def test_a_database_whose_making_was_cut_short_is_made_anew(directory: Path, database: Path) -> None:
    """A crash can leave an empty file, or one that has gone as far as its journal mode."""
    directory.mkdir(parents=True)
    database.touch()
    async with SqliteStore.open(directory):
        pass
    for path in (*(directory / "blobs").iterdir(), directory / "blobs"):
        path.rmdir()
    database.unlink()
    connection = sqlite3.connect(database)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.close()
    assert database.stat().st_size > 0
    async with SqliteStore.open(directory) as store:
        assert await store.put_objects([offer()], now=NOW) == [PutOutcome.ADDED]


async def test_a_newer_database_is_refused_and_left_alone(directory: Path, database: Path) -> None:
    await fill(directory, 1)
    with sqlite3.connect(database) as connection:
        connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION + 1}")
    connection.close()
    before = database.read_bytes()
    error = await refusal(directory)
    assert error.code == "store-version"
    assert error.place == str(database)
    assert error.cure
    assert f"version {SCHEMA_VERSION + 1}" in error.cause
    assert database.read_bytes() == before


async def test_the_database_of_another_program_is_refused_and_left_alone(directory: Path, database: Path) -> None:
    directory.mkdir(parents=True)
    with sqlite3.connect(database) as connection:
        connection.execute("CREATE TABLE bookmarks (url TEXT)")
    connection.close()
    before = database.read_bytes()
    assert (await refusal(directory)).code == "store-version"
    assert database.read_bytes() == before


def overwrite(path: Path, at: int, data: bytes) -> None:
    with path.open("r+b") as file:
        file.seek(at)
        file.write(data)


@pytest.mark.parametrize("damage", ["header", "half", "last-page", "page", "empty", "missing", "text"])
async def test_a_damaged_database_is_told_at_opening_with_place_and_cure(
    directory: Path, database: Path, damage: str
) -> None:
    await fill(directory)
    size = database.stat().st_size
    match damage:
        case "header":
            overwrite(database, 0, b"\xff" * 100)
        case "half":
            os.truncate(database, size // 2)
        case "last-page":
            os.truncate(database, size - PAGE)
        case "page":
            overwrite(database, 5 * PAGE, b"\xaa" * PAGE)
        case "empty":
            os.truncate(database, 0)
        case "missing":
            database.unlink()
        case "text":
            database.write_text("These are not the bytes of a database.\n" * 100)
    error = await refusal(directory)
    assert error.code == "store-damaged"
    assert error.place == str(database)
    assert str(directory) in (error.cure or "")


async def test_damage_that_happens_while_the_store_is_open_is_told_on_use(directory: Path, database: Path) -> None:
    await fill(directory, 2000)
    async with SqliteStore.open(directory) as store:
        size = database.stat().st_size
        overwrite(database, 30 * PAGE, b"\xaa" * (size - 30 * PAGE))
        with pytest.raises(LocalError) as caught:
            for number in range(2000):
                await store.get_object(delegation(number).id)
        assert caught.value.code == "store-damaged"
        store._writer._connection.execute("PRAGMA shrink_memory")  # it may still have the pages from opening
        with pytest.raises(LocalError) as caught:
            await store.remove_expired(now=2**50)
        assert caught.value.code == "store-damaged"


async def test_a_flipped_bit_in_an_object_is_told_and_never_handed_out(directory: Path, database: Path) -> None:
    obj = offer(text="wss://example.org/a-rather-long-endpoint")
    async with SqliteStore.open(directory) as store:
        await store.put_objects([obj, delegation()], now=NOW)
    place = database.read_bytes().index(obj.data) + obj.data.index(b"rather")
    overwrite(database, place, b"R")
    async with SqliteStore.open(directory) as store:
        for read in (
            store.get_object(obj.id),
            store.get_blob(obj.id),
            store.list_objects(kind=obj.kind, now=NOW),
        ):
            with pytest.raises(LocalError) as caught:
                await read
            assert caught.value.code == "store-damaged"
            assert obj.id.hex() in caught.value.cause
        assert await store.get_object(delegation().id) == delegation()


@pytest.mark.parametrize("data", [bytes(range(256)), LARGE])
async def test_a_flipped_bit_in_a_blob_is_told_and_putting_the_blob_again_heals_it(
    directory: Path, database: Path, data: bytes
) -> None:
    async with SqliteStore.open(directory) as store:
        id = await store.put_blob(data)
    file = directory / "blobs" / id.hex()[:2] / id.hex()[2:]
    if file.exists():
        overwrite(file, 100, b"\xff")
    else:
        overwrite(database, database.read_bytes().index(data) + 100, b"\xff")
        file = database
    async with SqliteStore.open(directory) as store:
        with pytest.raises(LocalError) as caught:
            await store.get_blob(id)
        assert caught.value.code == "store-damaged"
        assert caught.value.place == str(file)
        assert caught.value.cure
        assert await store.put_blob(data) == id
        assert await store.get_blob(id) == data


async def test_indexes_that_disagree_are_told_as_damage(directory: Path) -> None:
    async with SqliteStore.open(directory) as store:
        await store.put_objects([offer(1), delegation()], now=NOW)
        writer = store._writer._connection
        writer.execute("DELETE FROM objects WHERE id = ?", (delegation().id,))
        with pytest.raises(LocalError) as caught:
            await store.put_objects([delegation()], now=NOW)  # its membership of the catalog is still there
        assert caught.value.code == "store-damaged"
        assert await store.get_object(delegation().id) is None


async def test_a_directory_that_cannot_be_used_is_told_with_its_place(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    error = await refusal(tmp_path / "file" / "store")
    assert error.code == "store-failed"
    assert error.place == str(tmp_path / "file" / "store")


async def test_a_database_that_another_process_holds_is_told(directory: Path, database: Path) -> None:
    await fill(directory, 1)
    other = sqlite3.connect(database, isolation_level=None)
    async with SqliteStore.open(directory) as store:
        store._writer._connection.execute("PRAGMA busy_timeout = 1")
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(LocalError) as caught:
            await store.put_objects([offer()], now=NOW)
        assert caught.value.code == "store-failed"
        assert "other process" in (caught.value.cure or "")
        other.execute("ROLLBACK")
        assert await store.put_objects([offer()], now=NOW) == [PutOutcome.ADDED]
    other.close()


async def test_a_signer_over_a_quota_that_was_lowered_can_still_renew(directory: Path) -> None:
    async with SqliteStore.open(directory) as store:
        await store.put_objects([offer(1), delegation(1), delegation(2)], now=NOW)
    async with SqliteStore.open(directory, Quota(objects=1)) as store:
        outcomes = await store.put_objects([offer(2), delegation(3)], now=NOW)
        assert outcomes == [PutOutcome.ADDED, PutOutcome.OVER_QUOTA]
