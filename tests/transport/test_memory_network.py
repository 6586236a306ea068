"""The memory network: virtual time, links, cuts, and that a seed decides everything."""

from __future__ import annotations

from typing import Any

import anyio
import pytest
import trio.testing
from trio._core import _run as trio_scheduler
from worlds import ECHO, TOPIC, Listener, SeededEnvironment, ask_echo, echo, read_all

from bnw.transport.interface import PeerConnected, PeerDisconnected, PeerId, Stream, TransportEvent
from bnw.transport.memory import Link, MemoryNetwork
from bnw.transport.memory.network import CUT_NOTICED
from bnw.wire.errors import LocalError, RemoteError

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> tuple[str, dict[str, Any]]:
    return "trio", {"clock": trio.testing.MockClock(autojump_threshold=0)}


async def test_dialling_takes_a_round_trip_of_virtual_time() -> None:
    async with (
        MemoryNetwork(SeededEnvironment(), link=Link(latency=30.0)) as network,
        network.endpoint("a") as a,
        network.endpoint("b"),
    ):
        started = anyio.current_time()
        await a.dial("mem:b", timeout=100)
        assert anyio.current_time() - started == pytest.approx(60)


async def test_bandwidth_delays_what_is_large() -> None:
    async with (
        MemoryNetwork(SeededEnvironment(), link=Link(latency=0, bandwidth=1_000_000)) as network,
        network.endpoint("a") as a,
        network.endpoint("b") as b,
    ):
        b.serve("/test/sink/1", lambda stream: _sink(stream))
        await a.dial("mem:b")
        stream = await a.open_stream(PeerId("b"), "/test/sink/1")
        started = anyio.current_time()
        await stream.send(bytes(10_000_000))
        await stream.send_eof()
        assert await stream.receive() == b""
        assert anyio.current_time() - started == pytest.approx(10, rel=0.01)


async def _sink(stream: Stream) -> None:
    await read_all(stream)


async def test_a_link_may_be_changed_for_one_pair() -> None:
    async with (
        MemoryNetwork(SeededEnvironment(), link=Link(latency=0.001)) as network,
        network.endpoint("a") as a,
        network.endpoint("b"),
        network.endpoint("c"),
    ):
        network.set_link("c", "a", Link(latency=2.0))
        started = anyio.current_time()
        await a.dial("mem:b")
        assert anyio.current_time() - started == pytest.approx(0.002)
        await a.dial("mem:c")
        assert anyio.current_time() - started == pytest.approx(4.002)


async def test_lost_packets_delay_a_stream_and_keep_its_order() -> None:
    async with (
        MemoryNetwork(SeededEnvironment(), link=Link(latency=0.01, jitter=0.05, loss=0.3)) as network,
        network.endpoint("a") as a,
        network.endpoint("b") as b,
    ):
        b.serve(ECHO, echo)
        await a.dial("mem:b")
        data = bytes(range(256)) * 1000
        started = anyio.current_time()
        assert await ask_echo(a, b.peer_id, data) == data
        assert anyio.current_time() - started > 0.2, "something was sent again"


async def test_gossip_loss_loses_about_its_share() -> None:
    async with (
        MemoryNetwork(SeededEnvironment(), link=Link(gossip_loss=0.25)) as network,
        network.endpoint("a") as a,
        network.endpoint("b") as b,
    ):
        at_b = await Listener.at(b)
        await a.dial("mem:b")
        await anyio.sleep(1)
        for number in range(1000):
            await a.publish(TOPIC, b"%d" % number)
        await anyio.sleep(1)
        assert 680 <= len(at_b.delivered) <= 820


async def test_a_cut_holds_what_is_sent_until_it_heals() -> None:
    async with (
        MemoryNetwork(SeededEnvironment()) as network,
        network.endpoint("a") as a,
        network.endpoint("b") as b,
    ):
        b.serve(ECHO, echo)
        await a.dial("mem:b")
        stream = await a.open_stream(b.peer_id, ECHO)
        network.cut("b", "a")
        await stream.send(b"through the gap")
        with anyio.move_on_after(CUT_NOTICED / 2) as waiting:
            await stream.receive()
        assert waiting.cancelled_caught
        network.heal("a", "b")
        assert await stream.receive() == b"through the gap"
        await anyio.sleep(CUT_NOTICED)
        assert a.peers(), "a healed cut is forgotten"


async def test_a_lasting_cut_ends_the_connection_on_both_sides_and_makes_dialling_vain() -> None:
    async with (
        MemoryNetwork(SeededEnvironment()) as network,
        network.endpoint("a") as a,
        network.endpoint("b") as b,
        a.events() as of_a,
        b.events() as of_b,
    ):
        await a.dial("mem:b")
        network.cut("a", "b")
        await anyio.sleep(CUT_NOTICED + 1)
        assert a.peers() == b.peers() == ()
        assert [await anext(of_a), await anext(of_a)] == [PeerConnected(b.peer_id), PeerDisconnected(b.peer_id)]
        assert [await anext(of_b), await anext(of_b)] == [PeerConnected(a.peer_id), PeerDisconnected(a.peer_id)]
        with pytest.raises(RemoteError) as caught:
            await a.dial("mem:b")
        assert caught.value.code == "unreachable"
        network.heal("a", "b")
        await a.dial("mem:b")


async def test_a_dial_given_up_leaves_no_half_connection_behind() -> None:
    async with (
        MemoryNetwork(SeededEnvironment(), link=Link(latency=8.0)) as network,
        network.endpoint("a") as a,
        network.endpoint("b") as b,
    ):
        with pytest.raises(RemoteError):
            await a.dial("mem:b", timeout=10)
        await anyio.sleep(60)
        assert a.peers() == b.peers() == ()


