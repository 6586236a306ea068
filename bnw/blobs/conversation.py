"""One stream to one source: sends it what is ordered, and takes its answers in.

Requests go out without waiting for the answers to those before, so that small blobs do not cost a round trip each; how
many are under way is for the plan to say. An answer is read in pieces, each within what the source has left of its
patience, and no byte is read beyond the size that the wanted blob may have.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Final, TypeVar

import anyio

from bnw.blobs.bell import Bell
from bnw.blobs.plan import STALLED, FetchPlan
from bnw.blobs.protocol import BlobAbsent, BlobBusy, BlobFollows, GetBlob
from bnw.blobs.sources import Wanted
from bnw.objects.message import read_message
from bnw.transport.message_stream import MessageStream
from bnw.transport.tasks import background_tasks
from bnw.wire.content_id import content_id
from bnw.wire.errors import InvalidError, RemoteError
from bnw.wire.frames import encode_frame
from bnw.wire.limits import KIB

logger = logging.getLogger(__name__)

T = TypeVar("T")

LINGER: Final = 5.0
"""Seconds that a stream without orders is kept open."""
PIECE: Final = 64 * KIB
"""Bytes of an answer after which a source is credited with them."""

OnBlob = Callable[[Wanted, bytes], object]
"""Gets a blob whose bytes are right."""


class Conversation:
    """`run` ends when there has been nothing to do for a while or the plan is complete. New orders need a new one then.

    `bell` is rung whenever the plan has changed, and tells of changes in it.
    """

    def __init__(self, messages: MessageStream, plan: FetchPlan, unsent: deque[Wanted], bell: Bell) -> None:
        self._messages = messages
        self._peer = messages.peer
        self._plan = plan
        self._unsent = unsent
        self._bell = bell

    async def run(self, on_blob: OnBlob) -> None:
        """Raises `RemoteError` for whatever ends the conversation before its time."""
        self._plan.opened(self._peer, anyio.current_time())
        async with background_tasks() as tasks:
            tasks.start_soon(self._send_requests)
            while (wanted := await self._next_due()) is not None:
                await self._take_answer(wanted, on_blob)

    async def _next_due(self) -> Wanted | None:
        """What the source has to answer next; waits for orders, within reason."""
        with anyio.move_on_after(LINGER):
            while (wanted := self._plan.due(self._peer)) is None and not self._plan.is_complete:
                await self._bell.wait()
        # Asked once more, because an order may have come in the moment when patience ended.
        return wanted if wanted is not None else self._plan.due(self._peer)

    async def _send_requests(self) -> None:
        while True:
            while not self._unsent:
                await self._bell.wait()
            frames = b"".join(encode_frame(GetBlob(wanted.id).to_wire()) for wanted in self._unsent)
            self._unsent.clear()
            try:
                await self._messages.send_bytes(frames)
            except RemoteError as error:
                # There is an answer due to every request, so whoever waits for it finds the stream just as broken.
                logger.debug("requests to %s not sent: %s", self._peer, error)
                return

    async def _take_answer(self, wanted: Wanted, on_blob: OnBlob) -> None:
        value = await self._in_time(self._messages.receive)
        if value is None:
            raise RemoteError("stream-closed", "the peer ended the stream with answers due", place=f"peer {self._peer}")
        try:
            answer = read_message(value, BlobFollows, BlobAbsent, BlobBusy)
            if isinstance(answer, BlobFollows):
                wanted.check_size(answer.size)
        except InvalidError as error:
            raise error.from_peer(self._peer) from error
        now = anyio.current_time()
        match answer:
            case BlobAbsent():
                self._plan.absent(self._peer, now)
            case BlobBusy():
                self._plan.busy(self._peer, now)
            case BlobFollows(size=size):
                data = await self._receive_blob(size)
                if content_id(data) != wanted.id:
                    raise RemoteError(
                        "wrong-bytes", f"sent bytes that are not {wanted.id.hex()}", place=f"peer {self._peer}"
                    )
                self._plan.gave(self._peer, anyio.current_time())
                on_blob(wanted, data)
        self._bell.ring()

    async def _receive_blob(self, size: int) -> bytes:
        pieces: list[bytes] = []
        for start in range(0, size, PIECE):
            count = min(PIECE, size - start)
            pieces.append(await self._in_time(partial(self._messages.receive_exactly, count)))
            self._plan.progressed(self._peer, count, anyio.current_time())
        return b"".join(pieces)

    async def _in_time(self, receive: Callable[[], Awaitable[T]]) -> T:
        with anyio.CancelScope(deadline=self._plan.deadline(self._peer)):
            return await receive()
        raise RemoteError(STALLED, "sends too little in the time it takes", place=f"peer {self._peer}")
