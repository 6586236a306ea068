"""A real node as the workload of a scenario sees it: with the calls of a simulated one, over the node's local API."""

from __future__ import annotations

import base64
import socket
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeVar

import anyio
import anyio.from_thread
import anyio.to_thread

from bnw.api.client import ApiClient
from bnw.cli.testnet.real_store import RealStore
from bnw.identity.keys import IdentityId
from bnw.inbox.payload import Payload
from bnw.node.environment import SystemEnvironment
from bnw.store.database import DATABASE_NAME
from bnw.wire.content_id import ContentId
from bnw.wire.errors import ExitStatus, LocalError

if TYPE_CHECKING:
    from bnw.cli.testnet.answering import AnswerDesk, Handler
    from bnw.cli.testnet.net import Net

T = TypeVar("T")

MAX_THREADS: Final = 1000
"""Questions to nodes that wait for an answer at the same time. Each waits in a thread."""
MAX_PORTS: Final = 5
"""That are tried at one start."""


@dataclass(frozen=True, slots=True)
class Ended:
    """A call's end: what the workload looks at of a `CallResult`."""

    id: ContentId
    status: str
    code: str | None
    was_begun: bool
    output: Payload | None


@dataclass(frozen=True, slots=True)
class Seen:
    """A capability that was looked at."""

    descriptor: bytes | None


@dataclass(frozen=True, slots=True)
class FollowedState:
    state: str


@dataclass(frozen=True, slots=True)
class Followed:
    capabilities: Sequence[FollowedState]


