"""Runs a plan: a conversation with each source that is to be asked, and a place in the store for what they give."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import AsyncIterator, Callable, Sequence

import anyio
from anyio.abc import TaskGroup

from bnw.blobs.bell import Bell
from bnw.blobs.conversation import Conversation
from bnw.blobs.plan import FetchPlan
from bnw.blobs.protocol import BLOB_PROTOCOL
from bnw.blobs.sources import Wanted
from bnw.store.interface import Store
from bnw.transport.interface import PeerConnected, PeerId, Transport, TransportEvent
from bnw.transport.message_stream import MessageStream
from bnw.transport.tasks import background_tasks
from bnw.wire.errors import ExitStatus, LocalError, RemoteError

logger = logging.getLogger(__name__)

OnProgress = Callable[[int, int], None]
"""Told how many bytes are safe so far, and how many there will be. Must neither block nor raise."""


class Transfer:
    """Brings what `plan` wants into the store. `bell` is shared by all transfers that share claims."""

    def __init__(self, transport: Transport, store: Store, plan: FetchPlan, bell: Bell) -> None:
        self._transport = transport
        self._store = store
        self._plan = plan
        self._bell = bell
        self._unsent: dict[PeerId, deque[Wanted]] = {}
        """Orders of the sources with which a conversation goes on."""
        self._failure: LocalError | None = None

    async def run(self, prefer: Sequence[PeerId], patience: float, on_progress: OnProgress) -> None:
        """Return once everything is durable.

        Raises `RemoteError` (`blob-not-found`) when no source is left that might help, or none has given anything for
        `patience` seconds, and `LocalError` when the store fails.
        """
        async with self._transport.events() as events, background_tasks() as watching:
            connected = [info.peer for info in self._transport.peers()]
            for peer in (*(peer for peer in prefer if peer in connected), *connected):
                self._plan.add_source(peer)
            watching.start_soon(self._watch_peers, events)
            async with anyio.create_task_group() as tasks:
                problem = await self._direct(tasks, patience, on_progress)
                if problem is not None:
                    tasks.cancel_scope.cancel()
        if problem is not None:
            raise problem

    async def _direct(
        self, tasks: TaskGroup, patience: float, on_progress: OnProgress
    ) -> LocalError | RemoteError | None:
        """Give orders until the plan is complete; else return why it will not be."""
        kept, since = -1, anyio.current_time()
        while True:
            now = anyio.current_time()
            if self._plan.kept_bytes != kept:
                kept, since = self._plan.kept_bytes, now
                on_progress(kept, self._plan.total_bytes)
            if self._failure is not None:
                return self._failure
            if self._plan.is_complete:
                return None
            orders = self._plan.assign(now)
            for order in orders:
                if order.peer not in self._unsent:
                    self._unsent[order.peer] = deque()
                    tasks.start_soon(self._converse, order.peer, tasks)
                self._unsent[order.peer].append(order.wanted)
            if self._plan.is_hopeless or now >= since + patience:
                return _not_found(self._plan)
            if orders:  # and only then, or two transfers would wake each other for ever
                self._bell.ring()
            with anyio.CancelScope(deadline=min(self._plan.next_time(now), since + patience)):
                await self._bell.wait()

    async def _converse(self, peer: PeerId, tasks: TaskGroup) -> None:
        try:
            stream = await self._transport.open_stream(peer, BLOB_PROTOCOL)
        except RemoteError as error:
            self._give_up(peer, error)
            return
        async with MessageStream(stream) as messages:
            conversation = Conversation(messages, self._plan, self._unsent[peer], self._bell)
            try:
                await conversation.run(lambda wanted, data: tasks.start_soon(self._keep, wanted, data))
            except RemoteError as error:
                self._give_up(peer, error)
                await stream.reset()
            else:
                # Before the stream is closed, which may take a while: a new order needs a new conversation.
                del self._unsent[peer]

    def _give_up(self, peer: PeerId, error: RemoteError) -> None:
        logger.info("source %s: %s", peer, error)
        del self._unsent[peer]
        self._plan.failed(peer, error.code, anyio.current_time())
        self._bell.ring()

    async def _keep(self, wanted: Wanted, data: bytes) -> None:
        try:
            await self._store.put_blob(data)
        except LocalError as error:
            self._failure = error
        else:
            self._plan.kept(wanted.id)
        self._bell.ring()

    async def _watch_peers(self, events: AsyncIterator[TransportEvent]) -> None:
        async for event in events:
            if isinstance(event, PeerConnected):
                self._plan.add_source(event.peer)
            else:
                self._plan.left(event.peer)
            self._bell.ring()


def _not_found(plan: FetchPlan) -> RemoteError:
    missing = [wanted.id.hex() for wanted in plan.wanted if plan.is_missing(wanted.id)]
    what = "the blob" if len(plan.wanted) == 1 else f"{len(missing)} of {len(plan.wanted)} blobs"
    return RemoteError(
        "blob-not-found",
        f"no connected peer gave {what}; asked: {plan.story()}",
        place=missing[0],
        cure="connect to a peer that has it and try again; what has arrived is kept",
        exit_status=ExitStatus.UNREACHABLE,
    )
