"""A node to attack, as a program: `python victim.py stock|cured [setting=value ...]`.

Prints its address, then a line for each gossip message delivered, and serves until it is killed. `stock` is py-libp2p
with its own defaults where they work at all (see `stock_host`); `cured` is the endpoint that BNW uses.
"""

from __future__ import annotations

import sys
from contextlib import suppress
from pathlib import Path

import anyio
import trio

sys.path.insert(0, str(Path(__file__).parents[2]))

from worlds import ECHO, TOPIC, SeededEnvironment, echo

from bnw.transport.interface import PeerId, Stream, Verdict

STUMBLE = "/test/stumble/1"
HOLD = "/test/hold/1"


def say(text: str) -> None:
    print(text, flush=True)


async def cured() -> None:
    from bnw.transport.p2p import P2PTransport

    async def stumble(stream: Stream) -> None:
        await stream.receive()
        raise ZeroDivisionError

    async def hold(stream: Stream) -> None:
        await anyio.sleep_forever()

    async def validate(peer: PeerId, data: bytes) -> Verdict:
        return Verdict.ACCEPT

    async def handle(peer: PeerId, data: bytes) -> None:
        say(f"got {data[:40]!r}")

    node = P2PTransport(seed=bytes(range(32)), listen=["/ip4/127.0.0.1/tcp/0"], environment=SeededEnvironment())
    async with node:
        node.serve(ECHO, echo)
        node.serve(STUMBLE, stumble)
        node.serve(HOLD, hold)
        await node.subscribe(TOPIC, validate, handle)
        say(node.addresses[0])
        await anyio.sleep_forever()


async def stock(max_connections: int | None = None) -> None:
    from libp2p.abc import INetStream
    from libp2p.custom_types import TProtocol
    from libp2p.network.stream.exceptions import StreamEOF
    from libp2p.tools.anyio_service import background_trio_service
    from stock_host import stock_host, stock_pubsub

    host, listen = stock_host(max_connections)

    async def serve_echo(stream: INetStream) -> None:
        with suppress(StreamEOF):
            while data := await stream.read(65536):
                await stream.write(data)
        await stream.close()

    async def stumble(stream: INetStream) -> None:
        await stream.read(1)
        raise ZeroDivisionError

    async def hold(stream: INetStream) -> None:
        await trio.sleep_forever()

    for protocol, handler in ((ECHO, serve_echo), (STUMBLE, stumble), (HOLD, hold)):
        host.set_stream_handler(TProtocol(protocol), handler)
    pubsub, gossip = stock_pubsub(host)
    async with host.run(listen_addrs=listen), background_trio_service(pubsub), background_trio_service(gossip):
        await pubsub.wait_until_ready()
        subscription = await pubsub.subscribe(TOPIC)
        say(str(host.get_addrs()[0]))
        while True:
            message = await subscription.get()
            say(f"got {message.data[:40]!r}")


if __name__ == "__main__":
    settings = {name: int(value) for name, _, value in (text.partition("=") for text in sys.argv[2:])}
    if sys.argv[1] == "stock":
        anyio.run(lambda: stock(**settings), backend="trio")
    else:
        anyio.run(cured, backend="trio")
