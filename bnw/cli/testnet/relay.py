"""Links between real nodes: small relays on loopback that pass bytes on late, slowly, or not at all.

Each pair of neighbours has a relay, which one of the two dials; it knows both ends, so it can have the latency, jitter,
loss and bandwidth that the scenario gives this pair, decided by the very code that decides them in the simulator
(`bnw.transport.memory.links.Direction`), and it can be cut. Each node has one more, whose address its offers announce:
whoever dials a provider comes through it. That one cannot know who dials, so it has the provider's own link, and while
any part of the network is cut off it passes nothing, lest somebody call across the cut.

A relay needs no rights and no module of the kernel, unlike network namespaces and netem.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

import anyio
import anyio.abc

from bnw.transport.memory import Link
from bnw.transport.memory.links import Direction
from bnw.transport.memory.traffic import Traffic
from bnw.wire.environment import Environment
from bnw.wire.limits import KIB

CHUNK: Final = 16 * KIB
"""Bytes that count as one entry of the link at most: about what a node writes at a time."""
MAX_WAITING: Final = 256
"""Chunks on their way in one direction; more stay with the sender, as they do when a socket's buffer is full."""

_BROKEN: Final = (anyio.EndOfStream, anyio.BrokenResourceError, anyio.ClosedResourceError, OSError)


@dataclass(slots=True)
class Gate:
    """Open or cut."""

    _open: anyio.Event = field(default_factory=anyio.Event)

    def __post_init__(self) -> None:
        self._open.set()

    def set(self, *, is_open: bool) -> None:
        if is_open:
            self._open.set()
        elif self._open.is_set():
            self._open = anyio.Event()

    async def wait(self) -> None:
        while not self._open.is_set():
            await self._open.wait()


@dataclass(slots=True)
class Relay:
    """One listening socket in front of a node. `target` is the port where that listens now; None while it does not."""

    link: Link
    environment: Environment
    target: Callable[[], int | None]
    gate: Gate = field(default_factory=Gate)
    port: int = 0
    bytes: int = 0
    """That have arrived, both ways."""

    async def run(self, *, task_status: anyio.abc.TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Listen and pass on until cancelled."""
        async with await anyio.create_tcp_listener(local_host="127.0.0.1", local_port=0) as listener:
            self.port = listener.extra(anyio.abc.SocketAttribute.local_port)  # noqa: S610 - no database is in sight
            task_status.started()
            await listener.serve(self._serve)

    async def _serve(self, dialler: anyio.abc.SocketStream) -> None:
        async with dialler:
            # The handshake of a connection crosses the link as well.
            await anyio.sleep(2 * self.link.latency)
            await self.gate.wait()
            port = self.target()
            if port is None:
                return
            try:
                server = await anyio.connect_tcp("127.0.0.1", port)
            except OSError:
                return
            async with server, anyio.create_task_group() as group:
                for source, sink in ((dialler, server), (server, dialler)):
                    group.start_soon(self._pass_on, source, sink, group.cancel_scope)

    async def _pass_on(
        self, source: anyio.abc.SocketStream, sink: anyio.abc.SocketStream, both: anyio.CancelScope
    ) -> None:
        """One direction, in order. When it ends, so does the other."""
        direction = Direction(self.link, self.environment)
        enter, leave = anyio.create_memory_object_stream[tuple[float, bytes]](MAX_WAITING)

        async def read() -> None:
            with enter:
                while True:
                    try:
                        data = await source.receive(CHUNK)
                    except _BROKEN:
                        return
                    await enter.send((direction.arrival(anyio.current_time(), len(data)), data))

        async with anyio.create_task_group() as group:
            group.start_soon(read)
            with leave:
                async for arrival, data in leave:
                    await anyio.sleep_until(arrival)
                    await self.gate.wait()
                    try:
                        await sink.send(data)
                    except _BROKEN:
                        break
                    self.bytes += len(data)
            both.cancel()


@dataclass(slots=True)
class Relays:
    """All relays of a testnet, with what is asked of a simulated network."""

    between: dict[tuple[str, str], Relay] = field(default_factory=dict)
    """By who dials and who is dialled."""
    public: dict[str, Relay] = field(default_factory=dict)
    _divisions: set[frozenset[str]] = field(default_factory=set)

    async def start(self, tasks: anyio.abc.TaskGroup) -> None:
        for relay in self.all:
            await tasks.start(relay.run)

    @property
    def all(self) -> list[Relay]:
        return [*self.between.values(), *self.public.values()]

    @property
    def traffic(self) -> Traffic:
        """Bytes that have arrived, by whoever was dialled: both ways of a connection count for that node."""
        traffic = Traffic()
        for (_, target), relay in (
            *self.between.items(),
            *((("", name), relay) for name, relay in self.public.items()),
        ):
            traffic.of(target).received_bytes += relay.bytes
        return traffic

    def divide(self, side: frozenset[str]) -> None:
        """Nothing passes between `side` and the rest. What is on its way arrives after the heal, as with TCP."""
        self._divisions.add(side)
        self._set_gates()

    def unite(self, side: frozenset[str]) -> None:
        """Undo `divide`."""
        self._divisions.discard(side)
        self._set_gates()

    def _set_gates(self) -> None:
        for (one, other), relay in self.between.items():
            relay.gate.set(is_open=all((one in side) == (other in side) for side in self._divisions))
        for relay in self.public.values():
            relay.gate.set(is_open=not self._divisions)
