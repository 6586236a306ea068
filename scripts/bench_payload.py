"""Measure payloads: `python scripts/bench_payload.py [--mebibytes N] [--blobs N] [--directory DIR] [--json]`.

- `seal`, `open`, `save`: MiB of plaintext a second, one after the other: a plaintext into a store, the store into a
  stream that is thrown away, and the store into a file. `seal_and_open` is the rate over the first two together.
- `move`: MiB a second from one process to another over libp2p on this machine, from store to store.
- `sender_memory`, `receiver_memory`: MiB of resident memory, at their most, above what the process had when idle.
- `small_blob_ms`: milliseconds for each of many blobs of 1 KiB, from store to store between two processes.

Every rate includes making the bytes durable. Figures are of one run on one machine.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import anyio

from bnw.blobs.fetcher import BlobFetcher
from bnw.blobs.offload import Offload, worker_threads
from bnw.blobs.server import BlobServer
from bnw.blobs.sources import Wanted
from bnw.identity.inbox_keys import InboxKey
from bnw.identity.keys import SigningKey
from bnw.inbox.manifest import read_access
from bnw.inbox.opening import opened_payload, save_payload
from bnw.inbox.sealing import Outgoing, seal_to_store
from bnw.inbox.transfer import fetch_payload
from bnw.node.environment import SystemEnvironment
from bnw.objects.signed import SignedObject, verify_object
from bnw.store.sqlite import SqliteStore
from bnw.transport.p2p import P2PTransport
from bnw.wire.content_id import content_id
from bnw.wire.limits import KIB, MIB

KEY = SigningKey(bytes(31) + b"b")
INBOX_KEY = InboxKey(bytes(31) + b"i", 0, 1)
MANIFEST = "manifest"
Figures = dict[str, float]


class Plain:
    """A plaintext of so many mebibytes."""

    def __init__(self, count: int) -> None:
        self._left = count
        self._piece = content_id(b"plain") * (MIB // 32)

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        if not self._left:
            raise StopAsyncIteration
        self._left -= 1
        return self._piece


def small_blob(number: int) -> bytes:
    return content_id(str(number).encode()) * (KIB // 32)


async def seal(store: SqliteStore, mebibytes: int, offload: Offload) -> SignedObject:
    return await seal_to_store(
        Outgoing(Plain(mebibytes), "application/octet-stream"),
        store,
        sender=KEY,
        recipients={KEY.identity: INBOX_KEY.public},
        environment=SystemEnvironment(),
        offload=offload,
    )


async def measure_here(directory: Path, mebibytes: int, blobs: int) -> Figures:
    """Seal, open and save in this process; leaves the store and its manifest for the sender."""
    offload = worker_threads()
    seconds: dict[str, float] = {}
    async with SqliteStore.open(directory / "source") as store:
        begin = time.perf_counter()
        manifest = await seal(store, mebibytes, offload)
        seconds["seal"] = time.perf_counter() - begin
        record = read_access(manifest, reader=KEY.identity, inbox_keys=[INBOX_KEY])

        begin = time.perf_counter()
        async with opened_payload(store, manifest, record, offload=offload) as pieces:
            size = 0
            async for piece in pieces:
                size += len(piece)
        seconds["open"] = time.perf_counter() - begin
        assert size == mebibytes * MIB

        begin = time.perf_counter()
        await save_payload(store, manifest, record, directory / "saved", offload=offload)
        seconds["save"] = time.perf_counter() - begin
        (directory / "saved").unlink()
        (directory / MANIFEST).write_bytes(manifest.data)

        async def put(number: int) -> None:
            await store.put_blob(small_blob(number))

        async with anyio.create_task_group() as tasks:
            for number in range(blobs):
                tasks.start_soon(put, number)
    figures = {name: mebibytes / taken for name, taken in seconds.items()}
    figures["seal_and_open"] = mebibytes / (seconds["seal"] + seconds["open"])
    return figures


def memory(field: str) -> float:
    """MiB of resident memory: `VmRSS` now, `VmHWM` at most so far."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(f"{field}:"):
            return int(line.split()[1]) / KIB
    raise SystemExit("this system does not tell how much memory a process has")


