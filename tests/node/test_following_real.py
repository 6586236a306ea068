"""Following with real parts: three nodes on SQLite and libp2p over loopback, and the installed profiles."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path

import anyio
import pytest
from anyio.abc import TaskGroup, TaskStatus

from bnw.api.profiles import ThreadedProfiles
from bnw.node.configuration import Configuration
from bnw.node.home import Home
from bnw.node.node import Node
from bnw.node.opening import initialise_home, open_node
from bnw.profiles.service import ProfileService
from bnw.transport.tasks import background_tasks

pytestmark = pytest.mark.anyio

FINANCE = Path(__file__).parents[2] / "docs/examples/finance"
NAME = "finance/lookup"
OPAQUE = bytes(range(256))


class Machine:
    """Homes in one directory, and nodes on them, each in a task of its own so that they can stop in any order."""

    def __init__(self, root: Path, plugins: ThreadedProfiles, tasks: TaskGroup) -> None:
        self._root = root
        self._plugins = plugins
        self._tasks = tasks
        self._stops: dict[str, tuple[anyio.Event, anyio.Event]] = {}

    async def start(self, name: str, *known: Node) -> Node:
        home = Home(self._root / name)
        if not home.keystore.exists():
            initialise_home(home)
        peers = tuple([address for node in known for address in (await node.status()).addresses])
        node: Node = await self._tasks.start(self._live, name, home, Configuration(peers=peers))
        return node

    async def stop(self, name: str) -> None:
        stop, stopped = self._stops[name]
        stop.set()
        await stopped.wait()

    async def _live(
        self, name: str, home: Home, configuration: Configuration, *, task_status: TaskStatus[Node]
    ) -> None:
        stop, stopped = self._stops[name] = anyio.Event(), anyio.Event()
        async with open_node(home, configuration=configuration, plugins=self._plugins) as node:
            task_status.started(node)
            await stop.wait()
        stopped.set()


@pytest.fixture
async def machine(tmp_path: Path) -> AsyncIterator[Machine]:
    with ProfileService() as service:
        async with background_tasks() as tasks:
            yield Machine(tmp_path, ThreadedProfiles(service), tasks)


async def test_a_restarted_follower_gives_a_third_node_all_while_the_publisher_is_stopped(machine: Machine) -> None:
    schemas = [(FINANCE / f"{side}.schema.json").read_bytes() for side in ("input", "output")]
    publisher = await machine.start("publisher")
    for schema in schemas:
        await publisher.add_blob(schema)
    manifest = await publisher.publish(NAME, (FINANCE / "lookup.profile.json").read_bytes())
    await publisher.publish("opaque", OPAQUE)

    follower = await machine.start("follower", publisher)
    with anyio.fail_after(30):
        for name in (NAME, "opaque"):
            [capability] = (await follower.follow(name, patience=20)).capabilities
            assert capability.state == "whole"
    await machine.stop("publisher")
    await machine.stop("follower")

    follower = await machine.start("follower")
    with anyio.fail_after(10):
        while any(entry.state != "whole" for view in follower.follows() for entry in view.capabilities):
            await anyio.sleep(0.05)
    third = await machine.start("third", follower)
    with anyio.fail_after(30):
        seen = await third.inspect(NAME, patience=20)
        opaque = await third.inspect("opaque", patience=20)
    assert (await third.status()).peers[0].peer == (await follower.status()).peer
    assert seen.manifest.id == manifest.id
    assert sorted(seen.schemas.values()) == sorted(schemas)
    assert seen.input_template is not None
    assert set(json.loads(seen.input_template)) == {"symbol", "month"}
    assert (opaque.descriptor, opaque.description) == (OPAQUE, None)


async def test_a_new_version_reaches_the_follower_without_being_asked_for(machine: Machine) -> None:
    publisher = await machine.start("publisher")
    await publisher.publish("opaque", OPAQUE)
    follower = await machine.start("follower", publisher)
    await follower.follow("opaque", patience=20)
    second = await publisher.publish("opaque", OPAQUE[::-1])
    with anyio.fail_after(30):
        while follower.follows()[0].capabilities[0].whole_manifest != second.id:
            await anyio.sleep(0.05)
