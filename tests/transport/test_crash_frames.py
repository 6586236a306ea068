"""What hostile peers do to py-libp2p 0.8.1, and that they cannot do it to us.

Each fault is shown twice: on the stock library, as the evidence that the cure is still needed, and on our endpoint.
When a test on the stock library fails after an upgrade, the cure that its docstring names may have become superfluous.
docs/libp2p.md lists faults, cures and these tests.
"""

from __future__ import annotations

import random

import anyio
import attacker
import pytest
import trio
from attacker import ATTACKS
from libp2p.tools.anyio_service import background_trio_service
from stock_host import stock_host, stock_pubsub
from victims import run_victim
from worlds import ECHO, TOPIC, Listener, P2PWorld, SeededEnvironment, ask_echo, connect, echo, until

from bnw.transport.bounds import MAX_STREAMS
from bnw.transport.interface import Stream, Verdict
from bnw.transport.p2p import P2PTransport
from bnw.transport.p2p.cures import swarm
from bnw.transport.p2p.cures.yamux import MAX_SERVING
from bnw.wire.errors import RemoteError

pytestmark = pytest.mark.anyio

ATTEMPTS = 5
ROUNDS = 100
MAX_GROWTH = 32.0
"""MiB by which the memory of our node may grow while it is attacked."""


@pytest.mark.parametrize(
    "name",
    [
        "not_protobuf",  # cured by p2p/cures/pubsub.py
        "junk_key",  # cured by p2p/cures/pubsub.py
        "stumbling_handler",  # cured by transport/tasks.py and p2p/cures/host.py
        "name_that_is_no_text",  # cured by p2p/cures/negotiation.py
    ],
)
async def test_one_frame_ends_the_stock_process(name: str) -> None:
    async with run_victim("stock") as victim:
        assert victim.runs
        for _ in range(ATTEMPTS):
            await ATTACKS[name](victim.address)
            # The attacker hangs up at once, and now and then the victim sees that before it has read the frame.
            if await victim.dies(within=6):
                return
        pytest.fail(f"{name} did not end it in {ATTEMPTS} attempts")


async def test_no_attack_ends_or_stalls_our_process() -> None:
    async with run_victim("cured") as victim:
        for name, attack in ATTACKS.items():
            with anyio.fail_after(20):
                await attack(victim.address)
            assert victim.runs, f"it died of {name}"
            assert await victim.serves(within=15), f"it does not serve after {name}"
        assert victim.growth < MAX_GROWTH


async def test_a_hundred_attacks_in_random_order_leave_one_node_serving_and_gossiping() -> None:
    seed = random.randrange(2**32)
    print(f"seed {seed}")
    names = random.Random(seed).choices(list(ATTACKS), k=ROUNDS)
    async with run_victim("cured") as victim:
        for name in names:
            with anyio.fail_after(20):
                await ATTACKS[name](victim.address)
            assert victim.runs, f"it died of {name}"
        assert await victim.serves()
        honest = P2PTransport(seed=b"publisher".ljust(32), listen=[], environment=SeededEnvironment(2))
        async with honest:
            await honest.dial(victim.address)
            attempt = 0
            while not any("still here" in line for line in victim.heard):
                await honest.publish(TOPIC, b"still here %d" % attempt)
                attempt += 1
                assert attempt < 100
                await anyio.sleep(0.05)
        assert victim.growth < MAX_GROWTH, f"grew by {victim.growth:.0f} MiB"


@pytest.mark.parametrize("kind", ["stock", "cured"])
async def test_a_sender_that_ignores_its_window_fills_only_the_stock_node(kind: str) -> None:
    """Cured by p2p/cures/yamux_guard.py."""
    async with run_victim(kind) as victim:
        await attacker.ignore_the_window(victim.address, 64 * 2**20, stay=0.5)
        assert victim.growth > 48 if kind == "stock" else victim.growth < 4


@pytest.mark.parametrize("kind", ["stock", "cured"])
async def test_a_flood_of_streams_fills_only_the_stock_node(kind: str) -> None:
    """Cured by p2p/cures/yamux_guard.py."""
    async with run_victim(kind) as victim, anyio.create_task_group() as tasks:
        tasks.start_soon(attacker.flood_with_streams, victim.address, 4_000, 10.0)
        if kind == "stock":
            await until(lambda: victim.growth > 24)
        else:
            await anyio.sleep(1)
            assert victim.growth < 4
        tasks.cancel_scope.cancel()


@pytest.mark.parametrize("kind", ["stock", "cured"])
async def test_a_line_without_end_fills_only_the_stock_node(kind: str) -> None:
    """Cured by p2p/cures/negotiation.py."""
    async with run_victim(kind) as victim:
        await attacker.endless_line_inside_noise(victim.address, 64 * 2**20, stay=0.5)
        assert victim.growth > 48 if kind == "stock" else victim.growth < 4


@pytest.mark.parametrize("kind", ["stock", "cured"])
async def test_silent_connections_keep_honest_peers_out_of_the_stock_node_only(kind: str) -> None:
    """Cured by p2p/cures/swarm.py."""
    async with run_victim(kind) as victim, attacker.silent_connections(victim.address, 300):
        assert await victim.serves(within=2) == (kind == "cured")


