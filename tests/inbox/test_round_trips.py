"""Sealing and opening, in memory and as streams: the same bytes travel, and the same bytes come out."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from payload_parts import ALICE, BOB, CAROL, Party, Pieces, SeededEnvironment, keys_of, opened, outgoing, some_bytes

from bnw.blobs.offload import worker_threads
from bnw.inbox.chunks import Cutter, carried_size, cut
from bnw.inbox.file_source import FileSource
from bnw.inbox.manifest import chunk_sizes
from bnw.inbox.opening import opened_payload
from bnw.inbox.padding import padded_size
from bnw.inbox.payload import Payload, open_payload, publish_payload, seal_payload
from bnw.inbox.sealing import Outgoing, publish_to_store, seal_to_store
from bnw.inbox.transfer import stored_chunks
from bnw.objects.signed import verify_object
from bnw.sim.run import run_virtual
from bnw.store.memory import MemoryStore
from bnw.store.sqlite import SqliteStore
from bnw.wire.content_id import content_id
from bnw.wire.errors import InvalidError, LocalError
from bnw.wire.limits import KIB, MAX_PAYLOAD, MIB, PAYLOAD_CHUNK

BOUNDARIES = sorted(
    {
        max(size + offset, 0)
        for size in (0, 4 * KIB, PAYLOAD_CHUNK, 2 * PAYLOAD_CHUNK, 3 * PAYLOAD_CHUNK)
        for offset in (-1, 0, 1)
    }
    | {10, PAYLOAD_CHUNK - 32 * KIB, PAYLOAD_CHUNK - 32 * KIB + 1, 2 * MIB - 64 * KIB + 1}
)
QUICK = settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.data_too_large])


async def seal_stream(store: MemoryStore, data: bytes, *, piece: int, seed: int = 0):  # type: ignore[no-untyped-def]  # tests
    return await seal_to_store(
        outgoing(data, piece=piece, name="n"),
        store,
        sender=ALICE.key,
        recipients=keys_of(ALICE, BOB),
        environment=SeededEnvironment(seed),
    )


@pytest.mark.parametrize("size", BOUNDARIES)
@pytest.mark.parametrize("piece", [PAYLOAD_CHUNK, 777_777], ids=["whole chunks", "odd pieces"])
def test_a_stream_and_memory_seal_the_same_manifest_and_chunks_and_each_opens_the_others(size: int, piece: int) -> None:
    data = some_bytes(size)

    async def act() -> None:
        store = MemoryStore()
        manifest = await seal_stream(store, data, piece=piece)
        carried = seal_payload(
            Payload(data, "application/octet-stream", "n"),
            sender=ALICE.key,
            recipients=keys_of(ALICE, BOB),
            environment=SeededEnvironment(0),
        )
        assert manifest.data == carried.manifest.data
        chunks = await stored_chunks(store, manifest)
        assert tuple(chunks) == carried.chunks
        assert [len(chunk) for chunk in chunks] == chunk_sizes(manifest.body)
        assert sum(map(len, chunks)) == carried_size(size, sealed=True)
        assert verify_object(manifest.data) == manifest
        for reader in (ALICE, BOB):
            assert await opened(store, manifest, reader) == data
            assert open_payload(manifest, reader.read(manifest), chunks) == Payload(
                data, "application/octet-stream", "n"
            )

    run_virtual(1, act)


@pytest.mark.parametrize("size", BOUNDARIES)
def test_public_payloads_travel_as_they_are_in_both_ways_and_anybody_reads_them(size: int) -> None:
    data = some_bytes(size)

    async def act() -> None:
        store = MemoryStore()
        recipients = [BOB.identity, ALICE.identity]
        manifest = await publish_to_store(
            outgoing(data), store, sender=ALICE.key, recipients=recipients, environment=SeededEnvironment()
        )
        carried = publish_payload(
            Payload(data, "application/octet-stream"),
            sender=ALICE.key,
            recipients=recipients,
            environment=SeededEnvironment(),
        )
        assert manifest.data == carried.manifest.data
        assert b"".join(await stored_chunks(store, manifest)) == (data or b"\0")
        assert await opened(store, manifest, CAROL) == data
        assert open_payload(manifest, CAROL.read(manifest), carried.chunks).data == data

    run_virtual(1, act)


@QUICK
@given(
    size=st.one_of(st.integers(0, 3 * MIB), st.sampled_from(BOUNDARIES)),
    piece=st.sampled_from([1000, 65_536, PAYLOAD_CHUNK, 5 * MIB]),
    seed=st.integers(0, 1000),
)
def test_whatever_the_size_what_was_sealed_comes_out(size: int, piece: int, seed: int) -> None:
    data = some_bytes(size, seed)

    async def act() -> bytes:
        store = MemoryStore()
        return await opened(store, await seal_stream(store, data, piece=piece, seed=seed), BOB)

    assert run_virtual(1, act) == data


@given(st.lists(st.integers(0, 2 * MIB + 2), max_size=5))
@QUICK
def test_a_plaintext_is_cut_the_same_however_it_comes(sizes: list[int]) -> None:
    data = some_bytes(sum(sizes))
    cutter = Cutter(pad=True)
    pieces, position = [], 0
    for size in sizes:
        pieces += cutter.feed(data[position : position + size])
        position += size
    pieces += cutter.finish()
    assert pieces == list(cut(data, pad=True))
    assert b"".join(piece for piece, _ in pieces) == data.ljust(padded_size(len(data)), b"\0")
    assert [is_last for _, is_last in pieces] == [False] * (len(pieces) - 1) + [True]
    assert all(len(piece) == PAYLOAD_CHUNK for piece, _ in pieces[:-1])


@pytest.mark.parametrize("size", [10, 4000])
def test_payloads_of_10_and_4000_bytes_look_the_same_in_size(size: int) -> None:
    carried = seal_payload(
        Payload(
            bytes(size),
            "text/plain" if size == 10 else "application/vnd.example.very-long-name+json",
            "x" * size if size == 10 else None,
        ),
        sender=ALICE.key,
        recipients=keys_of(ALICE, BOB),
        environment=SeededEnvironment(size),
    )
    assert [len(chunk) for chunk in carried.chunks] == [4 * KIB + 16]
    reference = seal_payload(
        Payload(b"", "a/b"), sender=ALICE.key, recipients=keys_of(ALICE, BOB), environment=SeededEnvironment()
    )
    assert len(carried.manifest.data) == len(reference.manifest.data)
    assert carried.manifest.body.size == reference.manifest.body.size  # type: ignore[attr-defined]  # a manifest has one


def test_the_same_payload_sent_twice_shares_nothing_that_a_carrier_could_notice() -> None:
    environment = SeededEnvironment()
    one, other = (
        seal_payload(
            Payload(b"the same", "text/plain", "same.txt"),
            sender=ALICE.key,
            recipients=keys_of(ALICE, BOB),
            environment=environment,
        )
        for _ in range(2)
    )
    assert one.manifest.id != other.manifest.id
    assert set(one.chunks).isdisjoint(other.chunks)
    sealed = {access.sealed for each in (one, other) for access in each.manifest.body.access}  # type: ignore[attr-defined]  # a wrong type is what is tested
    assert len(sealed) == 4
    assert len({data[:32] for data in sealed}) == 4, "a fresh key for every record"
    for each in (one, other):
        assert open_payload(each.manifest, BOB.read(each.manifest), each.chunks).data == b"the same"


class TestWhatSealingRefuses:
    async def seal(self, store: MemoryStore, what: Outgoing, recipients: dict[object, bytes] | None = None) -> None:
        await seal_to_store(
            what,
            store,
            sender=ALICE.key,
            recipients=keys_of(ALICE, BOB) if recipients is None else recipients,  # type: ignore[arg-type]  # a wrong type is what is tested
            environment=SeededEnvironment(),
        )

    def refused(self, what: Outgoing, recipients: dict[object, bytes] | None = None) -> tuple[str, int]:
        """The code of the refusal, and how many blobs it leaves behind."""
        store = MemoryStore()

        async def act() -> str:
            with pytest.raises(InvalidError) as caught:
                await self.seal(store, what, recipients)
            return caught.value.code

        return run_virtual(1, act), len(list(store.all_bytes()))

    def test_more_or_fewer_bytes_than_announced(self) -> None:
        data = some_bytes(5 * MIB)
        for announced in (0, 5 * MIB - 1, 5 * MIB + 1, 100 * MIB):
            assert self.refused(Outgoing(Pieces([data]), "a/b", None, announced)) == ("payload-size", 0)
            assert self.refused(Outgoing(Pieces([data[:MIB]] * 5), "a/b", None, announced)) == ("payload-size", 0)

    def test_more_bytes_than_announced_are_not_even_read(self) -> None:
        pieces = iter([bytes(MIB)] * 100)
        assert self.refused(Outgoing(Pieces(pieces), "a/b", None, 3 * MIB)) == ("payload-size", 0)
        assert len(list(pieces)) > 90

    def test_more_than_a_gibibyte(self) -> None:
        class Endless:
            """Claims to have read a lot already, to save time."""

            def __len__(self) -> int:
                return MAX_PAYLOAD + 1

        assert self.refused(Outgoing(Pieces([Endless()]), "a/b")) == ("too-large", 0)  # type: ignore[list-item]  # a wrong type is what is tested

    @pytest.mark.parametrize("media_type", ["text", "Text/Plain", "text/plain; charset=utf-8", "a/b\n"])
    def test_a_bad_media_type_before_anything_is_read(self, media_type: str) -> None:
        assert self.refused(Outgoing(Pieces([None]), media_type)) == ("field", 0)  # type: ignore[list-item]  # a wrong type is what is tested

    @pytest.mark.parametrize("name", ["", "x" * 256, "a\0b", "a\nb"])
    def test_a_bad_name_before_anything_is_read(self, name: str) -> None:
        assert self.refused(Outgoing(Pieces([None]), "a/b", name)) == ("field", 0)  # type: ignore[list-item]  # a wrong type is what is tested

    def test_no_recipients_and_too_many(self) -> None:
        assert self.refused(Outgoing(Pieces([]), "a/b"), {}) == ("recipients", 0)
        seventeen = keys_of(*(Party(f"party {number}") for number in range(17)))
        assert self.refused(Outgoing(Pieces([]), "a/b"), seventeen) == ("recipients", 0)  # type: ignore[arg-type]  # a wrong type is what is tested

    def test_an_inbox_key_that_no_honest_recipient_has(self) -> None:
        bad = {ALICE.identity: ALICE.inbox_key.public, BOB.identity: bytes(32)}
        assert self.refused(outgoing(some_bytes(3 * MIB)), bad) == ("inbox-key", 0)  # type: ignore[arg-type]  # a wrong type is what is tested

    def test_what_the_source_raises_comes_through_and_nothing_is_left(self) -> None:
        store = MemoryStore()

        class Broken(Pieces):
            async def __anext__(self) -> bytes:
                try:
                    return await super().__anext__()
                except StopAsyncIteration:
                    raise LocalError("unreadable", "the disk fails") from None

        async def act() -> None:
            with pytest.raises(LocalError) as caught:
                await self.seal(store, Outgoing(Broken([some_bytes(2 * MIB)] * 3), "a/b"))
            assert caught.value.code == "unreadable"

        run_virtual(1, act)
        assert list(store.all_bytes()) == []


def test_a_full_disk_while_sealing_is_told_and_leaves_no_chunk_behind() -> None:
    class Full(MemoryStore):
        async def put_blob(self, data: bytes):  # type: ignore[no-untyped-def]  # as in the store
            if len(list(self.all_bytes())) == 3:
                raise LocalError("disk-full", "there is no room")
            return await super().put_blob(data)

    store = Full()

    async def act() -> None:
        with pytest.raises(LocalError) as caught:
            await seal_stream(store, some_bytes(6 * MIB), piece=MIB)
        assert caught.value.code == "disk-full"

    run_virtual(1, act)
    assert list(store.all_bytes()) == []


def test_progress_of_sealing_counts_plaintext_and_ends_with_all_of_it() -> None:
    told: list[tuple[int, int | None]] = []

    async def act() -> None:
        await seal_to_store(
            outgoing(bytes(2 * MIB + 5)),
            MemoryStore(),
            sender=ALICE.key,
            recipients=keys_of(BOB),
            environment=SeededEnvironment(),
            on_progress=lambda done, total: told.append((done, total)),
        )

    run_virtual(1, act)
    assert told == [(done, 2 * MIB + 5) for done in (MIB, 2 * MIB, 2 * MIB + 5)]


@pytest.mark.anyio
async def test_with_a_real_store_files_and_threads(tmp_path: Path) -> None:
    data = some_bytes(5 * MIB + 123)
    path = tmp_path / "plain"
    path.write_bytes(data)
    offload = worker_threads()
    async with SqliteStore.open(tmp_path / "store") as store:
        async with FileSource(path, offload) as source:
            assert source.size == len(data)
            manifest = await seal_to_store(
                Outgoing(source, "a/b", path.name, source.size),
                store,
                sender=ALICE.key,
                recipients=keys_of(BOB),
                environment=SeededEnvironment(),
                offload=offload,
            )
        record = BOB.read(manifest)
        assert (record.name, record.size, record.hash) == ("plain", len(data), content_id(data))
        async with opened_payload(store, manifest, record, offload=offload) as pieces:
            assert b"".join([piece async for piece in pieces]) == data


@pytest.mark.anyio
async def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    for path in (tmp_path / "missing", tmp_path):
        with pytest.raises(LocalError) as caught:
            async with FileSource(path, worker_threads()) as source:
                _ = [piece async for piece in source]
        assert caught.value.code == "unreadable"
        assert caught.value.place == str(path)
