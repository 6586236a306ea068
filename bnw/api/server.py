"""Serves a node's local API: Starlette on Hypercorn's Trio worker, over a Unix socket that only the owner can open."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any, cast

import anyio
import trio
from hypercorn.config import Config
from hypercorn.trio.tcp_server import TCPServer
from hypercorn.trio.worker_context import WorkerContext
from hypercorn.utils import wrap_app
from starlette.applications import Starlette
from starlette.exceptions import HTTPException

from bnw.api.requests import answer_error, answer_fault, answer_http_error
from bnw.api.routes_authority import authority_routes
from bnw.api.routes_blobs import blob_routes
from bnw.api.routes_calls import call_routes
from bnw.api.routes_catalog import catalog_routes
from bnw.api.routes_follow import follow_routes
from bnw.api.routes_invocations import invocation_routes
from bnw.api.routes_mail import mail_routes
from bnw.api.routes_node import node_routes
from bnw.api.socket_file import bind_socket, remove_socket
from bnw.node.node import Node
from bnw.transport.tasks import background_tasks
from bnw.wire.errors import BnwError
from bnw.wire.limits import KIB

logger = logging.getLogger(__name__)

CLOSING_GRACE = 0.5
"""Seconds that requests in progress have to end when the node stops."""
MAX_HEADERS = 32 * KIB


def application(node: Node) -> Starlette:
    """The API of `node` as an ASGI application."""
    routes = [*node_routes(node), *catalog_routes(node), *follow_routes(node), *call_routes(node)]
    routes += [*invocation_routes(node), *authority_routes(node), *mail_routes(node), *blob_routes(node)]
    handlers = {BnwError: answer_error, HTTPException: answer_http_error, Exception: answer_fault}
    return Starlette(routes=routes, exception_handlers=handlers)


@asynccontextmanager
async def api_served(node: Node, path: Path) -> AsyncIterator[None]:
    """Serve the API at `path` while the body runs. The caller holds the home's lock.

    Raises `LocalError` (`api-socket`).
    """
    listener = trio.SocketListener(trio.socket.from_stdlib_socket(bind_socket(path)))
    connections = _Connections(application(node))
    try:
        async with background_tasks() as serving:
            async with background_tasks() as accepting:
                # Typed for a nursery, of which it needs no more than a task group has.
                nursery = cast(trio.Nursery, serving)
                accept = partial(trio.serve_listeners, connections.serve, [listener], handler_nursery=nursery)
                accepting.start_soon(accept)
                yield
            await connections.finish()
    finally:
        remove_socket(path)


class _Connections:
    """Serves each connection with Hypercorn, and sees to it that a connection costs no more than itself."""

    def __init__(self, app: Starlette) -> None:
        self._config = Config()
        self._config.loglevel = "WARNING"
        # Its own logger would print everything a second time, in another form.
        self._config.errorlog = logger
        self._config.h11_max_incomplete_size = MAX_HEADERS
        self._context = WorkerContext(None)
        self._app = wrap_app(cast(Any, app), 0, "asgi")
        self._open = 0
        self._closed = anyio.Event()

    async def serve(self, stream: trio.SocketStream) -> None:
        self._open += 1
        try:
            await TCPServer(self._app, self._config, self._context, cast(Any, {}), cast(Any, stream))
        except* Exception as faults:  # noqa: BLE001 - whatever it is, the node goes on
            # Hypercorn lets some of its faults pass, for example when a client leaves in the middle of its request
            # while that is being answered.
            logger.info("the connection of a local client broke: %r", faults.exceptions)
        finally:
            self._open -= 1
            self._closed.set()

    async def finish(self) -> None:
        """Give the requests in progress a moment to end."""
        await self._context.terminated.set()
        with anyio.move_on_after(CLOSING_GRACE):
            while self._open:
                self._closed = anyio.Event()
                await self._closed.wait()
