#!/usr/bin/env python3
"""How fast calls are: a small call on a warm connection, and many at once.

Two nodes with real parts (SQLite on a disk, libp2p over loopback), each in a process of its own; the handler is a
Python function. A call is measured from the request to the verified receipt and output.

    python scripts/bench_calls.py [--calls 300] [--at-once 32] [--directory DIR]
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import anyio
import anyio.to_thread

from bnw.inbox.payload import Payload
from bnw.invoke.handlers import Answer, Call
from bnw.invoke.policy import CallPolicy
from bnw.node.configuration import Configuration
from bnw.node.home import Home
from bnw.node.node import Node
from bnw.node.opening import initialise_home, open_node

NAME = "bench/echo"
QUESTION = Payload(b'{"question": 1}', "application/json")


async def echo(call: Call) -> Answer:
    return Answer(call.data, call.input.media_type)


async def provide(root: Path) -> None:
    home = Home(root / "provider")
    initialise_home(home, configuration=Configuration(network="bench"))
    async with open_node(home) as node:
        await node.publish(NAME, b"opaque descriptor")
        await node.provide(NAME, echo, policy=CallPolicy(anyone=True, at_once=1000))
        print((await node.status()).addresses[0], flush=True)
        await anyio.to_thread.run_sync(sys.stdin.read)


async def measure(root: Path, address: str, calls: int, at_once: int) -> dict[str, object]:
    home = Home(root / "requester")
    initialise_home(home, configuration=Configuration(network="bench", peers=(address,)))
    async with open_node(home) as node:
        await node.settle()
        for _ in range(20):
            await call(node)
        times = sorted([await call(node) for _ in range(calls)])
        began = time.perf_counter()
        left = iter(range(calls * 2))
        async with anyio.create_task_group() as group:

            async def caller() -> None:
                for _ in left:
                    await call(node)

            for _ in range(at_once):
                group.start_soon(caller)
        seconds = time.perf_counter() - began
    return {
        "calls": calls,
        "p50_ms": round(times[len(times) // 2] * 1000, 2),
        "p90_ms": round(times[len(times) * 9 // 10] * 1000, 2),
        "p99_ms": round(times[len(times) * 99 // 100] * 1000, 2),
        "at_once": at_once,
        "calls_per_second": round(calls * 2 / seconds, 1),
    }


async def call(node: Node) -> float:
    began = time.perf_counter()
    result = await node.invoke(NAME, QUESTION, patience=20)
    assert result.output is not None and result.output.data == QUESTION.data, (result.status, result.code)
    return time.perf_counter() - began


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--calls", type=int, default=300)
    parser.add_argument("--at-once", type=int, default=32)
    parser.add_argument("--directory", type=Path, help="Where the homes are made; default: a temporary directory.")
    parser.add_argument("--provider", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.provider is not None:
        anyio.run(provide, options.provider, backend="trio")
        return
    with tempfile.TemporaryDirectory(dir=options.directory) as name:
        root = Path(name)
        with subprocess.Popen(
            [sys.executable, __file__, "--provider", name], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        ) as provider:
            assert provider.stdin is not None and provider.stdout is not None
            address = provider.stdout.readline().strip()
            result = anyio.run(measure, root, address, options.calls, options.at_once, backend="trio")
            provider.stdin.close()
    print(json.dumps(result, indent=2))


if __name__ == "__main__":
    main()
