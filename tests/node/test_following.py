"""What is followed: kept, renewed, tried again within bounds, served while the publisher is away. Virtual time."""

from __future__ import annotations

import json
import math
from collections.abc import AsyncIterator, Callable
from typing import Any, NamedTuple

import anyio
import pytest
import trio.testing

from bnw.identity.keys import did_key
from bnw.node import followed, following
from bnw.node.follow_records import NO_PINS, FollowRecords
from bnw.node.followed import ABSENT, COMING, GIVEN_UP, WHOLE, Capability, FollowedCapability
from bnw.node.node import Node
from bnw.objects.signed import SignedObject
from bnw.sim.node import SimulatedNode
from bnw.sim.world import World
from bnw.wire.content_id import ContentId, content_id
from bnw.wire.errors import BnwError, LocalError

pytestmark = pytest.mark.anyio

NAME = "finance/lookup"
OPAQUE = b"\x00 a format that nobody here knows \xff"
INPUT = b'{"type":"object","required":["symbol"],"properties":{"symbol":{"type":"string","default":"IBM"}}}'
OUTPUT = b'{"type":"object","required":["price"]}'


@pytest.fixture
def anyio_backend() -> tuple[str, dict[str, Any]]:
    return "trio", {"clock": trio.testing.MockClock(autojump_threshold=0)}


class Three(NamedTuple):
    """The third node knows only the follower, and the publisher is a neighbour of the follower alone."""

    publisher: SimulatedNode
    follower: SimulatedNode
    third: SimulatedNode


@pytest.fixture
async def three() -> AsyncIterator[Three]:
    async with World(seed=1) as world:
        publisher = await world.start("publisher")
        follower = await world.start("follower", peers=["publisher"])
        yield Three(publisher, follower, world.add("third", peers=["follower"]))


def descriptor(title: str = "Lookup", *, input_schema: bytes = INPUT) -> bytes:
    def side(schema: bytes) -> dict[str, Any]:
        linked = content_id(schema).hex()
        return {"media_types": ["application/json"], "schema": linked, "max_bytes": 1024, "privacy": "either"}

    operation = {"name": "lookup", "input": side(input_schema), "output": side(OUTPUT)}
    profile = "bnw.capability-profile/1"
    return json.dumps({"profile": profile, "name": title, "description": "", "operation": operation}).encode()


async def publish(node: Node, title: str = "Lookup", *, name: str = NAME, input_schema: bytes = INPUT) -> SignedObject:
    for schema in (input_schema, OUTPUT):
        await node.add_blob(schema)
    return await node.publish(name, descriptor(title, input_schema=input_schema))


def states(node: Node) -> dict[str, str]:
    return {capability.name: capability.state for view in node.follows() for capability in view.capabilities}


def the_one(node: Node) -> FollowedCapability:
    [view] = node.follows()
    [capability] = view.capabilities
    return capability


async def wait_for(condition: Callable[[], bool], seconds: float = 60) -> None:
    """Virtual seconds: they cost nothing, and pass only when there is nothing else to do."""
    with anyio.fail_after(seconds):
        while not condition():
            await anyio.sleep(0.1)


async def fault(call: Any) -> str:
    with pytest.raises(BnwError) as caught:
        await call
    return caught.value.code


# Serving in the publisher's place


async def test_a_third_node_gets_all_from_the_follower_when_the_publisher_has_stopped(three: Three) -> None:
    manifest = await publish(three.publisher.node)
    view = await three.follower.node.follow(NAME)
    assert [capability.state for capability in view.capabilities] == [WHOLE]
    await three.publisher.stop()
    await three.third.start()
    seen = await three.third.node.inspect(NAME, patience=20)
    assert seen.manifest.id == manifest.id
    assert seen.descriptor == descriptor()
    assert dict(seen.schemas) == {content_id(INPUT): INPUT, content_id(OUTPUT): OUTPUT}
    assert seen.missing == ()
    assert seen.input_template is not None and json.loads(seen.input_template) == {"symbol": "IBM"}


async def test_without_a_follower_the_third_node_gets_the_manifest_only(three: Three) -> None:
    await publish(three.publisher.node)
    await wait_for_catalog(three.follower)
    await three.publisher.stop()
    await three.third.start()
    assert await fault(three.third.node.inspect(NAME, patience=20)) == "blob-not-found"


async def test_a_descriptor_of_an_unknown_format_is_followed_as_opaque_bytes(three: Three) -> None:
    await three.publisher.node.publish(NAME, OPAQUE)
    await three.follower.node.follow(NAME)
    await three.publisher.stop()
    await three.third.start()
    seen = await three.third.node.inspect(NAME, patience=20)
    assert (seen.descriptor, seen.description, dict(seen.schemas), seen.input_template) == (OPAQUE, None, {}, None)


