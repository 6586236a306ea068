"""When pulls happen: soon after a peer connects or hints, now and then otherwise, and seldom after refusals."""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import anyio
import pytest
from sync_world import NOW, ROOMY, TestEnvironment, World, delegation, delegations, open_world

from bnw.objects.rules import CATALOG
from bnw.objects.signed import SignedObject
from bnw.store.memory import MemoryStore
from bnw.sync import puller, scheduler, server
from bnw.sync.protocol import SYNC_PROTOCOL
from bnw.sync.scheduler import SyncScheduler
from bnw.transport.interface import Stream, Transport
from bnw.transport.message_stream import MessageStream
from bnw.wire.limits import MINUTE, SECOND

pytestmark = pytest.mark.anyio


@dataclass
class Node:
    """A peer with a scheduler."""

    transport: Transport
    store: MemoryStore
    sync: SyncScheduler
    news: list[SignedObject] = field(default_factory=list)

    async def publish(self, *objects: SignedObject) -> None:
        await self.store.put_objects(objects, now=NOW)
        self.sync.catalog_changed()

    async def count(self) -> int:
        return (await self.store.scope_summary(CATALOG, now=NOW)).count


@pytest.fixture
async def world() -> AsyncIterator[World]:
    async with open_world() as opened:
        yield opened


@asynccontextmanager
async def node(world: World, name: str, objects: Sequence[SignedObject] = ()) -> AsyncIterator[Node]:
    store = MemoryStore(ROOMY)
    await store.put_objects(objects, now=NOW)
    async with world.network.endpoint(name) as transport, anyio.create_task_group() as tasks:
        news: list[SignedObject] = []
        sync = SyncScheduler(transport, store, TestEnvironment(name), on_news=news.append)
        tasks.start_soon(sync.run)
        await anyio.sleep(0)
        yield Node(transport, store, sync, news)
        tasks.cancel_scope.cancel()


async def test_two_peers_that_connect_soon_hold_the_same(world: World) -> None:
    common = delegations(30)
    async with node(world, "a", common[:20]) as a, node(world, "b", common[10:]) as b:
        await a.transport.dial("mem:b")
        await anyio.sleep(0.05)
        await a.sync.wait_for_first_pulls()
        assert await a.count() == 30
        await anyio.sleep(1)
        assert await b.count() == 30
        assert (len(a.news), len(b.news)) == (10, 10)


async def test_news_spreads_through_a_chain_by_hints_within_seconds(world: World) -> None:
    async with node(world, "a") as a, node(world, "b") as b, node(world, "c") as c:
        await a.transport.dial("mem:b")
        await b.transport.dial("mem:c")
        await anyio.sleep(5)
        await a.publish(delegation(1))
        await anyio.sleep(4)
        assert await c.count() == 1
        assert len(c.news) == 1


async def test_what_no_hint_told_of_is_found_by_the_periodic_pull(world: World) -> None:
    async with node(world, "a") as a, node(world, "b") as b:
        await a.transport.dial("mem:b")
        await anyio.sleep(5)
        await a.store.put_objects([delegation(1)], now=NOW)
        await anyio.sleep(1.5 * scheduler.PULL_PERIOD + 1)
        assert await b.count() == 1


async def test_a_pull_that_is_wished_for_comes_at_once(world: World) -> None:
    async with node(world, "a") as a, node(world, "b") as b:
        await a.transport.dial("mem:b")
        await anyio.sleep(5)
        await a.store.put_objects([delegation(1)], now=NOW)
        b.sync.pull_soon()
        await anyio.sleep(0.5)
        assert await b.count() == 1


