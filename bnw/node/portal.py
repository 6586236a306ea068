"""A node for applications that run on asyncio: it has a thread and a Trio loop of its own (design section 3).

    async with asyncio_node(Home(path)) as node:
        result = await node.invoke("finance/lookup", Payload(b"...", "application/json"))

The calls are those of `Node`. Cancelling one cancels it in the node's loop too. Handlers of `provide` run on the
application's loop.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

import anyio
from anyio.from_thread import BlockingPortal, start_blocking_portal

from bnw.inbox.payload import Payload, PayloadFile, StoredPayload
from bnw.invoke.descriptors import DescriptorPlugins
from bnw.invoke.handlers import Answer, Call, Handler, HandlerFailure
from bnw.invoke.policy import CallPolicy
from bnw.invoke.requester import CallResult
from bnw.node.configuration import Configuration
from bnw.node.home import Home
from bnw.node.node import Node
from bnw.node.opening import open_node
from bnw.node.views import CapabilityView, CatalogEntry, NodeStatus
from bnw.objects.signed import SignedObject
from bnw.transport.interface import PeerId
from bnw.wire.content_id import ContentId

P = ParamSpec("P")
T = TypeVar("T")


@asynccontextmanager
async def asyncio_node(
    home: Home,
    *,
    passphrase: str | None = None,
    configuration: Configuration | None = None,
    plugins: DescriptorPlugins | None = None,
) -> AsyncIterator[AsyncioNode]:
    """A running node for an asyncio application. Raises `LocalError` as `open_node` does."""

    def enter() -> tuple[Any, Any, BlockingPortal, Node]:
        starting = start_blocking_portal("trio")
        portal = starting.__enter__()
        try:
            opened = portal.wrap_async_context_manager(
                open_node(home, passphrase=passphrase, configuration=configuration, plugins=plugins)
            )
            return starting, opened, portal, opened.__enter__()
        except BaseException:
            starting.__exit__(None, None, None)
            raise

    # Opening and closing take a moment in which the application's loop goes on.
    starting, opened, portal, node = await asyncio.to_thread(enter)
    try:
        yield AsyncioNode(node, portal, asyncio.get_running_loop())
    finally:
        closing = asyncio.ensure_future(asyncio.to_thread(_leave, opened, starting))
        try:
            await asyncio.shield(closing)
        except asyncio.CancelledError:
            # A node must be closed whole; the cancellation is only late.
            await closing
            raise


def _leave(*contexts: Any) -> None:
    for context in contexts:
        context.__exit__(None, None, None)


class AsyncioNode:
    """The calls of `Node`, for one asyncio loop. See `asyncio_node`."""

    def __init__(self, node: Node, portal: BlockingPortal, loop: asyncio.AbstractEventLoop) -> None:
        self._node = node
        self._portal = portal
        self._loop = loop

    async def publish(self, name: str, descriptor: bytes, **options: Any) -> SignedObject:
        return await self._run(self._node.publish, name, descriptor, **options)

    async def withdraw(self, name: str) -> SignedObject:
        return await self._run(self._node.withdraw, name)

    async def provide(
        self, reference: str, handler: Handler, *, policy: CallPolicy | None = None, idempotent: bool = False
    ) -> SignedObject:
        there = self._elsewhere(handler)
        return await self._run(self._node.provide, reference, there, policy=policy, idempotent=idempotent)

    async def stop_providing(self, capability: ContentId) -> None:
        await self._run(self._node.stop_providing, capability)

    async def entries(self) -> list[CatalogEntry]:
        return await self._run(self._node.entries)

    async def inspect(self, reference: str, **options: Any) -> CapabilityView:
        return await self._run(self._node.inspect, reference, **options)

    async def invoke(self, reference: str, payload: Payload | PayloadFile, **options: Any) -> CallResult:
        return await self._run(self._node.invoke, reference, payload, **options)

    async def save_output(self, output: StoredPayload, path: Path) -> None:
        """Write an output that is too large for memory to a new file, and drop its chunks."""
        await self._run(self._node.calls.outputs.save, output, path)
        await self._run(self._node.calls.outputs.let_go, output)

    async def add_blob(self, data: bytes) -> ContentId:
        return await self._run(self._node.add_blob, data)

    async def get_blob(self, id: ContentId) -> bytes:
        return await self._run(self._node.get_blob, id)

    async def connect(self, address: str) -> PeerId:
        return await self._run(self._node.connect, address)

    async def settle(self) -> None:
        await self._run(self._node.settle)

    async def status(self) -> NodeStatus:
        return await self._run(self._node.status)

    async def _run(self, call: Callable[P, Awaitable[T]], *args: P.args, **kwargs: P.kwargs) -> T:
        async def run() -> T:
            return await call(*args, **kwargs)

        return await asyncio.wrap_future(self._portal.start_task_soon(run))

    def _elsewhere(self, handler: Handler) -> Handler:
        """`handler` as the node's loop can call it: it runs on the application's loop, and is cancelled there."""

        async def handle(call: Call) -> Answer:
            done = anyio.Event()
            outcome: list[Answer | Exception] = []

            async def work() -> None:
                try:
                    outcome.append(await handler(call))
                except Exception as error:  # noqa: BLE001 - raised again in the node's loop, which reports it
                    outcome.append(error)
                finally:
                    self._portal.start_task_soon(done.set)

            running = asyncio.run_coroutine_threadsafe(work(), self._loop)
            try:
                await done.wait()
            except BaseException:
                running.cancel()
                raise
            if not outcome:
                raise HandlerFailure("cancelled", "the provider's application cancelled the call")
            if isinstance(outcome[0], Exception):
                raise outcome[0]
            return outcome[0]

        return handle
