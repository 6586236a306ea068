"""Fetching over a simulated network: what each kind of source can do to a transfer, and what it cannot."""

from __future__ import annotations

import anyio
import pytest
from sources_of_all_kinds import (
    Answer,
    CountingStore,
    Scene,
    babbles,
    has_nothing,
    in_virtual_time,
    is_always_busy,
    peer,
    resets,
    sends,
    stalls,
    trickles,
)

from bnw.blobs.fetcher import MAX_LARGE, BlobFetcher
from bnw.blobs.sources import GRACE, WINDOW, Wanted
from bnw.store.memory import MemoryStore
from bnw.transport.memory import Link
from bnw.wire.content_id import ContentId, content_id
from bnw.wire.errors import InvalidError, LocalError, RemoteError
from bnw.wire.limits import KIB, MAX_BLOB

CHUNKS = [bytes([number]) * WINDOW for number in range(1, 9)]


def wanted(*chunks: bytes) -> list[Wanted]:
    return [Wanted(content_id(data), len(data), len(data)) for data in chunks]


async def holds(store: MemoryStore, *chunks: bytes) -> bool:
    return [await store.get_blob(content_id(data)) for data in chunks] == list(chunks)


def test_chunks_come_from_several_sources_at_once_each_chunk_once() -> None:
    async def act(scene: Scene) -> None:
        sources = [await scene.honest(name, *CHUNKS) for name in ("a", "b", "c")]
        await scene.fetcher.fetch_to_store(wanted(*CHUNKS))
        assert await holds(scene.store, *CHUNKS)
        assert sum((source.reads for source in sources), sources[0].reads - sources[0].reads) == {
            content_id(data): 1 for data in CHUNKS
        }
        assert all(len(source.reads) >= 2 for source in sources), "all of them helped"

    in_virtual_time(act)


def test_three_sources_behind_slow_links_are_nearly_three_times_as_fast_as_one() -> None:
    slow = Link(latency=0.01, bandwidth=500_000)
    seconds = {}
    for count in (1, 3):

        async def act(scene: Scene, count: int = count) -> None:
            for number in range(count):
                await scene.honest(f"source-{number}", *CHUNKS[:6])
            await scene.fetcher.fetch_to_store(wanted(*CHUNKS[:6]))

        seconds[count] = in_virtual_time(act, link=slow)
    assert seconds[1] > 2.8 * seconds[3]


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(sends(bytes(WINDOW)), id="a chunk of the right length and wrong bytes"),
        pytest.param(sends(bytes(WINDOW + 1)), id="more bytes than declared"),
        pytest.param(sends(bytes(WINDOW - 1)), id="fewer bytes than declared"),
        pytest.param(sends(bytes(MAX_BLOB)), id="far more bytes than declared"),
        pytest.param(sends(b"", announced=WINDOW), id="an announcement and then nothing"),
        pytest.param(stalls, id="nothing at all"),
        pytest.param(resets, id="a reset"),
        pytest.param(babbles, id="an answer of no known kind"),
        pytest.param(has_nothing, id="absent"),
        pytest.param(is_always_busy, id="busy"),
        pytest.param(trickles(CHUNKS[0], 1.0), id="a source that stalls after each byte"),
    ],
)
def test_a_bad_source_costs_its_own_chunk_some_time_and_nothing_else(answer: Answer) -> None:
    """The bad source is asked first; the good one gives everything, each chunk once."""

    async def act(scene: Scene) -> None:
        asked = await scene.with_answer("bad", answer)
        good = await scene.honest("good", *CHUNKS)
        await scene.fetcher.fetch_to_store(wanted(*CHUNKS), prefer=[peer("bad"), peer("good")])
        assert await holds(scene.store, *CHUNKS)
        assert all(count == 1 for count in good.reads.values())
        assert list(scene.store.puts.values()) == [1] * len(CHUNKS), "nothing but right chunks was ever put"
        assert asked, "it was tried"

    assert in_virtual_time(act) < GRACE + 5


def test_a_liar_is_asked_once_and_reads_no_byte_of_what_it_sends_too_much() -> None:
    async def act(scene: Scene) -> None:
        asked = await scene.with_answer("liar", sends(bytes(WINDOW + 1)))
        with pytest.raises(RemoteError) as caught:
            await scene.fetcher.fetch_to_store(wanted(*CHUNKS))
        assert caught.value.code == "blob-not-found"
        assert "liar (blob-size)" in caught.value.cause
        assert asked.total() == 1

    assert in_virtual_time(act) < 0.1, "a mebibyte would take longer on this link"


