"""Gossip: what the transport contract promises, for both implementations."""

from __future__ import annotations

import itertools
from contextlib import AsyncExitStack

import anyio
import pytest
from worlds import TOPIC, Listener, World, connect, until

from bnw.transport.bounds import MAX_GOSSIP_MESSAGE
from bnw.transport.interface import PeerId, Transport, Verdict
from bnw.wire.errors import LocalError

pytestmark = pytest.mark.anyio


async def line(
    world: World, stack: AsyncExitStack, verdicts: tuple[Verdict, ...]
) -> tuple[list[Transport], list[Listener]]:
    """Endpoints in a line, each connected to the next, each with a listener that always gives its verdict."""
    endpoints = [await stack.enter_async_context(world.endpoint(f"n{n}")) for n in range(len(verdicts))]
    listeners = [await Listener.at(e, v) for e, v in zip(endpoints, verdicts, strict=True)]
    for one, other in itertools.pairwise(endpoints):
        await connect(one, other)
    await warm_up(endpoints, listeners)
    return endpoints, listeners


async def warm_up(endpoints: list[Transport], listeners: list[Listener]) -> None:
    """Publish from each endpoint until its neighbours hear it: then everybody knows who is in the topic."""
    for number, endpoint in enumerate(endpoints):
        neighbours = [listeners[n] for n in (number - 1, number + 1) if 0 <= n < len(endpoints)]
        attempt = 0
        while not all(any(data.startswith(b"warm %d " % number) for data in n.judged) for n in neighbours):
            await endpoint.publish(TOPIC, b"warm %d %d" % (number, attempt))
            attempt += 1
            await anyio.sleep(0.02)
    for listener in listeners:
        listener.judged.clear()
        listener.delivered.clear()


def without_warm_up(messages: list[bytes]) -> list[bytes]:
    return [message for message in messages if not message.startswith(b"warm ")]


ACCEPTING = (Verdict.ACCEPT,) * 3


async def test_a_message_reaches_everybody_over_a_line_of_three(world: World) -> None:
    async with AsyncExitStack() as stack:
        (a, b, _), (_, at_b, at_c) = await line(world, stack, ACCEPTING)
        await a.publish(TOPIC, b"news")
        await until(lambda: b"news" in at_b.delivered and b"news" in at_c.delivered)
        assert at_c.forwarders[at_c.delivered.index(b"news") - len(at_c.delivered)] == b.peer_id


async def test_the_publisher_does_not_hear_itself(world: World) -> None:
    async with AsyncExitStack() as stack:
        (a, *_), (at_a, _, at_c) = await line(world, stack, ACCEPTING)
        await a.publish(TOPIC, b"my own")
        await until(lambda: b"my own" in at_c.delivered)
        assert b"my own" not in at_a.judged


@pytest.mark.parametrize("verdict", [Verdict.REJECT, Verdict.IGNORE])
async def test_what_is_not_accepted_is_neither_delivered_nor_forwarded(world: World, verdict: Verdict) -> None:
    async with AsyncExitStack() as stack:
        (a, *_), (_, at_b, at_c) = await line(world, stack, ACCEPTING)
        at_b.verdict = verdict
        await a.publish(TOPIC, b"unwanted")
        await until(lambda: b"unwanted" in at_b.judged)
        at_b.verdict = Verdict.ACCEPT
        await a.publish(TOPIC, b"wanted")
        await until(lambda: b"wanted" in at_c.delivered)
        assert b"unwanted" not in at_b.delivered
        assert b"unwanted" not in at_c.judged


async def test_one_object_from_two_publishers_is_one_message(world: World) -> None:
    async with AsyncExitStack() as stack:
        (a, _, c), (_, at_b, _) = await line(world, stack, ACCEPTING)
        await a.publish(TOPIC, b"the same")
        await c.publish(TOPIC, b"the same")
        await a.publish(TOPIC, b"the same")
        await a.publish(TOPIC, b"last a")
        await c.publish(TOPIC, b"last c")
        await until(lambda: {b"last a", b"last c"} <= set(at_b.delivered))
        assert at_b.judged.count(b"the same") == 1


async def test_in_a_ring_each_node_judges_a_message_once(world: World) -> None:
    async with AsyncExitStack() as stack:
        endpoints, listeners = await line(world, stack, ACCEPTING)
        await connect(endpoints[2], endpoints[0])
        await endpoints[0].publish(TOPIC, b"round")
        await endpoints[0].publish(TOPIC, b"and round")
        await until(lambda: all(b"and round" in at.delivered for at in listeners[1:]))
        assert [at.judged.count(b"round") for at in listeners] == [0, 1, 1]


async def test_a_burst_of_two_hundred_is_delivered_whole(world: World) -> None:
    async with AsyncExitStack() as stack:
        (a, *_), (_, at_b, at_c) = await line(world, stack, ACCEPTING)
        burst = [b"burst %d" % n for n in range(200)]
        for data in burst:
            await a.publish(TOPIC, data)
        await until(lambda: len(without_warm_up(at_c.delivered)) >= 200)
        assert without_warm_up(at_b.delivered) == burst, "in order over one hop"
        assert sorted(without_warm_up(at_c.delivered)) == sorted(burst)