async def act_as_sender(directory: Path) -> None:
    """Serve until the standard input ends; then tell how much memory that took."""
    async with (
        SqliteStore.open(directory / "source") as store,
        P2PTransport(
            seed=bytes(31) + b"s", listen=["/ip4/127.0.0.1/tcp/0"], environment=SystemEnvironment()
        ) as transport,
        anyio.create_task_group() as tasks,
    ):
        BlobServer(transport, store)
        idle = memory("VmRSS")
        print(transport.addresses[0], flush=True)
        tasks.start_soon(anyio.sleep_forever)
        await anyio.to_thread.run_sync(sys.stdin.read)
        print(json.dumps({"sender_memory": memory("VmHWM") - idle}), flush=True)
        tasks.cancel_scope.cancel()


async def act_as_receiver(directory: Path, address: str, mebibytes: int, blobs: int) -> None:
    manifest = verify_object((directory / MANIFEST).read_bytes())
    small = [Wanted(content_id(small_blob(number)), KIB, KIB) for number in range(blobs)]
    async with (
        SqliteStore.open(directory / "target") as store,
        P2PTransport(seed=bytes(31) + b"r", listen=[], environment=SystemEnvironment()) as transport,
    ):
        await transport.dial(address)
        fetcher = BlobFetcher(transport, store)
        idle = memory("VmRSS")
        begin = time.perf_counter()
        await fetcher.fetch_to_store(small)
        for_small = time.perf_counter() - begin
        begin = time.perf_counter()
        await fetch_payload(fetcher, manifest)
        for_large = time.perf_counter() - begin
        figures = {
            "move": mebibytes / for_large,
            "receiver_memory": memory("VmHWM") - idle,
            "small_blob_ms": for_small / blobs * 1000,
        }
    print(json.dumps(figures))


def measure_between_processes(directory: Path, options: Sequence[str]) -> Figures:
    command = [sys.executable, __file__, "--directory", str(directory), *options]
    with subprocess.Popen(
        [*command, "--role", "sender"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as sender:
        assert sender.stdin is not None
        assert sender.stdout is not None
        address = sender.stdout.readline().strip()
        receiver = subprocess.run(
            [*command, "--role", "receiver", "--address", address], stdout=subprocess.PIPE, text=True, check=True
        )
        sender.stdin.close()
        return {**json.loads(receiver.stdout), **json.loads(sender.stdout.readline())}


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure the payloads of BNW.")
    parser.add_argument("--mebibytes", type=int, default=1024, help="size of the payload")
    parser.add_argument("--blobs", type=int, default=1000, help="how many small blobs")
    parser.add_argument("--directory", type=Path, help="where to write (default: the directory for temporary files)")
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    parser.add_argument("--role", choices=["sender", "receiver"], help=argparse.SUPPRESS)
    parser.add_argument("--address", help=argparse.SUPPRESS)
    options = parser.parse_args()
    sizes = (options.mebibytes, options.blobs)
    if options.role == "sender":
        anyio.run(act_as_sender, options.directory, backend="trio")
        return
    if options.role == "receiver":
        anyio.run(act_as_receiver, options.directory, options.address, *sizes, backend="trio")
        return
    with tempfile.TemporaryDirectory(dir=options.directory, prefix="bench-payload-") as name:
        figures = anyio.run(measure_here, Path(name), *sizes, backend="trio")
        figures |= measure_between_processes(Path(name), ["--mebibytes", str(sizes[0]), "--blobs", str(sizes[1])])
    if options.json:
        print(json.dumps({"mebibytes": options.mebibytes, "blobs": options.blobs, "figures": figures}))
        return
    for name, value in figures.items():
        print(f"{name:20} {value:>10,.2f}")


if __name__ == "__main__":
    main()