class RealNode:
    """One node of a testnet. `on_own` hears of the ids of objects that the node has published when asked to.

    Methods raise `LocalError` and `RemoteError` as the node says them, and `LocalError` (`no-node`) if it ends first.
    """

    def __init__(
        self,
        name: str,
        identity: IdentityId,
        environment: SystemEnvironment,
        net: Net,
        desk: AnswerDesk,
        threads: anyio.CapacityLimiter,
        on_own: Callable[[str], None],
    ) -> None:
        self.name = name
        self.identity = identity
        self.environment = environment
        """The clock that the node has."""
        self.starts = 0
        self.is_running = False
        self.is_alive = False
        """Whether it runs, or is about to."""
        self.on_start: Callable[[], object] = lambda: None
        """Called after each start."""
        self.port: int | None = None
        """Where it listens, while it runs."""
        self._net = net
        self._desk = desk
        self._threads = threads
        self.store = RealStore(net.directory.home(name).store / DATABASE_NAME, threads)
        self._on_own = on_own
        self._client: ApiClient | None = None
        self._up = anyio.Event()
        self._states: list[FollowedState] = []

    @property
    def node(self) -> RealNode:
        """A simulated node has its node inside; this one is it. Raises `LocalError` (`not-running`)."""
        self.client()
        return self

    def client(self) -> ApiClient:
        """Raises `LocalError` (`not-running`)."""
        if self._client is None:
            raise LocalError(
                "not-running", "this node does not run now", place=self.name, exit_status=ExitStatus.UNREACHABLE
            )
        return self._client

    async def wait_until_running(self) -> None:
        """Return once the node runs; at once if it does."""
        await self._up.wait()

    # Its process

    async def start(self) -> None:
        """Return once the node answers."""
        self.is_alive = True
        try:
            await self.in_thread(self._start_on_a_free_port)
        except BaseException:
            self.is_alive = False
            raise
        self._client = self._net.client(self.name)
        self.is_running = True
        self.starts += 1
        self._up.set()
        self.on_start()

    def _start_on_a_free_port(self) -> None:
        """A node that announces its relay says nowhere which port the system gave it, so it is asked for before.

        Someone else may be given the port in between, though hardly ever; then another is tried.
        """
        for attempt in range(1, MAX_PORTS + 1):
            with socket.create_server(("127.0.0.1", 0)) as server:
                port = server.getsockname()[1]
            try:
                self._net.start([self.name], options=["--listen", f"/ip4/127.0.0.1/tcp/{port}"])
            except LocalError as error:
                if error.code != "port-in-use" or attempt == MAX_PORTS:
                    raise
            else:
                self.port = port
                return

    async def stop(self) -> None:
        self._gone()
        await self.in_thread(lambda: self._net.stop([self.name]))

    async def crash(self, *, unsynced: float = 0.0) -> None:
        """SIGKILL. A real disk keeps what it has promised, so nothing is `unsynced`."""
        self._gone()
        await self.in_thread(lambda: self._net.kill([self.name]))

    def _gone(self) -> None:
        if self.is_running:
            self._up = anyio.Event()
        self.is_running = self.is_alive = False
        self.port = None
        self._client = None

    # What programs ask of a node

    async def publish(self, name: str, descriptor: bytes, *, provide: str) -> None:
        value = await self._ask(lambda api: api.post_bytes("/v1/catalog", descriptor, name=name, provide=provide))
        self._on_own(value["manifest_id"])

    async def withdraw(self, name: str) -> None:
        value = await self._ask(lambda api: api.post("/v1/catalog/withdraw", {"name": name}))
        self._on_own(value["withdrawal_id"])

    async def provide(self, reference: str, handler: Handler, *, policy: object) -> None:
        """`policy` is that anyone may call, as in every scenario."""
        manifest = (await self._ask(lambda api: api.get("/v1/catalog/inspect", reference=reference)))["manifest_id"]
        self._desk.handlers[ContentId(bytes.fromhex(manifest))] = handler
        body: dict[str, Any] = {
            "reference": manifest,
            "arguments": self._desk.arguments,
            "url": "",
            "policy": "",
            "delegated": False,
            "environment": {},
            "directory": str(self._net.directory.home(self.name).path),
            "anyone": True,
            "listed": [],
            "idempotent": False,
            "detach": True,
        }
        self._on_own((await self._ask(lambda api: api.post("/v1/provide", body)))["offer_id"])

    async def renew_offers(self) -> None:
        """A real node renews its offers when it is time; nobody can tell it to do so earlier."""

    async def invoke(self, reference: str, payload: Payload, *, deadline_in: int, patience: float) -> Ended:
        def call(api: ApiClient) -> Mapping[str, Any]:
            with api.lines(
                "POST",
                "/v1/invoke",
                data=payload.data,
                reference=reference,
                media_type=payload.media_type,
                deadline_ms=deadline_in,
                patience_ms=round(patience * 1000),
            ) as events:
                for event in events:
                    if event["event"] == "result":
                        return event
            raise LocalError("node-ended", "the node ended before the call did", place=self.name)

        result = await self._ask(call)
        output = None
        if "output_base64" in result:
            output = Payload(base64.b64decode(result["output_base64"]), result["media_type"])
        return Ended(
            id=ContentId(bytes.fromhex(result["invocation_id"])),
            status=result["status"],
            code=result["code"],
            was_begun=result["started"] is not None,
            output=output,
        )

    async def inspect(self, reference: str) -> Seen:
        """Look at a capability as `bnw catalog-inspect` does, and at its descriptor's bytes."""

        def look(api: ApiClient) -> bytes | None:
            found = api.get("/v1/catalog/inspect", reference=reference)
            return None if found["descriptor_bytes"] is None else api.get_bytes(f"/v1/blobs/{found['descriptor']}")

        return Seen(await self._ask(look))

    async def follow(self, reference: str, *, patience: float) -> None:
        body = {"reference": reference, "patience_ms": max(1, round(patience * 1000))}
        await self._ask(lambda api: api.post("/v1/follows", body))

    def follows(self) -> list[Followed]:
        """As they were when `look_at_follows` was last called."""
        return [Followed(self._states)]

    async def look_at_follows(self) -> None:
        value = await self._ask(lambda api: api.get("/v1/follows"))
        self._states = [FollowedState(item["state"]) for view in value["follows"] for item in view["capabilities"]]

    async def count_peers(self) -> int:
        return len((await self._ask(lambda api: api.get("/v1/status")))["peers"])

    async def listen(self, heard: Callable[[str], None], *, ready: Callable[[], None]) -> None:
        """Hand over the id of each object that is new to the node, until the node ends."""

        def read(api: ApiClient) -> None:
            with api.lines("GET", "/v1/events") as events:
                for event in events:
                    if event["event"] == "listening":
                        anyio.from_thread.run_sync(ready)
                    elif event["event"] == "news":
                        anyio.from_thread.run_sync(heard, event["id"])

        try:
            await self._ask(read)
        except LocalError as error:
            if error.code not in ("no-node", "not-running"):
                raise

    async def _ask(self, question: Callable[[ApiClient], T]) -> T:
        client = self.client()
        return await self.in_thread(lambda: question(client))

    async def in_thread(self, function: Callable[[], T]) -> T:
        """A question that is no longer wanted is left alone; it ends with its node at the latest."""
        return await anyio.to_thread.run_sync(function, abandon_on_cancel=True, limiter=self._threads)
