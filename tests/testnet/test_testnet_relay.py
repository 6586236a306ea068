"""A relay passes bytes on as its link says: in order, late, or not at all."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio
import anyio.abc
import pytest

from bnw.cli.testnet.relay import CHUNK, Relay, Relays
from bnw.node.environment import SystemEnvironment
from bnw.transport.memory import Link

pytestmark = pytest.mark.anyio

LONG_ENOUGH = 0.3
"""Seconds in which something would have arrived if it could."""


@asynccontextmanager
async def echo() -> AsyncIterator[int]:
    """A server that sends back what it gets; its port."""

    async def serve(stream: anyio.abc.SocketStream) -> None:
        async with stream:
            async for data in stream:
                await stream.send(data)

    async with await anyio.create_tcp_listener(local_host="127.0.0.1") as listener, anyio.create_task_group() as group:
        group.start_soon(listener.serve, serve)
        yield listener.extra(anyio.abc.SocketAttribute.local_port)
        group.cancel_scope.cancel()


@asynccontextmanager
async def relayed(link: Link) -> AsyncIterator[Relay]:
    async with echo() as port, anyio.create_task_group() as group:
        relay = Relay(link, SystemEnvironment(), lambda: port)
        await group.start(relay.run)
        yield relay
        group.cancel_scope.cancel()


async def test_bytes_arrive_in_order_and_are_counted_both_ways() -> None:
    sent = bytes(range(256)) * 1000
    async with relayed(Link(latency=0.0, jitter=0.001)) as relay, await anyio.connect_tcp("127.0.0.1", relay.port) as s:
        async with anyio.create_task_group() as group:
            group.start_soon(s.send, sent)
            received = b""
            while len(received) < len(sent):
                received += await s.receive()
        assert received == sent
        assert relay.bytes == 2 * len(sent)


async def test_a_round_trip_takes_twice_the_latency() -> None:
    async with relayed(Link(latency=0.1)) as relay, await anyio.connect_tcp("127.0.0.1", relay.port) as stream:
        await stream.send(b"open")
        await stream.receive()
        began = anyio.current_time()
        await stream.send(b"x")
        assert await stream.receive() == b"x"
        assert 0.2 <= anyio.current_time() - began < 0.2 + LONG_ENOUGH


async def test_a_narrow_link_takes_its_time() -> None:
    async with relayed(Link(latency=0.0, bandwidth=10 * CHUNK)) as relay:
        async with await anyio.connect_tcp("127.0.0.1", relay.port) as stream, anyio.create_task_group() as group:
            began = anyio.current_time()
            group.start_soon(stream.send, bytes(2 * CHUNK))
            received = 0
            while received < 2 * CHUNK:
                received += len(await stream.receive())
        assert anyio.current_time() - began >= 0.2, "a fifth of a second for the way there alone"


async def test_a_cut_holds_back_what_was_sent_and_a_heal_delivers_it() -> None:
    async with relayed(Link(latency=0.0)) as relay, await anyio.connect_tcp("127.0.0.1", relay.port) as stream:
        await stream.send(b"before")
        assert await stream.receive() == b"before"
        relay.gate.set(is_open=False)
        await stream.send(b"during")
        with anyio.move_on_after(LONG_ENOUGH):
            pytest.fail(f"{await stream.receive()!r} came through a cut")
        relay.gate.set(is_open=True)
        assert await stream.receive() == b"during"


async def test_without_a_node_behind_it_a_connection_ends() -> None:
    async with anyio.create_task_group() as group:
        relay = Relay(Link(latency=0.0), SystemEnvironment(), lambda: None)
        await group.start(relay.run)
        async with await anyio.connect_tcp("127.0.0.1", relay.port) as stream:
            with pytest.raises(anyio.EndOfStream):
                await stream.receive()
        group.cancel_scope.cancel()


async def test_while_any_part_is_cut_off_nobody_makes_new_connections_past_it() -> None:
    def relay() -> Relay:
        return Relay(Link(), SystemEnvironment(), lambda: None)

    relays = Relays({("a", "b"): relay(), ("c", "a"): relay(), ("b", "c"): relay()}, {"a": relay(), "b": relay()})

    async def passes(relay: Relay) -> bool:
        with anyio.move_on_after(0.01):
            await relay.gate.wait()
            return True
        return False

    relays.divide(frozenset("a"))
    assert [await passes(relay) for relay in relays.all] == [False, False, True, False, False]
    relays.divide(frozenset("ac"))
    assert [await passes(relay) for relay in relays.all] == [False, False, False, False, False]
    relays.unite(frozenset("a"))
    assert [await passes(relay) for relay in relays.all] == [False, True, False, False, False]
    relays.unite(frozenset("ac"))
    assert all([await passes(relay) for relay in relays.all])


async def test_a_relay_that_ends_listens_no_more() -> None:
    relay = Relay(Link(latency=0.0), SystemEnvironment(), target=lambda: None)
    async with anyio.create_task_group() as tasks:
        await tasks.start(relay.run)
        async with await anyio.connect_tcp("127.0.0.1", relay.port):
            pass
        tasks.cancel_scope.cancel()
    with pytest.raises(OSError):
        await anyio.connect_tcp("127.0.0.1", relay.port)