def test_a_staller_is_not_asked_again_while_others_make_progress() -> None:
    async def act(scene: Scene) -> None:
        asked = await scene.with_answer("staller", stalls)
        await scene.honest("good", *CHUNKS)
        await scene.fetcher.fetch_to_store(wanted(*CHUNKS), prefer=[peer("staller")])
        assert asked.total() == 1

    in_virtual_time(act)


def test_with_stallers_only_a_transfer_ends_after_its_patience_and_keeps_what_it_has() -> None:
    async def act(scene: Scene) -> None:
        await scene.honest("partial", *CHUNKS[:3])
        await scene.with_answer("staller", stalls)
        begin = anyio.current_time()
        with pytest.raises(RemoteError) as caught:
            await scene.fetcher.fetch_to_store(wanted(*CHUNKS), timeout=45)
        assert caught.value.code == "blob-not-found"
        assert "5 of 8 blobs" in caught.value.cause
        # One of the three chunks came late, when the staller to which it had been given first was given up.
        assert GRACE + 45 <= anyio.current_time() - begin < GRACE + 46
        assert await holds(scene.store, *CHUNKS[:3])

    in_virtual_time(act)


def test_a_second_try_asks_only_for_what_is_missing() -> None:
    async def act(scene: Scene) -> None:
        first = await scene.honest("first", *CHUNKS[:5])
        with pytest.raises(RemoteError):
            await scene.fetcher.fetch_to_store(wanted(*CHUNKS))
        second = await scene.honest("second", *CHUNKS)
        await scene.fetcher.fetch_to_store(wanted(*CHUNKS), prefer=[peer("second")])
        assert await holds(scene.store, *CHUNKS)
        assert all(content_id(data) in first.reads for data in CHUNKS[:5])
        assert second.reads == {content_id(data): 1 for data in CHUNKS[5:]}

    in_virtual_time(act)


def test_a_source_that_comes_back_is_used_again_and_costs_one_chunk_twice_at_most() -> None:
    async def act(scene: Scene) -> None:
        source = await scene.honest("source", *CHUNKS)

        async def interrupt() -> None:
            for _ in range(3):
                await anyio.sleep(0.25)
                scene.network.disconnect("me", "source")
                await anyio.sleep(7)
                await scene.me.dial("mem:source")

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(interrupt)
            await scene.fetcher.fetch_to_store(wanted(*CHUNKS))
        assert await holds(scene.store, *CHUNKS)
        assert len(CHUNKS) < source.reads.total() <= len(CHUNKS) + 3

    in_virtual_time(act)


def test_a_peer_that_connects_during_a_transfer_is_a_source_as_well() -> None:
    async def act(scene: Scene) -> None:
        await scene.with_answer("staller", stalls)
        await scene.honest("late", *CHUNKS, connected=False)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(scene.fetcher.fetch_to_store, wanted(*CHUNKS))
            await anyio.sleep(3)
            await scene.me.dial("mem:late")
        assert await holds(scene.store, *CHUNKS)

    assert in_virtual_time(act) < GRACE + 5


def test_two_transfers_of_the_same_payload_at_once_fetch_each_chunk_once() -> None:
    async def act(scene: Scene) -> None:
        source = await scene.honest("source", *CHUNKS)
        told: dict[str, list[tuple[int, int]]] = {"one": [], "other": []}

        async def fetch(name: str) -> None:
            await scene.fetcher.fetch_to_store(
                wanted(*CHUNKS), on_progress=lambda done, total: told[name].append((done, total))
            )
            assert await holds(scene.store, *CHUNKS)

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(fetch, "one")
            tasks.start_soon(fetch, "other")
        assert source.reads == {content_id(data): 1 for data in CHUNKS}
        for progress in told.values():
            assert progress[-1] == (8 * WINDOW, 8 * WINDOW)

    in_virtual_time(act)