async def test_a_catalog_larger_than_one_session_allows_is_pulled_in_several_at_once(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (puller, server):
        monkeypatch.setattr(module, "MAX_WANTED", 100)
    async with node(world, "a", delegations(450)) as a, node(world, "b") as b:
        await a.transport.dial("mem:b")
        await anyio.sleep(6)
        assert await b.count() == 450


class Refuser:
    """Answers every session with `answer`, and counts them."""

    def __init__(self, answer: dict[str, Any] | None) -> None:
        self._answer = answer
        self.times: list[float] = []

    async def __call__(self, stream: Stream) -> None:
        messages = MessageStream(stream)
        message = await messages.receive()
        if message is not None and message["type"] == "open":
            self.times.append(anyio.current_time())
            if self._answer is not None:
                await messages.send(self._answer)


REFUSALS: list[dict[str, Any] | None] = [
    {"type": "refused", "code": "busy", "retry_after": 0},
    {"type": "refused", "code": "scope", "retry_after": 600},
    {"type": "reconcile", "message": b"\x60"},
    {"type": "nonsense"},
    None,
]


@pytest.mark.parametrize("answer", REFUSALS, ids=["busy", "scope", "version", "nonsense", "closed"])
async def test_a_peer_that_refuses_cannot_set_off_a_storm(world: World, answer: dict[str, Any] | None) -> None:
    """Neither by hinting all the time nor by being wished for."""
    refuser = Refuser(answer)
    async with node(world, "a") as a, world.network.endpoint("b") as b:
        b.serve(SYNC_PROTOCOL, refuser)
        peer = await b.dial("mem:a")
        begin = anyio.current_time()
        hint = {"type": "hint", "version": 1, "scope": CATALOG, "count": 5, "fingerprint": b"\x07" * 32}
        while anyio.current_time() < begin + 3600:
            messages = MessageStream(await b.open_stream(peer, SYNC_PROTOCOL))
            await messages.send(hint)
            await messages._stream.aclose()
            a.sync.pull_soon()
            await anyio.sleep(5)
        waits = [later - earlier for earlier, later in itertools.pairwise(refuser.times)]
        assert len(refuser.times) <= 15
        assert all(later > earlier * 0.6 for earlier, later in itertools.pairwise(waits)), waits


async def test_coming_back_does_not_shorten_the_wait(world: World) -> None:
    refuser = Refuser({"type": "refused", "code": "scope", "retry_after": 600})
    async with node(world, "a") as a, world.network.endpoint("b") as b:
        b.serve(SYNC_PROTOCOL, refuser)
        for _ in range(50):
            await b.dial("mem:a")
            await anyio.sleep(5)
            await a.sync.wait_for_first_pulls()
            world.network.disconnect("a", "b")
            await anyio.sleep(1)
        assert len(refuser.times) == 1


async def test_hints_that_lead_to_nothing_are_followed_less_often(world: World) -> None:
    async with node(world, "a") as a, world.side("b") as b:
        pulls = 0
        original = b.index.at

        async def counting(now: int):
            nonlocal pulls
            pulls += 1
            return await original(now)

        b.index.at = counting  # type: ignore[method-assign]  # spied on
        peer = await b.transport.dial("mem:a")
        hint = {"type": "hint", "version": 1, "scope": CATALOG, "count": 5, "fingerprint": b"\x07" * 32}
        for _ in range(200):
            messages = MessageStream(await b.transport.open_stream(peer, SYNC_PROTOCOL))
            await messages.send(hint)
            await messages._stream.aclose()
            await anyio.sleep(0.5)
        assert await a.count() == 0
        assert pulls <= 100 / scheduler.MAX_IDLE_INTERVAL + 4


async def test_hints_about_what_is_here_already_lead_to_no_pull(world: World) -> None:
    async with node(world, "a", delegations(5)) as a, node(world, "b", delegations(5)) as b:
        await a.transport.dial("mem:b")
        await anyio.sleep(5)
        before = anyio.current_time()
        due = b.sync._peers[a.transport.peer_id].due
        a.sync.catalog_changed()
        await anyio.sleep(2)
        assert not due.is_set()
        assert anyio.current_time() - before < 5


async def test_objects_over_quota_everywhere_settle_instead_of_being_fetched_in_every_round(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The weak point of comparing sets: two peers whose sets can never become equal."""
    fetched = 0
    original = server._Session._send_objects

    async def counting(session: Any, ids: Any) -> None:
        nonlocal fetched
        fetched += len(ids)
        await original(session, ids)

    monkeypatch.setattr(server._Session, "_send_objects", counting)
    from bnw.store.interface import Quota

    async with node(world, "a", delegations(100)) as a, world.network.endpoint("b") as transport:
        store = MemoryStore(Quota(objects=50))
        sync = SyncScheduler(transport, store, TestEnvironment("b"), on_news=lambda obj: None)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(sync.run)
            await transport.dial("mem:a")
            await anyio.sleep(9 * MINUTE / SECOND)
            assert await a.count() == 100
            assert fetched == 100
            tasks.cancel_scope.cancel()
