"""Opening into a file: whole or not at all, never over another, never anywhere else."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

import anyio
import pytest
from payload_parts import ALICE, BOB, SeededEnvironment, forged, keys_of, outgoing, some_bytes

from bnw.blobs.offload import worker_threads
from bnw.inbox.opening import received_name, save_payload
from bnw.inbox.part_file import MAX_PARTS, PartFile
from bnw.inbox.sealing import seal_to_store
from bnw.objects.signed import SignedObject
from bnw.store.memory import MemoryStore
from bnw.wire.content_id import ContentId, content_id
from bnw.wire.errors import InvalidError, LocalError
from bnw.wire.limits import MIB

pytestmark = pytest.mark.anyio

DATA = some_bytes(3 * MIB + 17)
ID = content_id(b"a payload")


async def sealed(store: MemoryStore, *, name: str | None = "plan.txt", data: bytes = DATA) -> SignedObject:
    return await seal_to_store(
        outgoing(data, name=name), store, sender=ALICE.key, recipients=keys_of(BOB), environment=SeededEnvironment()
    )


async def save(store: MemoryStore, manifest: SignedObject, path: Path) -> None:
    await save_payload(store, manifest, BOB.read(manifest), path, offload=worker_threads())


def names_in(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir())


async def test_a_payload_becomes_a_file_that_only_its_owner_may_read(tmp_path: Path) -> None:
    store = MemoryStore()
    manifest = await sealed(store)
    told: list[tuple[int, int]] = []
    path = tmp_path / received_name(manifest, BOB.read(manifest))
    await save_payload(
        store,
        manifest,
        BOB.read(manifest),
        path,
        offload=worker_threads(),
        on_progress=lambda done, total: told.append((done, total)),
    )
    assert path.read_bytes() == DATA
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert names_in(tmp_path) == ["plan.txt"]
    assert told == [(done, len(DATA)) for done in (0, MIB, 2 * MIB, 3 * MIB, len(DATA))]


async def test_an_empty_payload_becomes_an_empty_file(tmp_path: Path) -> None:
    store = MemoryStore()
    await save(store, await sealed(store, data=b""), tmp_path / "empty")
    assert (tmp_path / "empty").read_bytes() == b""


async def test_the_name_is_the_senders_made_safe_or_else_one_of_ours() -> None:
    store = MemoryStore()
    for name, received in (("a/b/plan.txt", "plan.txt"), (".profile", "_profile")):
        manifest = await sealed(store, name=name)
        assert received_name(manifest, BOB.read(manifest)) == received
    manifest = await sealed(store, name=None)
    assert received_name(manifest, BOB.read(manifest)) == f"payload-{manifest.id.hex()[:32]}"
    manifest = await sealed(store, name="../../.ssh/authorized_keys")
    with pytest.raises(InvalidError) as caught:
        received_name(manifest, BOB.read(manifest))
    assert caught.value.code == "file-name"


@pytest.mark.parametrize("what", ["file", "directory", "link", "broken link"])
async def test_whatever_has_the_name_already_is_not_touched(tmp_path: Path, what: str) -> None:
    store = MemoryStore()
    manifest = await sealed(store)
    path, elsewhere = tmp_path / "plan.txt", tmp_path / "elsewhere"
    match what:
        case "file":
            path.write_bytes(b"mine")
        case "directory":
            path.mkdir()
        case "link":
            elsewhere.write_bytes(b"mine")
            path.symlink_to(elsewhere)
        case "broken link":
            path.symlink_to(elsewhere)
    before = names_in(tmp_path)
    with pytest.raises(LocalError) as caught:
        await save(MemoryStore(), manifest, path)  # a store without the chunks, as that is not even looked at
    assert caught.value.code == "exists"
    assert names_in(tmp_path) == before
    assert what not in {"file", "link"} or path.read_bytes() == b"mine"


@pytest.mark.parametrize("has_links", [True, False], ids=["with hard links", "without"])
def test_a_file_that_appears_while_the_payload_is_written_is_not_touched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, has_links: bool
) -> None:
    if not has_links:
        forbid_links(monkeypatch)
    part = PartFile(tmp_path / "plan.txt", ID)
    part.write(b"new")
    (tmp_path / "plan.txt").write_bytes(b"mine")
    with pytest.raises(LocalError) as caught:
        part.publish()
    assert caught.value.code == "exists"
    part.close()
    assert names_in(tmp_path) == ["plan.txt"]
    assert (tmp_path / "plan.txt").read_bytes() == b"mine"


def forbid_links(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a file system without hard links."""

    def refuse(self: Path, target: Path) -> None:
        raise OSError(errno.EPERM, os.strerror(errno.EPERM))

    monkeypatch.setattr(Path, "hardlink_to", refuse)


async def test_a_file_system_without_hard_links_will_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    forbid_links(monkeypatch)
    store = MemoryStore()
    await save(store, await sealed(store), tmp_path / "plan.txt")
    assert (tmp_path / "plan.txt").read_bytes() == DATA
    assert names_in(tmp_path) == ["plan.txt"]


async def test_a_payload_that_is_not_as_declared_leaves_no_file(tmp_path: Path) -> None:
    """Its last chunk is damaged, so most of it has been written when that shows."""
    store = MemoryStore()
    manifest = await sealed(store)
    chunks = manifest.body.chunks  # type: ignore[attr-defined]  # a manifest has some
    await store.delete_blob(chunks[-1])
    with pytest.raises(LocalError) as caught:
        await save(store, manifest, tmp_path / "plan.txt")
    assert caught.value.code == "chunk-missing"
    reordered = forged(manifest, ALICE, chunks=(chunks[1], chunks[0], *chunks[2:]))
    with pytest.raises(InvalidError):
        await save_payload(store, reordered, BOB.read(manifest), tmp_path / "plan.txt", offload=worker_threads())
    assert names_in(tmp_path) == []


