"""Serves a node's local API: Starlette on Hypercorn's Trio worker, over a Unix socket that only the owner can open."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any, cast

import anyio
from hypercorn.config import Config
from hypercorn.trio import serve
from starlette.applications import Starlette

from bnw.api.requests import answer_error
from bnw.api.routes_authority import authority_routes
from bnw.api.routes_calls import call_routes
from bnw.api.routes_catalog import catalog_routes
from bnw.api.routes_follow import follow_routes
from bnw.api.routes_invocations import invocation_routes
from bnw.api.routes_node import node_routes
from bnw.api.socket_file import bind_socket, remove_socket
from bnw.node.node import Node
from bnw.transport.tasks import background_tasks
from bnw.wire.errors import BnwError
from bnw.wire.limits import KIB

CLOSING_GRACE = 0.5
"""Seconds that requests in progress have to end when the node stops."""
MAX_HEADERS = 32 * KIB


def application(node: Node) -> Starlette:
    """The API of `node` as an ASGI application."""
    routes = [*node_routes(node), *catalog_routes(node), *follow_routes(node), *call_routes(node)]
    routes += [*invocation_routes(node), *authority_routes(node)]
    return Starlette(routes=routes, exception_handlers={BnwError: answer_error})


@asynccontextmanager
async def api_served(node: Node, path: Path) -> AsyncIterator[None]:
    """Serve the API at `path` while the body runs. The caller holds the home's lock.

    Raises `LocalError` (`api-socket`).
    """
    listener = bind_socket(path)
    config = Config()
    # Hypercorn closes what it is given by number, so it gets a number of its own.
    config.bind = [f"fd://{listener.detach()}"]
    config.loglevel = "WARNING"
    config.graceful_timeout = CLOSING_GRACE
    config.h11_max_incomplete_size = MAX_HEADERS
    stopping = anyio.Event()
    try:
        async with background_tasks() as tasks:
            # Typed for Trio; anyio's task status is the same thing by another name.
            start = partial(cast(Any, serve), application(node), config, shutdown_trigger=stopping.wait)
            await tasks.start(start)
            try:
                yield
            finally:
                stopping.set()
    finally:
        remove_socket(path)
