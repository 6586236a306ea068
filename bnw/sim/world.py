"""A simulated world: a network, its nodes by name, and the seed that decides everything in it."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import AsyncExitStack
from types import TracebackType
from typing import Self

from anyio.abc import TaskGroup

from bnw.invoke.descriptors import DescriptorPlugins
from bnw.node.configuration import Configuration
from bnw.sim.disk import Disk
from bnw.sim.environment import SeededEnvironment
from bnw.sim.node import Shape, SimulatedNode, real_node
from bnw.sim.profiles import InlineProfiles
from bnw.sim.trace import EventTrace
from bnw.transport.interface import PeerId
from bnw.transport.memory import Link, MemoryNetwork
from bnw.transport.memory.dialling import to_address
from bnw.transport.tasks import background_tasks
from bnw.wire.errors import LocalError
from bnw.wire.names import check_name

NETWORK = "simulation"

TICK = 0.001
"""Seconds: what arrives within the same millisecond arrives at its end. The queue of a network of hundreds of nodes
then wakes once for all of it, and a node's clock has no finer unit."""


class World:
    """An asynchronous context manager; leaving it stops all nodes. Use within `run_virtual` for repeatable runs.

    Each node, the links and the world itself draw from streams of their own, so what one of them does leaves the random
    bytes of the others alone. `link` lies between any two nodes unless `network.set_link` says otherwise. `plugins`
    serve all nodes; by default BNW's own profiles. Without a `trace` nothing is recorded, which is a little faster; it
    is another run than one with a trace, since the tasks that watch nodes for the trace take part in the scheduling.
    """

    def __init__(
        self,
        seed: int,
        *,
        link: Link | None = None,
        trace: EventTrace | None = None,
        plugins: DescriptorPlugins | None = None,
    ) -> None:
        """Raises `InvalidError` (`cbor-integer`) for a seed outside ±(2^53−1)."""
        self.seed = seed
        self.environment = SeededEnvironment(seed, "world")
        """For whoever plays with the world: choices of theirs, and a clock that is right."""
        self.network = MemoryNetwork(
            SeededEnvironment(seed, "links"), link=link, tick=TICK, trace=None if trace is None else trace.add
        )
        self.nodes: dict[str, SimulatedNode] = {}
        """All nodes ever added, in that order."""
        self._observed = trace is not None
        self._plugins = plugins or InlineProfiles(self.environment.now_ms)
        self._stack = AsyncExitStack()
        self._tasks: TaskGroup | None = None

    async def __aenter__(self) -> Self:
        await self._stack.enter_async_context(self.network)
        self._tasks = await self._stack.enter_async_context(background_tasks())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> bool | None:
        return await self._stack.__aexit__(kind, error, traceback)

    def add(
        self,
        name: str,
        *,
        peers: Iterable[str] = (),
        mailboxes: Iterable[str] = (),
        clock_offset_ms: int = 0,
        clock_drift: float = 0.0,
        disk: Disk | None = None,
        shape: Shape = real_node,
    ) -> SimulatedNode:
        """A new node that stays connected to the nodes named `peers`; it does not run yet.

        Raises `InvalidError` (`name`), and `LocalError` (`node-exists`).
        """
        check_name(name, "node name")
        if name in self.nodes:
            raise LocalError("node-exists", "there is a node of this name already", place=name)
        addresses = tuple(to_address(PeerId(peer)) for peer in peers)
        node = self.nodes[name] = SimulatedNode(
            name,
            environment=SeededEnvironment(
                self.seed, "node", name, clock_offset_ms=clock_offset_ms, clock_drift=clock_drift
            ),
            network=self.network,
            configuration=Configuration(
                network=NETWORK,
                peers=addresses,
                mailboxes=tuple(to_address(PeerId(mailbox)) for mailbox in mailboxes),
            ),
            plugins=self._plugins,
            tasks=self.tasks,
            observed=self._observed,
            disk=disk,
            shape=shape,
        )
        return node

    async def start(
        self,
        name: str,
        *,
        peers: Iterable[str] = (),
        mailboxes: Iterable[str] = (),
        clock_offset_ms: int = 0,
    ) -> SimulatedNode:
        """`add` a node and start it."""
        node = self.add(name, peers=peers, mailboxes=mailboxes, clock_offset_ms=clock_offset_ms)
        await node.start()
        return node

    @property
    def tasks(self) -> TaskGroup:
        """For tasks that end with the world."""
        assert self._tasks is not None, "a world is used within its `async with`"
        return self._tasks

    def record(self, *what: object) -> None:
        """Put a line of the experimenter's own into the trace."""
        self.network.record("world", *what)