def test_a_cancelled_transfer_leaves_its_twin_able_to_finish() -> None:
    async def act(scene: Scene) -> None:
        source = await scene.honest("source", *CHUNKS)
        async with anyio.create_task_group() as tasks:
            with anyio.move_on_after(0.3) as scope:
                tasks.start_soon(scene.fetcher.fetch_to_store, wanted(*CHUNKS))
                await scene.fetcher.fetch_to_store(wanted(*CHUNKS))
            assert scope.cancelled_caught
        assert await holds(scene.store, *CHUNKS)
        assert source.reads.total() <= len(CHUNKS) + 1

    in_virtual_time(act)


class FullStore(CountingStore):
    """Has room for so many blobs."""

    def __init__(self, room: int) -> None:
        super().__init__()
        self.room = room

    async def put_blob(self, data: bytes) -> ContentId:
        if self.puts.total() >= self.room:
            raise LocalError("disk-full", "there is no room to write")
        return await super().put_blob(data)


def test_disk_full_in_mid_transfer_is_told_as_such_and_what_was_kept_is_not_fetched_again() -> None:
    async def act(scene: Scene) -> None:
        sources = [await scene.honest(name, *CHUNKS) for name in ("a", "b")]
        store = FullStore(3)
        fetcher = BlobFetcher(scene.me, store)
        with pytest.raises(LocalError) as caught:
            await fetcher.fetch_to_store(wanted(*CHUNKS))
        assert caught.value.code == "disk-full"
        kept = set(store.puts)
        assert len(kept) == 3
        store.room = 100
        for source in sources:
            source.reads.clear()
        await fetcher.fetch_to_store(wanted(*CHUNKS))
        assert await holds(store, *CHUNKS)
        again = set(sources[0].reads) | set(sources[1].reads)
        assert again == {content_id(data) for data in CHUNKS} - kept

    in_virtual_time(act)


