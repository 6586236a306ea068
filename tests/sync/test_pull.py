"""Pulls between honest peers: everything that is missing comes, once, and what cannot come is not asked for again."""

from __future__ import annotations

import anyio
import pytest
from sync_world import (
    NOW,
    ROOMY,
    World,
    cancellation,
    connect,
    delegation,
    delegations,
    offer,
    open_world,
    raw_session,
    spoiled,
)

from bnw.objects.rules import CATALOG
from bnw.objects.signed import SignedObject
from bnw.store.interface import Quota
from bnw.store.memory import MemoryStore
from bnw.sync import fetch, protocol, puller, server, wants
from bnw.sync.protocol import SyncRefused, SyncWant
from bnw.sync.wants import WANT_TABLE, WantList
from bnw.transport.memory.links import Link
from bnw.wire.errors import RemoteError
from bnw.wire.limits import HOUR, MINUTE

pytestmark = pytest.mark.anyio


@pytest.fixture
async def world():
    async with open_world() as opened:
        yield opened


@pytest.mark.parametrize(("common", "only_there", "only_here"), [(0, 0, 0), (0, 1, 0), (0, 1500, 0), (300, 40, 30)])
async def test_a_pull_brings_exactly_what_is_missing_and_tells_of_each(
    world: World, common: int, only_there: int, only_here: int
) -> None:
    objects = delegations(common + only_there + only_here)
    theirs, ours = objects[: common + only_there], objects[:common] + objects[common + only_there :]
    async with world.side("here", ours) as here, world.side("there", theirs) as there:
        await connect(here, "there")
        report = await here.pull(there.peer)
        assert report.is_complete
        assert report.refused is None
        assert report.news == only_there == len(here.news)
        assert await here.holds(objects)
        assert await there.holds(theirs), "a pull changes nothing on the other side"
        again = await here.pull(there.peer)
        assert (again.asked, again.is_complete) == (0, True)


async def test_large_objects_come_in_several_frames(world: World) -> None:
    text = "x" * 250
    objects = [offer(1, key=key_of(number), text=text) for number in range(1200)]
    assert sum(len(obj.data) for obj in objects[:512]) > protocol.MAX_OBJECT_BYTES_PER_FRAME
    async with world.side("here") as here, world.side("there", objects) as there:
        await connect(here, "there")
        await here.pull(there.peer)
        assert await here.holds(objects)


def key_of(number: int):
    from bnw.identity.keys import SigningKey
    from bnw.wire.content_id import content_id

    return SigningKey(content_id(f"key {number}".encode()))


async def test_an_object_with_an_old_date_comes_after_newer_ones_have(world: World) -> None:
    new, old = delegations(50), delegation(1, created=NOW - 300 * HOUR)
    async with world.side("here") as here, world.side("there", new) as there:
        await connect(here, "there")
        await here.pull(there.peer)
        await there.store.put_objects([old], now=NOW)
        await here.pull(there.peer)
        assert await here.holds([*new, old])


async def test_expired_objects_are_neither_offered_nor_delivered(world: World) -> None:
    short, long = delegation(1, expires=NOW + 1000), delegation(2)
    async with world.side("here") as here, world.side("there", [short, long]) as there:
        await connect(here, "there")
        await anyio.sleep(1)
        report = await here.pull(there.peer)
        assert (report.asked, report.news) == (1, 1)
        assert await here.holds([long])
        async with raw_session(here, "there") as messages:
            await open_with_nothing(messages)
            await messages.send(SyncWant((short.id, long.id)).to_wire())
            answer = await messages.receive()
            assert answer is not None
            assert answer["objects"] == [long.data]


async def open_with_nothing(messages) -> None:
    """Open a session as a peer that holds nothing."""
    await messages.send({"type": "open", "version": 1, "scope": CATALOG, "message": b"\x61\x00\x00\x02\x00"})
    answer = await messages.receive()
    assert answer is not None and answer["type"] == "reconcile"


