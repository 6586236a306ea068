"""What a node keeps blobs for, and what it lets go."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any, NamedTuple

import anyio
import pytest
import trio.testing

from bnw.blobs.plan import FetchPlan
from bnw.blobs.sources import Wanted
from bnw.inbox.payload import Payload
from bnw.invoke.handlers import Answer, Call
from bnw.invoke.policy import CallPolicy
from bnw.node.keeping import GRACE
from bnw.sim.node import SimulatedNode
from bnw.sim.world import World
from bnw.wire.content_id import ContentId, content_id
from bnw.wire.errors import LocalError
from bnw.wire.limits import DAY

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> tuple[str, dict[str, Any]]:
    return "trio", {"clock": trio.testing.MockClock(autojump_threshold=0)}


class Two(NamedTuple):
    provider: SimulatedNode
    requester: SimulatedNode


async def echo(call: Call) -> Answer:
    return Answer(call.input.data, "text/plain")


@pytest.fixture
async def two() -> AsyncIterator[Two]:
    async with World(seed=1) as world:
        provider = await world.start("provider")
        requester = await world.start("requester", peers=["provider"])
        await provider.node.publish("echo", b"opaque descriptor")
        await provider.node.provide("echo", echo, policy=CallPolicy(anyone=True))
        yield Two(provider, requester)


async def collected(*nodes: SimulatedNode) -> int:
    """How much goes in two collections with the time between that an unused blob has."""
    for node in nodes:
        await node.node.keeping.collect()
    for node in nodes:
        node.environment.clock_offset_ms += GRACE
    return sum([(await node.node.keeping.collect()).removed for node in nodes])


async def reasons(node: SimulatedNode, id: ContentId) -> str:
    return "; ".join(await node.node.keeping.reasons(id))


async def test_what_nothing_needs_goes_after_the_grace_and_not_before(two: Two) -> None:
    id = await two.requester.store.put_blob(b"of no use")
    first = await two.requester.node.keeping.collect()
    assert (first.removed, first.waiting, first.waiting_bytes) == (0, 1, 9)
    two.requester.environment.clock_offset_ms += GRACE - 1
    assert (await two.requester.node.keeping.collect()).removed == 0
    two.requester.environment.clock_offset_ms += 1
    dry = await two.requester.node.keeping.collect(dry_run=True)
    assert (dry.removed, dry.removed_bytes) == (1, 9)
    assert await two.requester.store.get_blob(id) == b"of no use"
    assert (await two.requester.node.keeping.collect()).removed == 1
    assert await two.requester.store.get_blob(id) is None


async def test_a_running_node_collects_by_itself(two: Two) -> None:
    id = await two.requester.store.put_blob(b"of no use")
    await anyio.sleep(3 * GRACE / 1000)
    assert await two.requester.store.get_blob(id) is None


async def test_what_was_added_stays_until_it_is_unpinned_also_over_a_crash(two: Two) -> None:
    id = await two.requester.node.add_blob(b"mine")
    assert "added by hand" in await reasons(two.requester, id)
    assert await collected(two.requester) == 0
    assert await two.requester.node.keepers.unpin(id) is True
    assert await two.requester.node.keepers.unpin(id) is False
    assert await collected(two.requester) == 1


async def test_only_what_is_here_can_be_pinned(two: Two) -> None:
    with pytest.raises(LocalError) as caught:
        await two.requester.node.keepers.pin(content_id(b"elsewhere"))
    assert caught.value.code == "blob-missing"


async def test_descriptors_are_kept_for_what_is_published_provided_followed_and_called(two: Two) -> None:
    descriptor = content_id(b"opaque descriptor")
    assert await reasons(two.provider, descriptor) == ("this identity publishes echo with it; this node provides echo")
    await two.requester.node.inspect("echo", patience=20)
    assert await reasons(two.requester, descriptor) == ""
    await two.requester.node.follow("echo")
    assert "followed" in await reasons(two.requester, descriptor)
    assert await collected(*two) == 0
    await two.requester.node.unfollow("echo")
    await two.requester.node.invoke("echo", Payload(b"hello", "text/plain"), patience=20)
    assert "call" in await reasons(two.requester, descriptor)
    assert await collected(*two) == 0


async def test_chunks_of_calls_are_kept_as_long_as_their_payloads_and_go_with_them(two: Two) -> None:
    result = await two.requester.node.invoke("echo", Payload(b"hello", "text/plain"), patience=20)
    assert result.status == "completed"
    before = [(await node.store.statistics()).blobs for node in two]
    assert await collected(*two) == 0
    assert [(await node.store.statistics()).blobs for node in two] == before == [2, 3]
    for node in two:
        node.environment.clock_offset_ms += 400 * DAY
        now = node.environment.now_ms()
        await node.store.remove_expired(now=now)
    await two.requester.node._requester.records.remove_old(now)
    await collected(*two)
    assert [(await node.store.statistics()).blobs for node in two] == [1, 0]


async def test_a_blob_that_is_being_fetched_is_kept_although_nothing_refers_to_it_yet(two: Two) -> None:
    id = await two.requester.store.put_blob(b"half of something")
    plan = FetchPlan([Wanted(id), Wanted(content_id(b"the other half"))], two.requester.node._fetcher._claims)
    assert "being fetched" in await reasons(two.requester, id)
    plan.close()
    assert await reasons(two.requester, id) == ""