def test_progress_is_shown_chunk_by_chunk_and_counts_what_was_here_before() -> None:
    async def act(scene: Scene) -> None:
        await scene.store.put_blob(CHUNKS[0])
        await scene.honest("source", *CHUNKS)
        told: list[tuple[int, int]] = []
        await scene.fetcher.fetch_to_store(
            wanted(*CHUNKS), on_progress=lambda done, total: told.append((done // WINDOW, total // WINDOW))
        )
        assert told == [(done, 8) for done in range(1, 9)]

    in_virtual_time(act)


def test_what_is_here_already_needs_no_peer() -> None:
    async def act(scene: Scene) -> None:
        await scene.store.put_blob(CHUNKS[0])
        told: list[tuple[int, int]] = []
        await scene.fetcher.fetch_to_store(wanted(CHUNKS[0]), on_progress=lambda *what: told.append(what))
        assert told == [(WINDOW, WINDOW)]

    in_virtual_time(act)


def test_a_blob_in_the_store_of_another_size_than_wanted_is_an_error() -> None:
    async def act(scene: Scene) -> None:
        id = await scene.store.put_blob(b"short")
        with pytest.raises(InvalidError) as caught:
            await scene.fetcher.fetch_to_store([Wanted(id, 6, 6)])
        assert caught.value.code == "blob-size"
        assert caught.value.place == id.hex()

    in_virtual_time(act)


def test_a_thousand_small_blobs_do_not_cost_a_round_trip_each() -> None:
    blobs = [content_id(b"%d" % number) * 32 for number in range(1000)]

    async def act(scene: Scene) -> None:
        await scene.honest("source", *blobs)
        await scene.fetcher.fetch_to_store(wanted(*blobs))
        assert await holds(scene.store, *blobs)

    assert in_virtual_time(act, link=Link(latency=0.1)) < 5, "round trips alone would take 200 seconds"


def test_a_descriptor_need_not_wait_for_large_transfers_that_stall() -> None:
    async def act(scene: Scene) -> None:
        small = b"a descriptor"
        good = await scene.honest("good", small)
        large = [[Wanted(content_id(b"%d %d" % (n, m)), WINDOW, WINDOW) for m in range(20)] for n in range(MAX_LARGE)]
        await scene.with_answer("staller", stalls)
        async with anyio.create_task_group() as tasks:
            for each in large:
                tasks.start_soon(scene.fetcher.fetch_to_store, each)
            await anyio.sleep(1)
            with anyio.fail_after(1):
                assert await scene.fetcher.fetch(content_id(small), prefer=[peer("good")]) == small
            tasks.cancel_scope.cancel()
        assert good.reads[content_id(small)] == 1

    in_virtual_time(act)


class TestSingleBlobs:
    def test_the_preferred_peer_is_asked_first_and_the_others_if_it_lacks_the_blob(self) -> None:
        async def act(scene: Scene) -> None:
            first = await scene.with_answer("z-preferred", has_nothing)
            other = await scene.honest("a-other", b"data")
            assert await scene.fetcher.fetch(content_id(b"data"), prefer=[peer("z-preferred")]) == b"data"
            assert first.total() == other.reads.total() == 1
            assert await scene.fetcher.fetch(content_id(b"data")) == b"data"
            assert other.reads.total() == 1, "the second time it is here"

        in_virtual_time(act)

    def test_without_a_peer_that_has_it_the_error_says_who_was_asked_and_comes_at_once(self) -> None:
        async def act(scene: Scene) -> None:
            with pytest.raises(RemoteError) as caught:
                await scene.fetcher.fetch(content_id(b"data"))
            assert "asked: nobody" in caught.value.cause
            await scene.honest("empty")
            with pytest.raises(RemoteError) as caught:
                await scene.fetcher.fetch(content_id(b"data"))
            assert caught.value.code == "blob-not-found"
            assert "empty (absent)" in caught.value.cause

        assert in_virtual_time(act) < 1

    def test_more_bytes_than_allowed_are_not_taken_from_a_peer_nor_from_the_store(self) -> None:
        async def act(scene: Scene) -> None:
            await scene.honest("source", bytes(100))
            with pytest.raises(RemoteError) as caught:
                await scene.fetcher.fetch(content_id(bytes(100)), max_size=99)
            assert "source (blob-size)" in caught.value.cause
            await scene.store.put_blob(bytes(100))
            with pytest.raises(RemoteError) as caught:
                await scene.fetcher.fetch(content_id(bytes(100)), max_size=99)
            assert caught.value.code == "too-large"

        in_virtual_time(act)

    def test_an_empty_blob_and_one_of_the_largest_size_arrive(self) -> None:
        async def act(scene: Scene) -> None:
            await scene.honest("source", b"", bytes(MAX_BLOB))
            assert await scene.fetcher.fetch(content_id(b"")) == b""
            assert len(await scene.fetcher.fetch(content_id(bytes(MAX_BLOB)))) == MAX_BLOB

        in_virtual_time(act)

    def test_many_blobs_come_in_the_order_asked_for(self) -> None:
        async def act(scene: Scene) -> None:
            blobs = [b"%d" % number for number in range(20)]
            await scene.honest("source", *blobs)
            ids = [content_id(data) for data in blobs]
            assert await scene.fetcher.fetch_all([*reversed(ids), ids[3]], max_size=KIB) == [*reversed(blobs), blobs[3]]

        in_virtual_time(act)


def test_a_round_trip_may_take_nearly_as_long_as_patience_and_opening_a_stream_another() -> None:
    async def act(scene: Scene) -> None:
        await scene.honest("source", b"data")
        assert await scene.fetcher.fetch(content_id(b"data")) == b"data"

    assert in_virtual_time(act, link=Link(latency=4.5)) > GRACE


def test_a_source_that_leaves_for_good_is_waited_for_and_then_named() -> None:
    async def act(scene: Scene) -> None:
        await scene.honest("source", *CHUNKS)
        async with anyio.create_task_group() as tasks:

            async def leave() -> None:
                await anyio.sleep(0.3)
                scene.network.disconnect("me", "source")

            tasks.start_soon(leave)
            with pytest.raises(RemoteError) as caught:
                await scene.fetcher.fetch_to_store(wanted(*CHUNKS), timeout=30)
        assert "source (gone)" in caught.value.cause

    assert 30 < in_virtual_time(act) < 31


def test_a_slow_but_steady_link_is_slow_and_nothing_worse() -> None:
    async def act(scene: Scene) -> None:
        source = await scene.honest("source", *CHUNKS[:2])
        await scene.fetcher.fetch_to_store(wanted(*CHUNKS[:2]))
        assert source.reads.total() == 2

    assert 100 < in_virtual_time(act, link=Link(latency=0.3, bandwidth=20_000)) < 130