async def test_objects_of_another_scope_cannot_be_had_by_their_id(world: World) -> None:
    secret, public = cancellation(), delegation()
    async with world.side("here") as here, world.side("there", [secret, public]) as there:
        await connect(here, "there")
        assert (await here.pull(there.peer)).news == 1
        async with raw_session(here, "there") as messages:
            await open_with_nothing(messages)
            await messages.send(SyncWant((secret.id,)).to_wire())
            assert await messages.receive() == {"type": "objects", "more": False, "objects": []}


async def test_objects_over_quota_are_not_fetched_again_until_some_time_has_passed(world: World) -> None:
    objects = delegations(100)
    async with world.side("here", quota=Quota(objects=60)) as here, world.side("there", objects) as there:
        await connect(here, "there")
        first = await here.pull(there.peer)
        assert (first.asked, first.news) == (100, 60)
        for _ in range(3):
            assert (await here.pull(there.peer)).asked == 0
        await anyio.sleep(fetch.UNWANTED_LIFETIME / 1000)
        assert (await here.pull(there.peer)).asked == 40


async def test_what_is_not_kept_is_not_fetched_from_another_peer_either(world: World) -> None:
    objects = delegations(10)
    async with (
        world.side("here", quota=Quota(objects=6)) as here,
        world.side("there", objects) as there,
        world.side("elsewhere", objects) as elsewhere,
    ):
        await connect(here, "there", "elsewhere")
        assert (await here.pull(there.peer)).asked == 10
        assert (await here.pull(elsewhere.peer)).asked == 0


async def test_what_a_slow_clock_takes_for_the_future_is_asked_for_again_soon(world: World) -> None:
    obj = delegation(1, created=NOW)
    async with world.side("here", ahead=-6 * MINUTE) as here, world.side("there", [obj]) as there:
        await connect(here, "there")
        assert (await here.pull(there.peer)).news == 0
        assert (await here.pull(there.peer)).asked == 0
        await anyio.sleep(fetch.FUTURE_LIFETIME / 1000)
        assert (await here.pull(there.peer)).news == 1


async def test_replaced_objects_are_not_fetched_from_peers_that_still_have_them(world: World) -> None:
    async with world.side("here", [offer(2)]) as here, world.side("there", [offer(1)]) as there:
        await connect(here, "there")
        assert (await here.pull(there.peer)).news == 0
        assert (await here.pull(there.peer)).asked == 0
        await connect(there, "here")
        await there.pull(here.peer)
        assert await there.holds([offer(2)])


async def test_a_contradiction_reaches_everybody_as_proof(world: World) -> None:
    winner, loser = sorted((offer(1, text=text) for text in "ab"), key=lambda obj: obj.id)
    async with world.side("here", [winner]) as here, world.side("there", [loser]) as there:
        await connect(here, "there")
        assert (await here.pull(there.peer)).news == 1
        assert await here.store.equivocations() == [(winner, loser)]
        assert (await here.pull(there.peer)).asked == 0


async def test_several_peers_share_the_work(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fetch, "MAX_IDS_PER_WANT", 50)
    objects = delegations(1000)
    sent: dict[str, int] = {}
    original = server._Session._send_objects

    async def counting(session, ids) -> None:
        name = session._messages.peer
        sent[name] = sent.get(name, 0) + len(ids)
        await original(session, ids)

    monkeypatch.setattr(server._Session, "_send_objects", counting)
    async with (
        world.side("here") as here,
        world.side("one", objects) as one,
        world.side("two", objects) as two,
        anyio.create_task_group() as tasks,
    ):
        await connect(here, "one", "two")
        tasks.start_soon(here.pull, one.peer)
        tasks.start_soon(here.pull, two.peer)
    assert sent == {"here": sum(sent.values())}
    assert len(here.news) == 1000
    assert sum(sent.values()) <= 1000 + 4 * 50, "hardly anything is fetched twice"


