"""Opens a payload whose chunks are in the store, as a stream or into a file, a few chunks in memory at a time.

    record = read_access(manifest, reader=identity, inbox_keys=keys)
    async with opened_payload(store, manifest, record, offload=offload) as pieces:
        async for piece in pieces: ...
    await save_payload(store, manifest, record, directory / received_name(manifest, record), offload=offload)

Each piece of a sealed payload is what somebody with the payload key sealed, at this very place. That it is the whole,
and what the sender declared, is known at the end: a stream raises then, a file takes its name only then.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Final

import anyio

from bnw.blobs.ahead import results_in_order
from bnw.blobs.fetcher import ignore_progress
from bnw.blobs.offload import Offload, inline
from bnw.blobs.transfer import OnProgress
from bnw.inbox.access import AccessRecord
from bnw.inbox.chunks import open_chunk
from bnw.inbox.file_names import safe_file_name
from bnw.inbox.manifest import payload_body
from bnw.inbox.part_file import PartFile
from bnw.inbox.plaintext import PlaintextCheck
from bnw.inbox.transfer import stored_chunk
from bnw.objects.signed import SignedObject
from bnw.store.interface import Store
from bnw.wire.content_id import ContentId

AHEAD: Final = 4
"""Chunks that are read or opened at once. Two copies of each are in memory."""
UNNAMED: Final = "payload-{}"
"""What a payload without a name is called: with the first half of its manifest's id."""


@asynccontextmanager
async def opened_payload(
    store: Store, manifest: SignedObject, record: AccessRecord, *, offload: Offload = inline
) -> AsyncIterator[AsyncIterator[bytes]]:
    """Within the body, an iterator over the plaintext in pieces of at most 1 MiB.

    `record` is what `read_access` gave for `manifest`. The iterator raises `InvalidError` (`chunk`, `payload-padding`,
    `payload-size`, `payload-hash`), at the end too, and then what came before is not to be trusted; and `LocalError`
    (`chunk-missing`, `store-damaged`, or what else the store raises).
    """
    body = payload_body(manifest)
    last = len(body.chunks) - 1

    async def open_one(item: tuple[int, ContentId]) -> bytes:
        number, id = item
        chunk = await stored_chunk(store, id)
        if record.key is None:
            return chunk
        return await offload(partial(open_chunk, chunk, record.key, number, is_last=number == last))

    async with results_in_order(enumerate(body.chunks), open_one, ahead=AHEAD) as pieces:
        yield _Checked(pieces, PlaintextCheck(record))


async def save_payload(
    store: Store,
    manifest: SignedObject,
    record: AccessRecord,
    path: Path,
    *,
    offload: Offload = inline,
    on_progress: OnProgress = ignore_progress,
) -> None:
    """Open a payload into a new file at `path`, which only its owner may read.

    `path` is the caller's own choice; `received_name` makes a file name of what the sender says. There is no such file
    until all of it is there, durable and as declared; a crash leaves a file `.bnw-*.part` beside it, which saving the
    payload again takes over. Raises as `opened_payload`, and `LocalError` (`exists`, `disk-full`, `write-failed`).
    """
    part = await offload(partial(PartFile, path, manifest.id))
    try:
        async with opened_payload(store, manifest, record, offload=offload) as pieces:
            done = 0
            on_progress(done, record.size)
            async for piece in pieces:
                await offload(partial(part.write, piece))
                done += len(piece)
                on_progress(done, record.size)
        await offload(part.publish)
    finally:
        with anyio.CancelScope(shield=True):
            await offload(part.close)


def received_name(manifest: SignedObject, record: AccessRecord) -> str:
    """A name for the file of a payload. Raises `InvalidError` (`file-name`) if the sender's name cannot be used."""
    return UNNAMED.format(manifest.id.hex()[:32]) if record.name is None else safe_file_name(record.name)


class _Checked:
    """Pieces of plaintext that have passed the check; ends only if all of it has."""

    def __init__(self, pieces: AsyncIterator[bytes], check: PlaintextCheck) -> None:
        self._pieces = pieces
        self._check = check

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        data = b""
        while not data:  # a piece that is all padding is nobody's business
            try:
                piece = await anext(self._pieces)
            except StopAsyncIteration:
                self._check.finish()
                raise
            data = self._check.take(piece)  # hashing a chunk takes less than passing it to a thread and back
        return data