# Later versions


async def test_a_new_version_is_fetched_in_the_background_and_the_old_one_released(three: Three) -> None:
    await publish(three.publisher.node)
    await three.follower.node.follow(NAME)
    other = INPUT.replace(b"IBM", b"MSFT")
    second = await publish(three.publisher.node, "Second", input_schema=other)
    await wait_for(lambda: the_one(three.follower.node).whole_manifest == second.id)
    expected = {content_id(data) for data in (descriptor("Second", input_schema=other), other, OUTPUT)}
    assert set(the_one(three.follower.node).blobs) == expected
    assert await FollowRecords(three.follower.store).pinned() == expected


async def test_the_old_version_stays_pinned_until_the_new_one_is_whole(three: Three) -> None:
    first = await publish(three.publisher.node)
    await three.follower.node.follow(NAME)
    lost = b'{"type":"string"}'
    new = descriptor(input_schema=lost)
    # As if the schema had got lost after publishing: the node itself refuses to publish without it.
    await three.publisher.node.add_blob(lost)
    second = await three.publisher.node.publish(NAME, new)
    await three.publisher.store.delete_blob(content_id(lost))
    await wait_for(lambda: the_one(three.follower.node).attempts > 0)
    capability = the_one(three.follower.node)
    assert capability.manifest is not None
    assert (capability.state, capability.manifest.id, capability.whole_manifest) == (COMING, second.id, first.id)
    assert capability.problem is not None and content_id(lost).hex() in capability.problem
    old = {content_id(descriptor()), content_id(INPUT), content_id(OUTPUT)}
    assert set(capability.blobs) == old | {content_id(new), content_id(lost)}
    await three.publisher.node.add_blob(lost)
    await wait_for(lambda: the_one(three.follower.node).state == WHOLE)
    assert not set(the_one(three.follower.node).blobs) & {content_id(descriptor()), content_id(INPUT)}


async def test_a_restart_changes_nothing_and_a_version_missed_meanwhile_is_fetched(three: Three) -> None:
    first = await publish(three.publisher.node)
    await three.follower.node.follow(NAME)
    await three.follower.stop()
    pinned = await FollowRecords(three.follower.store).pinned()
    assert pinned == {content_id(descriptor()), content_id(INPUT), content_id(OUTPUT)}
    second = await publish(three.publisher.node, "Second")
    assert second.id != first.id
    await three.follower.start()
    await wait_for(lambda: the_one(three.follower.node).whole_manifest == second.id)


async def test_a_withdrawn_capability_is_absent_and_what_is_pinned_stays_for_the_user_to_let_go(three: Three) -> None:
    manifest = await publish(three.publisher.node)
    await three.follower.node.follow(NAME)
    await three.publisher.node.withdraw(NAME)
    await wait_for(lambda: states(three.follower.node) == {NAME: ABSENT})
    assert the_one(three.follower.node).whole_manifest == manifest.id
    again = await publish(three.publisher.node)
    await wait_for(lambda: states(three.follower.node) == {NAME: WHOLE})
    assert the_one(three.follower.node).whole_manifest == again.id


# Pins


async def test_pins_are_written_before_the_blobs_they_pin_arrive(three: Three, monkeypatch: pytest.MonkeyPatch) -> None:
    await publish(three.publisher.node)
    store, arrived = three.follower.store, []
    put_blob = store.put_blob

    async def put(data: bytes) -> ContentId:
        arrived.append(content_id(data) in await FollowRecords(store).pinned())
        return await put_blob(data)

    monkeypatch.setattr(store, "put_blob", put)
    await three.follower.node.follow(NAME)
    assert arrived == [True, True, True]


async def test_unfollowing_releases_what_nothing_else_pins(three: Three) -> None:
    await publish(three.publisher.node)
    await publish(three.publisher.node, "Other", name="other", input_schema=OUTPUT)
    node, records = three.follower.node, FollowRecords(three.follower.store)
    for name in (NAME, "other"):
        await node.follow(name)
    await node.unfollow(NAME)
    assert await records.pinned() == {content_id(descriptor("Other", input_schema=OUTPUT)), content_id(OUTPUT)}
    await node.unfollow("other")
    assert await records.pinned() == frozenset()
    assert (await records.follows(), await records.pins(), node.follows()) == ([], {}, [])


# What changes in the middle of an attempt


@pytest.fixture
def stuck(three: Three, monkeypatch: pytest.MonkeyPatch) -> Callable[[SignedObject], anyio.Event]:
    """Lets the follower's attempts at one manifest wait for an event, which it returns."""

    def stick(manifest: SignedObject) -> anyio.Event:
        follower = three.follower.node._following
        bring, released = follower._bring, anyio.Event()

        async def wait_and_bring(wanted: SignedObject, **options: Any) -> Any:
            if wanted.id == manifest.id:
                await released.wait()
            return await bring(wanted, **options)

        monkeypatch.setattr(follower, "_bring", wait_and_bring)
        return released

    return stick


