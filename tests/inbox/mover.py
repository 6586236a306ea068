"""One side of a payload's way between two processes, over libp2p and with real stores. Run by `test_kill_9.py`.

mover.py serve DIRECTORY PORT SIZE      seals a payload at first, then serves it; says `served ID` for every chunk
mover.py fetch DIRECTORY ADDRESS MANIFEST FILE      says `kept BYTES`, saves the payload and says `saved`
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from pathlib import Path

import anyio
from payload_parts import ALICE, BOB, SeededEnvironment, keys_of

from bnw.blobs.fetcher import BlobFetcher
from bnw.blobs.offload import worker_threads
from bnw.blobs.server import BlobServer
from bnw.inbox.opening import save_payload
from bnw.inbox.sealing import Outgoing, seal_to_store
from bnw.inbox.transfer import fetch_payload
from bnw.node.environment import SystemEnvironment
from bnw.objects.signed import verify_object
from bnw.store.sqlite import SqliteStore
from bnw.transport.interface import Transport
from bnw.transport.p2p import P2PTransport
from bnw.wire.content_id import ContentId, content_id
from bnw.wire.errors import BnwError
from bnw.wire.limits import MIB


def say(*words: object) -> None:
    os.write(1, (" ".join(map(str, words)) + "\n").encode())  # one write, so that a kill cannot cut a line


class Plain:
    """A plaintext of so many mebibytes that follows from their numbers."""

    def __init__(self, count: int) -> None:
        self._left = count

    def __aiter__(self) -> Plain:
        return self

    async def __anext__(self) -> bytes:
        if not self._left:
            raise StopAsyncIteration
        self._left -= 1
        return content_id(str(self._left).encode()) * (MIB // 32)


class ToldStore(SqliteStore):
    """Says what is read from it."""

    async def get_blob(self, id: ContentId) -> bytes | None:
        say("served", id.hex())
        return await super().get_blob(id)


async def serve(directory: Path, port: int, count: int) -> None:
    kept = directory / "manifest"
    async with ToldStore.open(directory / "store") as store:
        if not kept.exists():
            manifest = await seal_to_store(
                Outgoing(Plain(count), "a/b"),
                store,
                sender=ALICE.key,
                recipients=keys_of(BOB),
                environment=SeededEnvironment(),
                offload=worker_threads(),
            )
            kept.write_bytes(manifest.data)
        async with P2PTransport(
            seed=bytes(31) + b"s", listen=[f"/ip4/127.0.0.1/tcp/{port}"], environment=SystemEnvironment()
        ) as transport:
            BlobServer(transport, store)
            say("address", transport.addresses[0])
            await anyio.sleep_forever()


async def stay_connected(transport: Transport, address: str) -> None:
    while True:
        with suppress(BnwError):  # it is being restarted
            await transport.dial(address)
        await anyio.sleep(0.05)


async def fetch(directory: Path, address: str, manifest_path: Path, path: Path) -> None:
    manifest = verify_object(manifest_path.read_bytes())
    offload = worker_threads()
    async with (
        SqliteStore.open(directory / "store") as store,
        P2PTransport(seed=bytes(31) + b"f", listen=[], environment=SystemEnvironment()) as transport,
        anyio.create_task_group() as tasks,
    ):
        await transport.dial(address)
        tasks.start_soon(stay_connected, transport, address)
        await fetch_payload(BlobFetcher(transport, store), manifest, on_progress=lambda done, _: say("kept", done))
        await save_payload(store, manifest, BOB.read(manifest), path, offload=offload)
        say("saved")
        tasks.cancel_scope.cancel()


def main() -> None:
    match sys.argv[1:]:
        case ["serve", directory, port, count]:
            anyio.run(serve, Path(directory), int(port), int(count), backend="trio")
        case ["fetch", directory, address, manifest, path]:
            anyio.run(fetch, Path(directory), address, Path(manifest), Path(path), backend="trio")


if __name__ == "__main__":
    main()