async def test_a_peer_that_stalls_does_not_keep_objects_from_coming_from_another(world: World) -> None:
    objects = delegations(200)

    async with (
        world.side("here") as here,
        world.side("slow", objects) as slow,
        world.side("quick", objects) as quick,
        anyio.create_task_group() as tasks,
    ):
        await connect(here, "slow", "quick")

        async def pull_slowly() -> None:
            with pytest.raises(RemoteError):
                await here.pull(slow.peer)

        original = server._Session._send_objects

        async def stalling(session, ids) -> None:
            if session._store is slow.store:
                await anyio.sleep_forever()
            await original(session, ids)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(server._Session, "_send_objects", stalling)
            tasks.start_soon(pull_slowly)
            await anyio.sleep(1)
            with anyio.fail_after(1):
                assert (await here.pull(quick.peer)).news == 200
            await anyio.sleep(60)


async def test_a_pull_goes_on_where_a_restart_cut_it_short(world: World) -> None:
    """The second run asks for what is left before it compares anything, and gets it."""
    objects = delegations(2000)
    store = MemoryStore(ROOMY)
    async with world.side("there", objects) as there:
        async with world.side("here", store=store) as here:
            world.network.set_link("here", "there", Link(bandwidth=200_000.0))
            await connect(here, "there")
            with anyio.move_on_after(2.5):
                await here.pull(there.peer)
            assert 0 < len(here.news) < 2000
        left = 2000 - len(here.news)
        assert len(await store.list_records(WANT_TABLE)) == 1
        async with world.side("here", store=store) as here:
            await connect(here, "there")
            list_ = WantList(store, CATALOG)
            await list_.load(NOW)
            assert len(list_.ids(NOW)) == left
            report = await here.pull(there.peer)
            assert report.news == report.asked == left
            assert report.rounds == 2, "the first answer, and one comparison in which nothing differs"
            assert await here.holds(objects)
            assert await store.list_records(WANT_TABLE) == []


async def test_what_is_left_from_one_peer_is_asked_of_another_once_and_forgotten_after_an_hour(world: World) -> None:
    ghosts = delegations(20, first=500)
    store = MemoryStore(ROOMY)
    list_ = WantList(store, CATALOG)
    list_.add([obj.id for obj in ghosts], NOW)
    await list_.save(NOW)
    async with world.side("here", store=store) as here, world.side("there", delegations(3)) as there:
        await connect(here, "there")
        assert (await here.pull(there.peer)).asked == 23
        assert (await here.pull(there.peer)).asked == 0
        await anyio.sleep(fetch.WITHHELD_LIFETIME / 1000)
        assert (await here.pull(there.peer)).asked == 20
        await anyio.sleep(wants.WANT_LIFETIME / 1000)
        assert (await here.pull(there.peer)).asked == 0