async def test_a_newer_version_ends_the_attempt_at_the_older(three: Three, stuck: Any) -> None:
    stuck(await publish(three.publisher.node))
    await three.follower.node.follow(NAME, patience=1)
    second = await publish(three.publisher.node, "Second")
    await wait_for(lambda: the_one(three.follower.node).whole_manifest == second.id)


async def test_unfollowing_ends_an_attempt_and_nothing_is_pinned_after_it(three: Three, stuck: Any) -> None:
    released = stuck(await publish(three.publisher.node))
    await three.follower.node.follow(NAME, patience=1)
    assert await FollowRecords(three.follower.store).pinned() == {content_id(descriptor())}
    await three.follower.node.unfollow(NAME)
    released.set()
    await anyio.sleep(60)
    assert await FollowRecords(three.follower.store).pinned() == frozenset()


async def test_a_failing_store_delays_following_and_does_not_end_the_node(
    three: Three, monkeypatch: pytest.MonkeyPatch
) -> None:
    await publish(three.publisher.node)
    await three.follower.node.follow(NAME)

    async def fail(slot: bytes) -> None:
        raise LocalError("store-failed", "no")

    with monkeypatch.context() as patch:
        patch.setattr(three.follower.store, "held_in_slot", fail)
        second = await publish(three.publisher.node, "Second")
        await anyio.sleep(10)
        assert the_one(three.follower.node).whole_manifest != second.id
    await wait_for(lambda: the_one(three.follower.node).whole_manifest == second.id, following.FAULT_PAUSE + 10)


# Identities


async def test_following_an_identity_keeps_all_that_it_publishes_now_and_later(three: Three) -> None:
    await publish(three.publisher.node, name="a")
    await wait_for_catalog(three.follower)
    view = await three.follower.node.follow(did_key(three.publisher.identity))
    assert [(entry.name, entry.state) for entry in view.capabilities] == [("a", WHOLE)]
    await publish(three.publisher.node, name="b")
    await wait_for(lambda: states(three.follower.node) == {"a": WHOLE, "b": WHOLE})
    await three.publisher.node.withdraw("a")
    await wait_for(lambda: states(three.follower.node) == {"b": WHOLE})
    assert list(await FollowRecords(three.follower.store).pins()) == [three.publisher.identity + b"b"]


async def test_an_identity_can_be_followed_before_anything_is_known_of_it(three: Three) -> None:
    assert (await three.follower.node.follow(did_key(three.publisher.identity))).capabilities == ()
    await publish(three.publisher.node)
    await wait_for(lambda: states(three.follower.node) == {NAME: WHOLE})


