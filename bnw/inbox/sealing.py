"""Seals a payload of any size into a store, chunk by chunk as the plaintext comes.

One pass over the plaintext is enough: its hash and true size stand in the access records, which are sealed at the end.
A few chunks are in memory at a time. The caller keeps the manifest; with it, and not before, the payload exists.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import AsyncIterable, AsyncIterator, Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Final

import anyio
from blake3 import blake3

from bnw.blobs.ahead import results_in_order
from bnw.blobs.offload import Offload, inline
from bnw.identity.keys import IdentityId, SigningKey
from bnw.inbox.chunks import Cutter, seal_chunk
from bnw.inbox.manifest import Content, check_recipients, new_payload_key, public_manifest, sealed_manifest
from bnw.objects.signed import SignedObject
from bnw.store.interface import Store
from bnw.wire.content_id import ContentId
from bnw.wire.environment import Environment
from bnw.wire.errors import InvalidError, LocalError
from bnw.wire.limits import MAX_PAYLOAD, PAYLOAD_CHUNK

logger = logging.getLogger(__name__)

AHEAD: Final = 4
"""Chunks that are sealed or written at once. Two copies of each are in memory."""

OnSealed = Callable[[int, int | None], None]
"""Told how many bytes of plaintext are safe so far, and how many there will be, if that is known.

Must neither block nor raise.
"""


def _ignore(done: int, total: int | None) -> None:
    """Wants to know nothing."""


@dataclass(frozen=True, slots=True)
class Outgoing:
    """A plaintext on its way into a payload.

    `source` gives its bytes in pieces of any size. `size` is how many there will be, if that is known beforehand; other
    than that many are then an error.
    """

    source: AsyncIterable[bytes]
    media_type: str
    name: str | None = None
    size: int | None = None


async def seal_to_store(
    outgoing: Outgoing,
    store: Store,
    *,
    sender: SigningKey,
    recipients: Mapping[IdentityId, bytes],
    environment: Environment,
    offload: Offload = inline,
    on_progress: OnSealed = _ignore,
) -> SignedObject:
    """Put the sealed chunks of a plaintext into `store` and return its manifest, which is not put.

    `recipients` maps each to an inbox key of theirs that is valid now. When this raises, or is cancelled, the chunks
    are removed again. Raises `InvalidError`: `too-large` above 1 GiB, `payload-size` for a wrong `size`, `field` for a
    bad media type or name, `recipients`, `inbox-key`; `LocalError` when the store fails; and whatever `source` raises.
    """
    Content(outgoing.media_type, outgoing.name).check()
    check_recipients(recipients)
    key = new_payload_key(environment)
    run = _Run(outgoing, store, key, offload, on_progress)
    finished = False
    try:
        content, chunks = await run.chunks()
        manifest = sealed_manifest(
            content, chunks, key=key, sender=sender, recipients=recipients, environment=environment
        )
        finished = True
    finally:
        if not finished:
            await run.remove_chunks()
    return manifest


async def publish_to_store(
    outgoing: Outgoing,
    store: Store,
    *,
    sender: SigningKey,
    recipients: Iterable[IdentityId],
    environment: Environment,
    offload: Offload = inline,
    on_progress: OnSealed = _ignore,
) -> SignedObject:
    """Carry a plaintext in the clear; see `bnw.inbox.payload.publish_payload`. Raises as `seal_to_store` does.

    Chunks that are in the store when this raises stay there: others may have put the same public bytes.
    """
    Content(outgoing.media_type, outgoing.name).check()
    everyone = check_recipients(recipients)
    content, chunks = await _Run(outgoing, store, None, offload, on_progress).chunks()
    return public_manifest(content, chunks, sender=sender, recipients=everyone, environment=environment)


class _Run:
    """One pass over a plaintext."""

    def __init__(
        self, outgoing: Outgoing, store: Store, key: bytes | None, offload: Offload, on_progress: OnSealed
    ) -> None:
        self._outgoing = outgoing
        self._store = store
        self._key = key
        self._offload = offload
        self._on_progress = on_progress
        self._stored: list[ContentId] = []

    async def chunks(self) -> tuple[Content, list[ContentId]]:
        outgoing = self._outgoing
        pieces = _Pieces(outgoing, self._offload, pad=self._key is not None)
        ids: list[ContentId] = []
        safe = 0
        async with results_in_order(pieces, self._carry, ahead=AHEAD) as results:
            async for id, size in results:
                ids.append(id)
                safe += size
                self._on_progress(min(safe, pieces.size), outgoing.size)
        return Content(outgoing.media_type, outgoing.name, pieces.size, pieces.hash), ids

    async def _carry(self, piece: _Piece) -> tuple[ContentId, int]:
        chunk = piece.data
        if self._key is not None:
            seal = partial(seal_chunk, piece.data, self._key, piece.number, is_last=piece.is_last)
            chunk = await self._offload(seal)
        id = await self._store.put_blob(chunk)
        self._stored.append(id)
        return id, len(piece.data)

    async def remove_chunks(self) -> None:
        """Nobody knows the key any more, so these chunks are of no use to anybody."""
        with anyio.CancelScope(shield=True):
            for id in self._stored:
                try:
                    await self._store.delete_blob(id)
                except LocalError as error:
                    # What went wrong before this is already on its way to the caller.
                    logger.warning("chunk %s of a payload that was given up stays in the store: %s", id.hex(), error)


@dataclass(frozen=True, slots=True)
class _Piece:
    number: int
    data: bytes
    is_last: bool


class _Pieces:
    """The pieces of a plaintext, as an iterator. `size` and `hash` are those of the plaintext once it has ended."""

    def __init__(self, outgoing: Outgoing, offload: Offload, *, pad: bool) -> None:
        self._source = aiter(outgoing.source)
        self._announced = outgoing.size
        self._offload = offload
        self._cutter = Cutter(pad=pad)
        self._hasher = blake3()
        self._ready: deque[_Piece] = deque()
        self._count = 0
        self._ended = False

    @property
    def size(self) -> int:
        return self._cutter.size

    @property
    def hash(self) -> bytes:
        return self._hasher.digest()

    def __aiter__(self) -> AsyncIterator[_Piece]:
        return self

    async def __anext__(self) -> _Piece:
        while not self._ready:
            if self._ended:
                raise StopAsyncIteration
            await self._read_on()
        return self._ready.popleft()

    async def _read_on(self) -> None:
        try:
            data = await anext(self._source)
        except StopAsyncIteration:
            if self._announced not in {None, self.size}:
                raise _wrong_size(self.size, self._announced) from None
            self._ended = True
            self._add(self._cutter.finish())
            return
        size = self.size + len(data)
        if size > MAX_PAYLOAD:
            raise InvalidError("too-large", f"a payload has at most {MAX_PAYLOAD:,} bytes", cure="send it in parts")
        if self._announced is not None and size > self._announced:
            raise _wrong_size(size, self._announced)
        if len(data) > PAYLOAD_CHUNK:
            await self._offload(partial(self._hasher.update, data))
        else:  # takes less than passing it to a thread and back
            self._hasher.update(data)
        self._add(self._cutter.feed(data))

    def _add(self, pieces: Iterable[tuple[bytes, bool]]) -> None:
        for data, is_last in pieces:
            self._ready.append(_Piece(self._count, data, is_last))
            self._count += 1


def _wrong_size(size: int, announced: int | None) -> InvalidError:
    return InvalidError("payload-size", f"{size:,} bytes came where {announced:,} were announced")