async def test_a_list_of_wants_that_cannot_be_read_is_begun_anew(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    store = MemoryStore(ROOMY)
    await store.put_record(WANT_TABLE, CATALOG.encode(), b"junk")
    async with world.side("here", store=store) as here, world.side("there", delegations(3)) as there:
        await connect(here, "there")
        assert (await here.pull(there.peer)).news == 3
    assert "cannot be read" in caplog.text


async def test_more_than_one_session_may_ask_for_is_pulled_in_several(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (puller, server):
        monkeypatch.setattr(module, "MAX_WANTED", 300)
    objects = delegations(1000)
    async with world.side("here") as here, world.side("there", objects) as there:
        await connect(here, "there")
        reports = [await here.pull(there.peer) for _ in range(4)]
        assert [report.news for report in reports] == [300, 300, 300, 100]
        assert [report.is_complete for report in reports] == [False, False, False, True]


async def test_a_session_ends_when_it_has_brought_enough_bytes(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bnw.sync.session.MAX_SESSION_BYTES", 100_000)
    monkeypatch.setattr(fetch, "MAX_IDS_PER_WANT", 50)
    objects = delegations(1000)
    async with world.side("here") as here, world.side("there", objects) as there:
        await connect(here, "there")
        report = await here.pull(there.peer)
        assert 0 < report.news < 500
        assert not report.is_complete
        for _ in range(4):
            await here.pull(there.peer)
        assert await here.holds(objects)


@pytest.mark.parametrize(
    ("message", "code"),
    [
        ({"scope": "inbox:did:key:z6Mk"}, "scope"),
        ({"scope": "no such scope"}, "scope"),
        ({"version": 2}, "version"),
        ({"version": 2, "and": "what else there may be"}, "version"),
        ({"message": b"\x61" + bytes(protocol.MAX_NEGENTROPY)}, "frame-too-large"),
    ],
)
async def test_refusals_are_typed_and_say_for_how_long(world: World, message: dict, code: str) -> None:
    opening = {"type": "open", "version": 1, "scope": CATALOG, "message": b"\x61\x00\x00\x02\x00", **message}
    async with world.side("here") as here, world.side("there", delegations(3)), raw_session(here, "there") as messages:
        await messages.send(opening)
        assert await messages.receive() == {"type": "refused", "code": code, "retry_after": protocol.RETRY_AFTER[code]}
        assert await messages.receive() is None


async def test_a_frame_above_the_limit_is_refused_as_soon_as_its_length_has_arrived(world: World) -> None:
    async with world.side("here") as here, world.side("there"), raw_session(here, "there") as messages:
        await messages.send_bytes((2**32 - 1).to_bytes(4))
        answer = await messages.receive()
        assert answer is not None and answer["code"] == "frame-too-large"


async def test_a_busy_peer_refuses_and_the_report_says_so(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "MAX_SERVED_AT_ONCE", 0)
    async with world.side("here") as here, world.side("there", delegations(3)) as there:
        await connect(here, "there")
        report = await here.pull(there.peer)
        assert report.refused == SyncRefused("busy", protocol.RETRY_AFTER["busy"])
        assert not report.is_complete


async def test_what_came_before_a_refusal_is_kept(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "MAX_WANTED", 600)
    objects = delegations(1000)
    async with world.side("here") as here, world.side("there", objects) as there:
        await connect(here, "there")
        report = await here.pull(there.peer)
        assert report.refused is not None and report.refused.code == "limit"
        assert report.news == len(here.news) == 512


async def test_a_hint_carries_the_summary_of_the_scope(world: World) -> None:
    async with world.side("here", delegations(7)) as here, world.side("there") as there:
        await connect(here, "there")
        await here.puller.hint(there.peer)
        await anyio.sleep(1)
        assert there.hints == [(here.peer, CATALOG, await here.store.scope_summary(CATALOG, now=NOW))]


async def test_the_same_pull_in_virtual_time_gives_the_same_trace(world: World) -> None:
    async def trace_of_a_run() -> list[str]:
        from sync_world import TestEnvironment

        from bnw.transport.memory import MemoryNetwork

        lines: list[str] = []
        begin = anyio.current_time()
        async with MemoryNetwork(TestEnvironment("links"), trace=lines.append) as network:
            inner = World(network)
            async with inner.side("here") as here, inner.side("there", delegations(600)) as there:
                await connect(here, "there")
                await here.pull(there.peer)
        return [f"{float(line.split()[0]) - begin:.3f} {line.split()[2]}" for line in lines]

    assert await trace_of_a_run() == await trace_of_a_run()


async def test_one_bad_signature_costs_none_of_the_good_objects_and_is_not_asked_for_again(world: World) -> None:
    objects = delegations(10)
    bad = spoiled(delegation(99))
    store = TamperedStore(objects, bad)
    async with world.side("here") as here, world.side("there", store=store) as there:
        await connect(here, "there")
        with pytest.raises(RemoteError) as caught:
            await here.pull(there.peer)
        assert caught.value.code == "signature"
        assert await here.holds(objects)
        assert (await here.pull(there.peer)).asked == 0


class TamperedStore(MemoryStore):
    """A store that offers a bad object as well, as a hostile peer could."""

    def __init__(self, objects: list[SignedObject], bad: bytes) -> None:
        from bnw.objects.signed import trusted_object

        super().__init__(ROOMY)
        self._index.add(trusted_object(bad), None)
        for obj in objects:
            self._index.add(obj, None)
