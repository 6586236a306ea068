"""A node on a home with everything a user gets: real parts, the installed plug-ins, and the local API."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio.to_thread

from bnw.api.profiles import ThreadedProfiles
from bnw.api.server import api_served
from bnw.node.configuration import Configuration
from bnw.node.environment import SystemEnvironment
from bnw.node.home import Home
from bnw.node.node import Node
from bnw.node.opening import open_node
from bnw.profiles.service import ProfileService


@asynccontextmanager
async def node_served(home: Home, configuration: Configuration, *, passphrase: str | None) -> AsyncIterator[Node]:
    """Run a node and serve its API while the body runs. Raises `LocalError` as `open_node` and `api_served` do."""
    clock = SystemEnvironment(clock_offset=configuration.clock_offset_ms)
    service = ProfileService(now_ms=clock.now_ms)
    try:
        plugins = ThreadedProfiles(service)
        async with open_node(home, configuration=configuration, passphrase=passphrase, plugins=plugins) as node:
            async with api_served(node, home.socket):
                yield node
            # By now whoever provided something through the API has taken it back.
            await node.leave()
    finally:
        with anyio.CancelScope(shield=True):
            await anyio.to_thread.run_sync(service.close)
