"""Worlds: nodes by name, keys and clocks from the seed, and what outlasts a stop."""

from __future__ import annotations

import io
from collections.abc import Awaitable, Callable
from typing import TypeVar

import anyio
import cbor2
import pytest
from blake3 import blake3

from bnw.sim.environment import START_OF_TIME, SeededEnvironment
from bnw.sim.run import run_virtual
from bnw.sim.trace import EventTrace
from bnw.sim.world import World
from bnw.transport.interface import PeerInfo
from bnw.wire.content_id import content_id
from bnw.wire.errors import InvalidError, LocalError

T = TypeVar("T")


def in_world(act: Callable[[World], Awaitable[T]], *, seed: int = 1, trace: EventTrace | None = None) -> T:
    async def run() -> T:
        async with World(seed, trace=trace) as world:
            return await act(world)

    return run_virtual(seed, run)


def test_random_bytes_are_blake3_of_seed_and_labels_in_key_derivation_mode() -> None:
    stream = blake3(cbor2.dumps([7, "node", "a"], canonical=True), derive_key_context="bnw/1 simulated randomness")
    environment = SeededEnvironment(7, "node", "a")
    pieces = [environment.random_bytes(count) for count in (1, 0, 63, 200)]
    assert b"".join(pieces) == stream.digest(length=264)
    assert [len(piece) for piece in pieces] == [1, 0, 63, 200]


def test_seeds_and_labels_never_share_a_stream() -> None:
    streams = [(1, "a"), (2, "a"), (1, "b"), (1, "a", "b"), (1, "ab"), (1, "a", ""), (1,), (-1, "a")]
    assert len({SeededEnvironment(seed, *labels).random_bytes(16) for seed, *labels in streams}) == len(streams)


def test_a_nodes_clock_shows_virtual_time_and_its_own_error() -> None:
    async def act(world: World) -> list[int]:
        right, wrong = world.environment, world.add("wrong", clock_offset_ms=-90_000).environment
        shown = [right.now_ms(), wrong.now_ms()]
        await anyio.sleep(1.001)
        shown += [right.now_ms(), wrong.now_ms()]
        wrong.clock_offset_ms = 5
        return [*(time - START_OF_TIME for time in shown), wrong.now_ms() - right.now_ms()]

    assert in_world(act) == [0, -90_000, 1001, 1001 - 90_000, 5]


def test_a_nodes_keys_follow_from_seed_and_name_alone() -> None:
    async def identities(world: World, *names: str) -> dict[str, bytes]:
        return {name: (await world.start(name)).identity for name in names}

    few = in_world(lambda world: identities(world, "a", "b"))
    more = in_world(lambda world: identities(world, "c", "b", "a"))
    assert {name: more[name] for name in few} == few
    assert len(set(more.values())) == 3
    assert in_world(lambda world: identities(world, "a"), seed=2)["a"] != few["a"]


def test_a_node_stays_connected_to_its_peers_also_when_one_is_started_later() -> None:
    async def act(world: World) -> tuple[PeerInfo, ...]:
        late = world.add("late")
        node = await world.start("early", peers=["late"])
        await anyio.sleep(5)
        assert (await node.node.status()).peers == ()
        await late.start()
        await anyio.sleep(10)
        return (await node.node.status()).peers

    assert [info.peer for info in in_world(act)] == ["late"]


def test_what_a_node_holds_outlasts_a_stop_and_no_random_bytes_come_twice() -> None:
    async def act(world: World) -> None:
        node = await world.start("a")
        before = node.identity, await node.node.add_blob(b"kept")
        drawn = node.environment.random_bytes(32)
        await node.stop()
        assert not node.is_running
        await node.stop()
        await node.start()
        assert (node.identity, content_id(await node.node.get_blob(before[1]))) == before
        assert node.environment.random_bytes(32) != drawn

    in_world(act)


def test_a_stopped_node_is_not_there_for_anyone() -> None:
    async def act(world: World) -> None:
        node = await world.start("a")
        other = await world.start("b", peers=["a"])
        await other.node.settle()
        await node.stop()
        await anyio.sleep(1)
        assert (await other.node.status()).peers == ()
        with pytest.raises(LocalError) as caught:
            _ = node.node
        assert caught.value.code == "not-running"

    in_world(act)


def test_names_are_unique_and_well_formed() -> None:
    async def act(world: World) -> None:
        world.add("a")
        with pytest.raises(LocalError) as caught:
            world.add("a")
        assert caught.value.code == "node-exists"
        with pytest.raises(InvalidError):
            world.add("white space")

    in_world(act)


def test_a_node_is_started_once_also_when_two_try_at_the_same_time() -> None:
    async def act(world: World) -> list[str]:
        node = world.add("a")
        codes = []

        async def start() -> None:
            try:
                await node.start()
            except LocalError as error:
                codes.append(error.code)

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(start)
            tasks.start_soon(start)
        assert node.is_running
        return codes

    assert in_world(act) == ["running"]


def test_an_error_in_the_scenario_leaves_as_itself() -> None:
    async def act(world: World) -> None:
        await world.start("a")
        raise LookupError("as planned")

    with pytest.raises(LookupError):
        in_world(act)


def test_the_experimenter_may_write_into_the_trace() -> None:
    async def act(world: World) -> None:
        await anyio.sleep(2)
        world.record("phase", 2)

    written = io.BytesIO()
    trace = EventTrace(written.write)
    in_world(act, trace=trace)
    trace.flush()
    assert written.getvalue() == b"bnw-trace/1\n2.000000 world phase 2\n"