async def test_of_an_identity_only_so_many_capabilities_are_kept_and_renaming_gains_no_room(
    three: Three, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(following, "MAX_OF_IDENTITY", 2)
    await three.follower.node.follow(did_key(three.publisher.identity))
    for name in ("x", "y"):
        await publish(three.publisher.node, name=name)
    await wait_for(lambda: states(three.follower.node) == {"x": WHOLE, "y": WHOLE})
    await publish(three.publisher.node, name="a")
    await wait_for(lambda: three.follower.node.follows()[0].left_out == 1)
    assert states(three.follower.node) == {"x": WHOLE, "y": WHOLE}


# Bounds


async def test_the_number_of_follows_is_bounded(three: Three, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(following, "MAX_FOLLOWS", 2)
    for name in ("a", "b", "c"):
        await publish(three.publisher.node, name=name)
    await three.follower.node.follow("a")
    await three.follower.node.follow("b")
    assert await fault(three.follower.node.follow("c")) == "too-many-follows"
    await three.follower.node.follow("b")
    await three.follower.node.unfollow("a")
    await three.follower.node.follow("c")
    assert states(three.follower.node) == {"b": WHOLE, "c": WHOLE}


async def test_what_nobody_gives_is_given_up_after_a_bounded_number_of_attempts(three: Three) -> None:
    await publish(three.publisher.node)
    await wait_for_catalog(three.follower)
    await three.publisher.stop()
    began = anyio.current_time()
    view = await three.follower.node.follow(NAME)
    assert [entry.state for entry in view.capabilities] == [COMING]
    await wait_for(lambda: states(three.follower.node) == {NAME: GIVEN_UP}, seconds=4 * 3600)
    assert the_one(three.follower.node).attempts == followed.MAX_ATTEMPTS
    assert 3600 < anyio.current_time() - began < 3 * 3600
    await anyio.sleep(24 * 3600)
    assert the_one(three.follower.node).attempts == followed.MAX_ATTEMPTS


async def test_what_was_given_up_gets_a_chance_when_the_publisher_comes_back(
    three: Three, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(followed, "MAX_ATTEMPTS", 2)
    await publish(three.publisher.node)
    await wait_for_catalog(three.follower)
    await three.publisher.stop()
    await three.follower.node.follow(NAME)
    await wait_for(lambda: states(three.follower.node) == {NAME: GIVEN_UP})
    await three.publisher.start()
    await wait_for(lambda: states(three.follower.node) == {NAME: WHOLE}, seconds=300)


async def test_a_publisher_of_ever_new_versions_is_followed_at_a_bounded_rate(
    three: Three, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(three.follower.node._following._limiter, "_burst", 3.0)
    await publish(three.publisher.node, "0")
    await three.follower.node.follow(NAME)
    fetched = set()
    for number in range(1, 30):
        await publish(three.publisher.node, str(number))
        await anyio.sleep(4)
        fetched.add(the_one(three.follower.node).whole_manifest)
    assert len(fetched) <= 3 + 2, "three at once and one a minute, in two minutes"
    await wait_for(lambda: the_one(three.follower.node).state == WHOLE, seconds=120)


# Names


async def test_a_follow_ends_by_name_by_publisher_and_name_and_by_manifest(three: Three) -> None:
    node, did = three.follower.node, did_key(three.publisher.identity)
    manifest = await publish(three.publisher.node)
    for reference in (NAME, f"{did}/{NAME}", manifest.id.hex()):
        await node.follow(reference)
        assert (await node.unfollow(reference)).follow.reference == f"{did}/{NAME}"
        assert await fault(node.unfollow(reference)) == "not-followed"
    await node.follow(did)
    assert await fault(node.unfollow(NAME)) == "not-followed", "it is followed only with all the others"
    assert (await node.unfollow(did)).follow.name is None


async def test_a_name_that_two_publishers_use_must_be_told_apart() -> None:
    async with World(seed=2) as world:
        publishers = [await world.start(name) for name in ("one", "two")]
        follower = (await world.start("follower", peers=["one", "two"])).node
        for publisher in publishers:
            await publish(publisher.node)
        await wait_for_catalog(world.nodes["follower"], count=2)
        assert await fault(follower.follow(NAME)) == "ambiguous-capability"
        references = [f"{did_key(publisher.identity)}/{NAME}" for publisher in publishers]
        for reference in references:
            await follower.follow(reference)
        assert await fault(follower.unfollow(NAME)) == "ambiguous-capability"
        await follower.unfollow(references[0])
        assert (await follower.unfollow(NAME)).follow.reference == references[1]


async def test_what_this_node_publishes_itself_needs_no_following(three: Three) -> None:
    await publish(three.publisher.node)
    assert await fault(three.publisher.node.follow(NAME)) == "own-capability"
    assert await fault(three.publisher.node.follow(did_key(three.publisher.identity))) == "own-capability"
    assert await fault(three.follower.node.follow("no/such", patience=1)) == "unknown-capability"
    assert await fault(three.follower.node.follow("did:key:nonsense")) == "did-key"


async def wait_for_catalog(node: SimulatedNode, count: int = 1) -> None:
    with anyio.fail_after(60):
        while len(await node.node.entries()) < count:
            await anyio.sleep(0.1)


# One capability, without a network


async def test_pauses_double_up_to_the_longest_and_end_with_the_last_attempt(three: Three) -> None:
    manifest = await publish(three.publisher.node)
    capability = Capability(three.publisher.identity, NAME, NO_PINS)
    capability.turn_to(manifest, 0.0)
    pauses = []
    while capability.state == COMING:
        now = capability.due
        capability.failed("no", now, variation=0.5)
        pauses.append(capability.due - now)
    assert pauses == [2, 4, 8, 16, 32, 64, 128, 256, 512, *[600] * 10, math.inf]
    assert capability.state == GIVEN_UP


async def test_a_chance_comes_no_sooner_than_its_pause_after_an_attempt(three: Three) -> None:
    capability = Capability(three.publisher.identity, NAME, NO_PINS)
    assert not capability.give_chance(0.0)
    capability.turn_to(await publish(three.publisher.node), 0.0)
    capability.attempts, capability.tried_at = followed.MAX_ATTEMPTS - 1, 100.0
    capability.failed("no", 100.0, variation=0.0)
    assert capability.state == GIVEN_UP
    assert capability.give_chance(101.0)
    assert capability.due == 100.0 + followed.CHANCE_PAUSE
    assert not capability.give_chance(102.0)
    capability.succeeded()
    assert not capability.give_chance(1000.0)
