"""What the memory network does for the simulator: it tells what became of every entry, and gathers them by ticks."""

from __future__ import annotations

from functools import partial

import anyio
import pytest

from bnw.sim.environment import SeededEnvironment
from bnw.sim.run import run_virtual
from bnw.transport.interface import PeerId, Stream
from bnw.transport.memory import Link, MemoryNetwork
from bnw.transport.memory.network import CUT_NOTICED
from bnw.transport.memory.queue import EventQueue
from bnw.wire.content_id import content_id
from bnw.wire.errors import RemoteError

PROTOCOL = "/test/quiet/1"


async def stay_quiet(stream: Stream) -> None:
    await stream.receive()
    await anyio.sleep_forever()


def trace_of(act: object, **options: object) -> list[str]:
    lines: list[str] = []

    async def run() -> None:
        async with (
            MemoryNetwork(SeededEnvironment(1, "links"), trace=lines.append, **options) as network,
            network.endpoint("a") as a,
            network.endpoint("b") as b,
        ):
            b.serve(PROTOCOL, stay_quiet)
            await act(network, a)

    run_virtual(1, run)
    return lines


def test_a_delivery_shows_hash_size_and_when_it_was_sent() -> None:
    async def act(network: MemoryNetwork, a) -> None:
        await a.dial("mem:b")
        stream = await a.open_stream(PeerId("b"), PROTOCOL)
        await stream.send(b"hello")
        await anyio.sleep(1)

    lines = trace_of(act, link=Link(latency=0.25))
    assert "0.250000 a>b dial sent 0.000000" in lines
    assert f"1.250000 a>b a#1 data {content_id(b'hello').hex()[:32]} 5 sent 1.000000" in lines


def test_what_a_cut_holds_shows_as_held_and_arrives_when_it_heals() -> None:
    async def act(network: MemoryNetwork, a) -> None:
        await a.dial("mem:b")
        stream = await a.open_stream(PeerId("b"), PROTOCOL)
        network.cut("a", "b")
        await stream.send(b"hello")
        await anyio.sleep(3)
        network.heal("a", "b")
        await anyio.sleep(1)

    lines = trace_of(act, link=Link(latency=0.25))
    shown = f"a#1 data {content_id(b'hello').hex()[:32]} 5"
    assert [line for line in lines if shown in line] == [
        f"1.250000 a held to b {shown}",
        f"4.000000 a>b {shown} sent 1.000000",
    ]


def test_a_dial_into_a_cut_shows_as_lost() -> None:
    async def act(network: MemoryNetwork, a) -> None:
        network.cut("a", "b")
        try:
            await a.dial("mem:b", timeout=1)
        except RemoteError:
            return

    assert "0.250000 a lost to b dial" in trace_of(act, link=Link(latency=0.25))


def test_what_reaches_somebody_who_has_hung_up_shows_as_dropped() -> None:
    async def act(network: MemoryNetwork, a) -> None:
        await a.dial("mem:b")
        stream = await a.open_stream(PeerId("b"), PROTOCOL)
        await stream.send(b"hello")
        network.disconnect("a", "b")
        await anyio.sleep(1)

    lines = trace_of(act, link=Link(latency=0.25))
    at = next(number for number, line in enumerate(lines) if " data " in line)
    assert lines[at + 1] == "1.250000 b drops it"


def test_with_a_tick_entries_arrive_at_its_multiples_in_the_order_of_their_sending() -> None:
    async def act(network: MemoryNetwork, a) -> None:
        await a.dial("mem:b")
        stream = await a.open_stream(PeerId("b"), PROTOCOL)
        for number in range(200):
            await stream.send(b"%d" % number)
            await anyio.sleep(0.0007)
        await anyio.sleep(1)

    lines = trace_of(act, link=Link(latency=0.02, jitter=0.05), tick=0.01)
    arrived = [line.split() for line in lines if " data " in line]
    assert all(line[0].endswith("0000") for line in arrived), "whole hundredths of a second"
    assert [line[4] for line in arrived] == [content_id(b"%d" % number).hex()[:32] for number in range(200)]


def test_a_queue_with_a_tick_never_makes_a_call_early_and_at_most_a_tick_late() -> None:
    async def act() -> list[tuple[float, float]]:
        queue = EventQueue(tick=0.001)
        made: list[tuple[float, float]] = []
        dues = [number * 0.000137 for number in range(2000)]
        for due in dues:
            queue.call_at(due, partial(lambda due: made.append((due, anyio.current_time())), due))
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(queue.run)
            await anyio.sleep(1)
            tasks.cancel_scope.cancel()
        return made

    made = run_virtual(1, act)
    assert [due for due, _ in made] == sorted(due for due, _ in made)
    assert len(made) == 2000
    assert all(-1e-9 <= at - due <= 0.001 + 1e-9 for due, at in made)


def test_an_answer_to_a_dial_that_comes_after_a_crash_connects_nobody() -> None:
    async def act(network: MemoryNetwork, a) -> None:
        async def dial() -> None:
            with pytest.raises(RemoteError):
                await a.dial("mem:b", timeout=2.0)

        b = network.endpoint_named("b")
        async with anyio.create_task_group() as group:
            group.start_soon(dial)
            await anyio.sleep(0.3)
            assert [info.peer for info in b.peers()] == ["a"], "b has said yes, and the answer is on its way"
            network.crash("a")
            await anyio.sleep(0.3)
            assert a.peers() == ()
        await anyio.sleep(CUT_NOTICED)
        assert b.peers() == (), "which notices it as it would any crash"

    trace_of(act, link=Link(latency=0.25))
