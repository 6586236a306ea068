"""Crashes: what a disk keeps, what it loses, and that nothing leaves a node that has vanished."""

from __future__ import annotations

import anyio
import pytest

from bnw.objects.rules import CATALOG
from bnw.sim.disk import Disk
from bnw.sim.run import run_virtual
from bnw.sim.world import World
from bnw.wire.errors import LocalError


def test_what_was_written_outlasts_a_crash_and_what_was_being_written_does_not() -> None:
    async def act() -> tuple[bytes | None, bytes | None]:
        async with World(1) as world, anyio.create_task_group() as tasks:
            node = world.add("a", disk=Disk(write_time=1.0))
            await node.start()
            kept = await node.store.put_blob(b"kept")
            lost = anyio.Event()

            async def write() -> None:
                await node.store.put_blob(b"lost")
                lost.set()

            dying = node.store
            tasks.start_soon(write)
            await anyio.sleep(0.5)
            await node.crash()
            assert node.store is not dying
            await lost.wait()
            await node.start()
            ids = [kept, await dying.put_blob(b"lost")]
            return await node.store.get_blob(ids[0]), await node.store.get_blob(ids[1])

    assert run_virtual(1, act) == (b"kept", None)


def test_a_disk_that_lies_loses_what_it_claimed_to_have() -> None:
    async def act() -> tuple[bytes | None, bytes | None]:
        async with World(1) as world:
            node = await world.start("a")
            await anyio.sleep(10)
            early = await node.store.put_blob(b"early")
            await anyio.sleep(5)
            late = await node.store.put_blob(b"late")
            await anyio.sleep(0.5)
            await node.crash(unsynced=2.0)
            return await node.store.get_blob(early), await node.store.get_blob(late)

    assert run_virtual(1, act) == (b"early", None)


def test_a_full_disk_says_so_and_works_again_when_there_is_room() -> None:
    async def act() -> str:
        async with World(1) as world:
            node = await world.start("a")
            node.disk.is_full = True
            with pytest.raises(LocalError) as caught:
                await node.store.put_blob(b"x")
            node.disk.is_full = False
            await node.store.put_blob(b"x")
            return caught.value.code

    assert run_virtual(1, act) == "disk-full"


def test_nobody_hears_of_a_crash_until_the_connection_is_found_dead() -> None:
    async def act() -> tuple[int, int, int]:
        async with World(1) as world:
            node = await world.start("a")
            other = await world.start("b", peers=["a"])
            await node.node.publish("x", b"opaque")
            await anyio.sleep(3)
            before = await other.store.scope_ids(CATALOG, now=other.environment.now_ms())
            await node.crash()
            await anyio.sleep(2)
            soon = len((await other.node.status()).peers)
            await anyio.sleep(15)
            after = await other.store.scope_ids(CATALOG, now=other.environment.now_ms())
            assert before == after, "a node that has crashed says nothing more"
            return len(before), soon, len((await other.node.status()).peers)

    objects, soon, late = run_virtual(1, act)
    assert objects == 3
    assert (soon, late) == (1, 0)


def test_a_node_comes_back_from_a_crash_with_its_identity_and_its_objects() -> None:
    async def act() -> bool:
        async with World(1) as world:
            node = await world.start("a")
            manifest = await node.node.publish("x", b"opaque")
            identity = node.identity
            await node.crash()
            await node.start()
            return node.identity == identity and await node.store.get_object(manifest.id) == manifest

    assert run_virtual(1, act)
