"""A node of a simulated world: the node that ships, over a store in memory and an endpoint on the simulated network."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass

import anyio
from anyio.abc import TaskGroup, TaskStatus

from bnw.identity.keys import IdentityId, SigningKey
from bnw.identity.keystore import Keystore, new_keystore
from bnw.inbox.payload import Payload
from bnw.invoke.descriptors import DescriptorPlugins
from bnw.invoke.requester import DEFAULT_DEADLINE, CallResult
from bnw.node.configuration import Configuration
from bnw.node.keyring import KeyRing
from bnw.node.node import DEFAULT_PATIENCE, Node
from bnw.node.views import CallEnded, CatalogNews, NodeEvent
from bnw.sim.disk import Disk, SimulatedStore
from bnw.sim.environment import SeededEnvironment
from bnw.store.interface import Store
from bnw.transport.interface import Transport
from bnw.transport.memory import MemoryNetwork
from bnw.wire.errors import BnwError, LocalError


@dataclass(frozen=True, slots=True)
class Parts:
    """What a node is made of."""

    keys: KeyRing
    store: Store
    transport: Transport
    environment: SeededEnvironment
    configuration: Configuration
    plugins: DescriptorPlugins


Shape = Callable[[Parts], Node]


def real_node(parts: Parts) -> Node:
    """The node that ships."""
    return Node(
        keys=parts.keys,
        store=parts.store,
        transport=parts.transport,
        environment=parts.environment,
        configuration=parts.configuration,
        plugins=parts.plugins,
    )


class SimulatedNode:
    """Keys, store and environment outlast a stop, as a home directory does; each start makes a new `Node` of them."""

    def __init__(
        self,
        name: str,
        *,
        environment: SeededEnvironment,
        network: MemoryNetwork,
        configuration: Configuration,
        plugins: DescriptorPlugins,
        tasks: TaskGroup,
        observed: bool,
        disk: Disk | None = None,
        shape: Shape = real_node,
    ) -> None:
        """Needs a running event loop. The node's tasks run in `tasks`. `observed` nodes put their events in the trace.

        The first random bytes of `environment` become the node's keys. `shape` makes the node at each start: one that
        ships, unless it is given to change some of its parts, as an adversary does.
        """
        self.name = name
        self.starts = 0
        self.environment = environment
        self.configuration = configuration
        self.disk = disk or Disk()
        self.store = SimulatedStore(self.disk)
        self._shape = shape
        self._network = network
        self._plugins = plugins
        self._tasks = tasks
        self._observed = observed
        self._keys = KeyRing(new_keystore(environment), environment, save=_keep_in_memory)
        self._node: Node | None = None
        self._alive = False
        self._crashing = anyio.CancelScope()
        self._up = anyio.Event()
        self._stop = anyio.Event()
        self._stopped = anyio.Event()

    @property
    def identity(self) -> IdentityId:
        return self._keys.identity

    @property
    def signing_key(self) -> SigningKey:
        """For whoever makes an adversary of the node."""
        return self._keys.signing_key

    @property
    def is_running(self) -> bool:
        return self._node is not None

    @property
    def is_alive(self) -> bool:
        """Whether the node runs, or is about to, or is about to end."""
        return self._alive

    @property
    def node(self) -> Node:
        """The running node. Raises `LocalError` (`not-running`)."""
        if self._node is None:
            raise LocalError("not-running", "this simulated node does not run now", place=self.name)
        return self._node

    async def start(self) -> None:
        """Return once the node runs. Raises `LocalError` (`running`) if it does already."""
        if self._alive:
            raise LocalError("running", "this simulated node runs already", place=self.name)
        self._alive = True
        self._stop, self._stopped, self._crashing = anyio.Event(), anyio.Event(), anyio.CancelScope()
        await self._tasks.start(self._live)

    async def wait_until_running(self) -> None:
        """Return once the node runs; at once if it does."""
        await self._up.wait()

    async def stop(self) -> None:
        """Let the node end as on a user's request, and return when it has. Does nothing if it does not run."""
        if self._alive:
            self._stop.set()
            await self._stopped.wait()

    async def crash(self, *, unsynced: float = 0.0) -> None:
        """Let the node vanish in the middle of whatever it does, and return when it has. Does nothing if it is stopped.

        Nothing more leaves it. What its disk was still writing is lost, and with `unsynced` also what it claims to have
        written in so many last seconds.
        """
        if self._alive:
            self._network.crash(self.name)
            # The node's tasks still unwind; what they write then goes to a store that nobody sees again.
            self.store = self.store.after_crash(unsynced)
            self._crashing.cancel()
            await self._stopped.wait()

    async def renew_offers(self) -> None:
        """Say all offers again, earlier than the node would by itself."""
        for capability in (await self.node.status()).providing:
            await self.node._publisher.offer(capability)

    async def invoke(
        self,
        reference: str,
        payload: Payload,
        *,
        public: bool = False,
        provider: IdentityId | None = None,
        deadline_in: int = DEFAULT_DEADLINE,
        patience: float = DEFAULT_PATIENCE,
    ) -> CallResult:
        """`Node.invoke`, with its steps and its receipt, or the error that ended it, in the trace."""

        def on_step(step: str, details: Mapping[str, str]) -> None:
            self._record("step", step, *(f"{key}={details[key]}" for key in sorted(details)))

        try:
            result = await self.node.invoke(
                reference,
                payload,
                public=public,
                provider=provider,
                deadline_in=deadline_in,
                patience=patience,
                on_step=on_step,
            )
        except BnwError as error:
            self._record("call-failed", error.code)
            raise
        self._record("receipt", result.receipt.id.hex(), result.status, result.code or "-")
        if isinstance(result.output, Payload):  # nothing larger travels without a disk
            self._record("output", result.output.data)
        return result

    async def _live(self, *, task_status: TaskStatus[None]) -> None:
        store = self.store
        try:
            with self._crashing:
                async with self._network.endpoint(self.name) as transport, anyio.create_task_group() as group:
                    node = self._shape(
                        Parts(self._keys, store, transport, self.environment, self.configuration, self._plugins)
                    )
                    async with node.events() as events:
                        if self._observed:
                            group.start_soon(self._record_events, events)
                        async with node.running():
                            self._node = node
                            self.starts += 1
                            self._up.set()
                            self._record("started", self.identity.hex())
                            task_status.started()
                            await self._stop.wait()
        finally:
            self._node = None
            self._alive = False
            self._up = anyio.Event()
            self._record("stopped")
            self._stopped.set()

    async def _record_events(self, events: AsyncIterator[NodeEvent]) -> None:
        """Until the node closes its feed."""
        async for event in events:
            match event:
                case CatalogNews(kind, id):
                    self._record("news", kind, id.hex())
                case CallEnded(invocation, status=status, code=code):
                    self._record("call", invocation.hex(), status, code or "-")

    def _record(self, *what: object) -> None:
        self._network.record(self.name, *what)


async def _keep_in_memory(keystore: Keystore) -> None:
    """Saves a keystore by doing nothing: the key ring that holds it outlasts the node's stops."""