async def test_five_hundred_large_messages_survive_a_slow_validator(world: World) -> None:
    async with AsyncExitStack() as stack:
        a = await stack.enter_async_context(world.endpoint("a"))
        b = await stack.enter_async_context(world.endpoint("b"))
        got: set[bytes] = set()

        async def take_time(peer: PeerId, data: bytes) -> Verdict:
            if not data.startswith(b"warm"):
                await anyio.sleep(0.001)
            return Verdict.ACCEPT

        async def note(peer: PeerId, data: bytes) -> None:
            got.add(data[:8])

        await b.subscribe(TOPIC, take_time, note)
        await connect(a, b)
        attempt = 0
        while not got:
            await a.publish(TOPIC, b"warm%04d" % attempt)
            attempt += 1
            await anyio.sleep(0.02)
        for number in range(500):
            await a.publish(TOPIC, b"%08d" % number + bytes(8_000))
        await until(lambda: sum(not data.startswith(b"warm") for data in got) == 500, timeout=20)


async def test_a_burst_larger_than_all_queues_is_paced_and_not_lost(world: World) -> None:
    async with AsyncExitStack() as stack:
        (a, _), (_, at_b) = await line(world, stack, ACCEPTING[:2])
        for number in range(600):
            await a.publish(TOPIC, b"%08d" % number + bytes(60_000))
        await until(lambda: len(without_warm_up(at_b.delivered)) >= 600)


@pytest.mark.parametrize("where", ["validator", "handler"])
async def test_code_of_ours_that_raises_loses_one_message_and_no_more(
    world: World, where: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with AsyncExitStack() as stack:
        (a, *_), (_, at_b, at_c) = await line(world, stack, ACCEPTING)

        def stumble(data: bytes) -> None:
            if data == b"bad luck":
                raise ZeroDivisionError

        if where == "validator":
            at_b.when_judging = stumble
        else:
            at_b.when_handling = stumble
        await a.publish(TOPIC, b"bad luck")
        await a.publish(TOPIC, b"good luck")
        await until(lambda: b"good luck" in at_b.delivered and b"good luck" in at_c.delivered)
        assert b"bad luck" not in at_b.delivered
        assert (b"bad luck" in at_c.delivered) == (where == "handler"), "a validator that raises accepts nothing"
        assert "ZeroDivisionError" in caplog.text


async def test_other_topics_are_not_heard(world: World) -> None:
    async with AsyncExitStack() as stack:
        (a, *_), (_, at_b, _) = await line(world, stack, ACCEPTING)
        await a.publish("/bnw/1/other/catalog", b"elsewhere")
        await a.publish(TOPIC, b"here")
        await until(lambda: b"here" in at_b.delivered)
        assert b"elsewhere" not in at_b.judged


async def test_one_can_publish_to_a_topic_without_subscribing(world: World) -> None:
    async with world.endpoint("a") as a, world.endpoint("b") as b:
        at_b = await Listener.at(b)
        await connect(a, b)
        attempt = 0
        while not at_b.delivered:
            await a.publish(TOPIC, b"from outside %d" % attempt)
            attempt += 1
            await anyio.sleep(0.02)


async def test_a_peer_that_connects_later_hears_what_comes_then(world: World) -> None:
    async with AsyncExitStack() as stack:
        endpoints, _ = await line(world, stack, ACCEPTING)
        late = await stack.enter_async_context(world.endpoint("late"))
        at_late = await Listener.at(late)
        await connect(late, endpoints[2])
        attempt = 0
        while not at_late.delivered:
            await endpoints[0].publish(TOPIC, b"for the late %d" % attempt)
            attempt += 1
            await anyio.sleep(0.02)


async def test_gossip_resumes_after_a_disconnection(world: World) -> None:
    async with AsyncExitStack() as stack:
        (a, b, _), (_, at_b, _) = await line(world, stack, ACCEPTING)
        await a.disconnect(b.peer_id)
        await until(lambda: a.peer_id not in {info.peer for info in b.peers()})
        await connect(b, a)
        attempt = 0
        while not any(data.startswith(b"again") for data in at_b.delivered):
            await a.publish(TOPIC, b"again %d" % attempt)
            attempt += 1
            await anyio.sleep(0.02)


async def test_the_largest_message_passes_and_a_larger_one_is_the_callers_fault(world: World) -> None:
    async with AsyncExitStack() as stack:
        (a, *_), (_, _, at_c) = await line(world, stack, ACCEPTING)
        largest = bytes(MAX_GOSSIP_MESSAGE)
        await a.publish(TOPIC, largest)
        await until(lambda: largest in at_c.delivered)
        with pytest.raises(LocalError) as caught:
            await a.publish(TOPIC, largest + b"!")
        assert caught.value.code == "too-large"


async def test_a_topic_is_subscribed_to_once(world: World) -> None:
    async with world.endpoint("a") as a:
        await Listener.at(a)
        with pytest.raises(LocalError) as caught:
            await Listener.at(a)
        assert caught.value.code == "subscribed"