async def test_of_many_silent_connections_only_the_newest_are_kept() -> None:
    async with P2PWorld().endpoint("a") as a, attacker.silent_connections(a.addresses[0], 100) as connections:
        closed = 0

        async def wait_for_the_end(stream: trio.SocketStream) -> None:
            nonlocal closed
            while await stream.receive_some():
                pass
            closed += 1

        async with anyio.create_task_group() as tasks:
            for stream in connections:
                tasks.start_soon(wait_for_the_end, stream)
            await until(lambda: closed == 100 - swarm.MAX_HALF_OPEN)
            tasks.cancel_scope.cancel()


@pytest.mark.parametrize("kind", ["stock", "cured"])
async def test_after_an_oversize_rpc_the_stock_node_loses_the_next_message_as_well(kind: str) -> None:
    """Cured by p2p/cures/frames.py."""
    async with run_victim(kind) as victim:
        await attacker.oversize_then_sound(victim.address, b"the next", stay=0.3)
        assert any("the next" in line for line in victim.heard) == (kind == "cured")


async def test_past_connections_use_up_the_stock_node_for_good() -> None:
    """Cured by p2p/cures/swarm.py."""
    async with run_victim("stock", max_connections=5) as victim:
        assert [await victim.serves(within=1) for _ in range(5)] == [True] * 4 + [False]


async def test_past_connections_leave_no_trace_in_our_node(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(swarm, "MAX_INBOUND", 2)
    world = P2PWorld()
    async with world.endpoint("a") as a:
        a.serve(ECHO, echo)
        for _ in range(6):
            async with world.endpoint("b") as b:
                await connect(b, a)
                assert await ask_echo(b, a.peer_id, b"x") == b"x"
            await until(lambda: not a.peers())


async def test_a_node_that_is_full_says_so_before_the_other_believes_to_be_connected(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Cured by p2p/cures/swarm.py."""
    monkeypatch.setattr(swarm, "MAX_INBOUND", 1)
    world = P2PWorld()
    async with world.endpoint("a") as a, world.endpoint("b") as b, world.endpoint("c") as c:
        await connect(b, a)
        with pytest.raises(RemoteError) as caught:
            await c.dial(a.addresses[0])
        assert caught.value.code == "unreachable"
        # The limit is on what others open; it keeps slots free for us to dial with.
        await a.dial(c.addresses[0])


async def test_the_stock_library_loses_most_of_a_burst() -> None:
    """Cured by p2p/cures/outbox.py and p2p/gossip.py; that we deliver all of it is shown in test_gossip.py."""
    (one, listen_one), (other, listen_other) = stock_host(), stock_host()
    (from_one, gossip_one), (at_other, gossip_other) = stock_pubsub(one), stock_pubsub(other)
    delivered = 0
    async with (
        one.run(listen_addrs=listen_one),
        other.run(listen_addrs=listen_other),
        background_trio_service(from_one),
        background_trio_service(gossip_one),
        background_trio_service(at_other),
        background_trio_service(gossip_other),
    ):
        await from_one.wait_until_ready()
        await at_other.wait_until_ready()
        subscription = await at_other.subscribe(TOPIC)
        await from_one.subscribe(TOPIC)
        await one.connect(attacker.info_from_p2p_addr(other.get_addrs()[0]))
        await from_one.wait_for_subscription(other.get_id(), TOPIC)
        for number in range(200):
            await from_one.publish(TOPIC, b"%d" % number)
        with anyio.move_on_after(1):
            while True:
                await subscription.get()
                delivered += 1
        await one.close()
        await other.close()
    assert 0 < delivered < 100


async def test_handlers_that_outlive_their_streams_do_not_pile_up() -> None:
    async with P2PWorld().endpoint("a") as a:
        running = 0

        async def hold(stream: Stream) -> None:
            nonlocal running
            running += 1
            await anyio.sleep_forever()

        a.serve(attacker.HOLD, hold)
        async with attacker.raw_peer(a.addresses[0]) as peer:
            for _ in range(5):
                before = running
                streams = [await peer.open(attacker.HOLD) for _ in range(MAX_STREAMS)]
                with anyio.move_on_after(0.2):
                    await until(lambda before=before: running >= before + MAX_STREAMS)
                for stream in streams:
                    await peer.send(attacker.WINDOW_UPDATE, attacker.RST, stream, 0)
        assert running == MAX_SERVING


async def test_rejected_messages_cost_their_forwarder_the_connection() -> None:
    world = P2PWorld()
    async with world.endpoint("a") as a, world.endpoint("b") as b:
        await Listener.at(b, Verdict.REJECT)
        await connect(a, b)
        attempt = 0
        while b.peers():
            await a.publish(TOPIC, b"junk %d" % attempt)
            attempt += 1
            await anyio.sleep(0.01)
        assert attempt >= 20, "now and then a rejection is no reason to hang up"