async def test_dialling_again_after_giving_up_connects_both_sides() -> None:
    async with (
        MemoryNetwork(SeededEnvironment(), link=Link(latency=8.0)) as network,
        network.endpoint("a") as a,
        network.endpoint("b") as b,
    ):
        b.serve(ECHO, echo)
        with pytest.raises(RemoteError):
            await a.dial("mem:b", timeout=10)
        # The second knock arrives while the answer to the first, or its withdrawal, is still on the way.
        await a.dial("mem:b", timeout=100)
        await anyio.sleep(60)
        assert len(a.peers()) == len(b.peers()) == 1
        network.set_link("a", "b", Link())
        assert await ask_echo(a, b.peer_id, b"x") == b"x"


async def test_disconnect_breaks_a_connection_at_once() -> None:
    async with (
        MemoryNetwork(SeededEnvironment()) as network,
        network.endpoint("a") as a,
        network.endpoint("b") as b,
    ):
        await a.dial("mem:b")
        network.disconnect("a", "b")
        assert a.peers() == b.peers() == ()
        await a.dial("mem:b")


async def test_a_name_is_taken_while_its_endpoint_runs() -> None:
    async with (
        MemoryNetwork(SeededEnvironment()) as network,
        network.endpoint("a"),
    ):
        with pytest.raises(LocalError) as caught:
            async with network.endpoint("a"):
                pass
        assert caught.value.code == "port-in-use"
    async with network.endpoint("a"):
        pass


async def test_a_restarted_endpoint_is_another_one_to_its_peers() -> None:
    async with MemoryNetwork(SeededEnvironment()) as network, network.endpoint("b") as b, b.events() as events:
        for _ in range(2):
            async with network.endpoint("a") as a:
                await a.dial("mem:b")
                assert await anext(events) == PeerConnected(PeerId("a"))
            assert await anext(events) == PeerDisconnected(PeerId("a"))


def trace_of_a_busy_minute(seed: int) -> list[str]:
    """What ten nodes do in a minute with lossy links, a cut, restarts, streams and gossip, all from one seed."""
    trace: list[str] = []

    async def act() -> None:
        environment = SeededEnvironment(seed)
        link = Link(latency=0.02, jitter=0.05, loss=0.05, gossip_loss=0.05, bandwidth=1_000_000)
        network = MemoryNetwork(environment, link=link, trace=trace.append)
        async with network, anyio.create_task_group() as tasks:
            for number in range(10):
                tasks.start_soon(live, network, environment, number)
            await anyio.sleep(20)
            network.cut("n1", "n2")
            await anyio.sleep(20)
            network.heal("n1", "n2")

    async def live(network: MemoryNetwork, environment: SeededEnvironment, number: int) -> None:
        for _ in range(2):
            async with network.endpoint(f"n{number}") as endpoint:
                endpoint.serve(ECHO, echo)
                await Listener.at(endpoint)
                with anyio.move_on_after(25 + number):
                    while True:
                        other = f"n{(number + 1 + environment.random_bytes(1)[0] % 9) % 10}"
                        try:
                            await endpoint.dial(f"mem:{other}", timeout=3)
                            await ask_echo(endpoint, PeerId(other), environment.random_bytes(500))
                        except RemoteError:
                            await anyio.sleep(0.5)
                        await endpoint.publish(TOPIC, environment.random_bytes(200))
                        await anyio.sleep(1)

    trio_scheduler._r.seed(seed)
    anyio.run(act, backend="trio", backend_options={"clock": trio.testing.MockClock(autojump_threshold=0)})
    return trace


@pytest.fixture
def deterministic_scheduler(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trio_scheduler, "_ALLOW_DETERMINISTIC_SCHEDULING", True)


@pytest.mark.usefixtures("deterministic_scheduler")
def test_one_seed_gives_one_trace_and_another_seed_another() -> None:
    first, second, other = (trace_of_a_busy_minute(seed) for seed in (1, 1, 2))
    assert len(first) > 10_000
    assert first == second
    assert first != other


async def test_readers_that_fall_behind_lose_the_oldest_events() -> None:
    from bnw.transport.feed import MAX_UNREAD_EVENTS, EventFeed

    feed: EventFeed[TransportEvent] = EventFeed()
    async with feed.open() as events:
        for number in range(MAX_UNREAD_EVENTS + 10):
            feed.put(PeerConnected(PeerId(str(number))))
        assert await anext(events) == PeerConnected(PeerId("10"))


async def test_a_thousand_deliveries_cost_little_real_time() -> None:
    """Not a benchmark; it fails when delivery becomes several times slower than the simulator can live with."""
    import time

    network = MemoryNetwork(SeededEnvironment())
    async with network, network.endpoint("hub") as hub, anyio.create_task_group() as tasks:
        ready: list[Listener] = []

        async def leaf(number: int) -> None:
            async with network.endpoint(f"leaf{number}") as endpoint:
                listener = await Listener.at(endpoint)
                await endpoint.dial("mem:hub")
                ready.append(listener)
                await anyio.sleep_forever()

        for number in range(100):
            tasks.start_soon(leaf, number)
        await anyio.sleep(1)
        started = time.perf_counter()
        for number in range(20):
            await hub.publish(TOPIC, b"%d" % number)
        await anyio.sleep(1)
        spent = time.perf_counter() - started
        assert sum(len(listener.delivered) for listener in ready) == 2000
        assert spent < 2
        tasks.cancel_scope.cancel()