async def test_who_gives_up_in_the_middle_leaves_no_file(tmp_path: Path) -> None:
    class Slow(MemoryStore):
        async def get_blob(self, id: ContentId) -> bytes | None:
            if id == manifest.body.chunks[-1]:  # type: ignore[attr-defined]  # a manifest has some
                assert len(names_in(tmp_path)) == 1
                scope.cancel()
                await anyio.sleep_forever()
            return await super().get_blob(id)

    store = Slow()
    manifest = await sealed(store)
    with anyio.CancelScope() as scope:
        await save(store, manifest, tmp_path / "plan.txt")
    assert scope.cancelled_caught
    assert names_in(tmp_path) == []


@pytest.mark.parametrize("step", ["write", "fsync"])
async def test_a_full_disk_is_told_as_such_and_leaves_no_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    store = MemoryStore()
    manifest = await sealed(store)

    def refuse(*_: object) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(f"bnw.inbox.part_file.os.{step}", refuse)
        with pytest.raises(LocalError) as caught:
            await save(store, manifest, tmp_path / "plan.txt")
    assert caught.value.code == "disk-full"
    assert names_in(tmp_path) == []
    await save(store, manifest, tmp_path / "plan.txt")


async def test_a_directory_that_is_not_there_or_not_ours_is_told_before_anything_is_opened(tmp_path: Path) -> None:
    store = MemoryStore()
    manifest = await sealed(store)
    (tmp_path / "file").touch()
    for directory in (tmp_path / "missing", tmp_path / "file"):
        with pytest.raises(LocalError) as caught:
            await save(store, manifest, directory / "plan.txt")
        assert caught.value.code == "write-failed"


async def test_one_payload_saved_under_several_names_at_once(tmp_path: Path) -> None:
    store = MemoryStore()
    manifest = await sealed(store)
    async with anyio.create_task_group() as tasks:
        for number in range(5):
            tasks.start_soon(save, store, manifest, tmp_path / f"copy-{number}")
    assert names_in(tmp_path) == [f"copy-{number}" for number in range(5)]
    assert all(path.read_bytes() == DATA for path in tmp_path.iterdir())


async def test_one_payload_saved_twice_under_one_name_at_once_is_there_once(tmp_path: Path) -> None:
    store = MemoryStore()
    manifest = await sealed(store)
    codes: list[str] = []

    async def try_to_save() -> None:
        try:
            await save(store, manifest, tmp_path / "plan.txt")
            codes.append("saved")
        except LocalError as error:
            codes.append(error.code)

    async with anyio.create_task_group() as tasks:
        for _ in range(3):
            tasks.start_soon(try_to_save)
    assert sorted(codes) == ["exists", "exists", "saved"]
    assert (tmp_path / "plan.txt").read_bytes() == DATA
    assert names_in(tmp_path) == ["plan.txt"]


class TestParts:
    def part(self, directory: Path, number: int = 0) -> Path:
        return directory / f".bnw-{ID.hex()[:32]}-{number}.part"

    def test_what_a_crash_left_behind_is_taken_over_from_its_start(self, tmp_path: Path) -> None:
        self.part(tmp_path).write_bytes(b"x" * 100)
        self.part(tmp_path).chmod(0o600)
        part = PartFile(tmp_path / "plan.txt", ID)
        assert names_in(tmp_path) == [self.part(tmp_path).name]
        part.write(b"new")
        part.publish()
        part.close()
        assert (tmp_path / "plan.txt").read_bytes() == b"new"
        assert names_in(tmp_path) == ["plan.txt"]

    @pytest.mark.parametrize("trap", ["link", "broken link", "hard link", "device", "open to others"])
    def test_a_trap_laid_under_its_name_is_neither_followed_nor_emptied(self, tmp_path: Path, trap: str) -> None:
        victim = tmp_path / "victim"
        victim.write_bytes(b"precious")
        victim.chmod(0o600)
        match trap:
            case "link":
                self.part(tmp_path).symlink_to(victim)
            case "hard link":
                self.part(tmp_path).hardlink_to(victim)
            case "broken link":
                self.part(tmp_path).symlink_to(tmp_path / "elsewhere")
            case "device":
                self.part(tmp_path).symlink_to("/dev/null")
            case "open to others":
                self.part(tmp_path).write_bytes(b"precious")
                self.part(tmp_path).chmod(0o666)
        part = PartFile(tmp_path / "plan.txt", ID)
        part.write(b"new")
        part.publish()
        part.close()
        assert victim.read_bytes() == b"precious"
        assert not (tmp_path / "elsewhere").exists()
        assert trap != "open to others" or self.part(tmp_path).read_bytes() == b"precious"
        assert not (tmp_path / "plan.txt").is_symlink()
        assert (tmp_path / "plan.txt").read_bytes() == b"new"

    def test_there_are_so_many_and_no_more(self, tmp_path: Path) -> None:
        parts = [PartFile(tmp_path / f"{number}", ID) for number in range(MAX_PARTS)]
        with pytest.raises(LocalError) as caught:
            PartFile(tmp_path / "one more", ID)
        assert caught.value.code == "write-failed"
        parts[3].close()
        parts[3] = PartFile(tmp_path / "one more", ID)
        for part in parts:
            part.close()
        assert names_in(tmp_path) == []
