"""What simulated worlds are seen doing in these tests. Each story is told by one seed and leaves a trace.

As a program: `python stories.py STORY SEED` writes the trace to standard output.
"""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass

import anyio

from bnw.inbox.payload import Payload
from bnw.invoke.handlers import Answer, Call
from bnw.invoke.policy import CallPolicy
from bnw.invoke.requester import CallResult
from bnw.objects.signed import SignedObject
from bnw.sim.run import run_virtual
from bnw.sim.trace import EventTrace
from bnw.sim.world import World
from bnw.store.memory import MemoryStore
from bnw.transport.memory import Link
from bnw.wire.content_id import content_id
from bnw.wire.environment import random_below
from bnw.wire.errors import BnwError

NAME = "finance/lookup"
QUESTION = b'{"symbol":"MSFT secret question"}'
ANSWER = b'{"price":"39.81 secret answer"}'
THINKING = 1.5
"""Virtual seconds that the provider takes for its answer."""

INTERNET = Link(latency=0.03, jitter=0.02, loss=0.01, gossip_loss=0.02, bandwidth=2_000_000)

QUESTION_SCHEMA = b'{"type":"object","required":["symbol"]}'
ANSWER_SCHEMA = b'{"type":"object","required":["price"]}'


def _direction(schema: bytes) -> dict[str, object]:
    return {
        "media_types": ["application/json"],
        "schema": content_id(schema).hex(),
        "max_bytes": 4096,
        "privacy": "participant-encrypted",
    }


DESCRIPTOR = json.dumps(
    {
        "profile": "bnw.capability-profile/1",
        "name": "Finance lookup",
        "description": "The price of a share.",
        "operation": {
            "name": "tools/call",
            "input": _direction(QUESTION_SCHEMA),
            "output": _direction(ANSWER_SCHEMA),
        },
    }
).encode()


@dataclass(frozen=True)
class MainJob:
    """How the main job went: publish, discover, invoke privately, verify."""

    trace: bytes
    manifest: SignedObject
    result: CallResult
    carried: MemoryStore
    seconds: float
    """Virtual ones."""


async def price(call: Call) -> Answer:
    await anyio.sleep(THINKING)
    return Answer(ANSWER, "application/json")


def main_job(seed: int, *, question: bytes = QUESTION) -> MainJob:
    """Three nodes, of which the requester and the provider know the carrier only."""
    pieces: list[bytes] = []
    trace = EventTrace(pieces.append)

    async def act() -> tuple[SignedObject, CallResult, MemoryStore, float]:
        async with World(seed, link=INTERNET, trace=trace) as world:
            carrier = await world.start("carrier")
            provider = await world.start("provider", peers=["carrier"])
            requester = await world.start("requester", peers=["carrier"])
            for schema in (QUESTION_SCHEMA, ANSWER_SCHEMA):
                await provider.node.add_blob(schema)
            manifest = await provider.node.publish(NAME, DESCRIPTOR)
            await provider.node.provide(NAME, price, policy=CallPolicy(anyone=True))
            result = await requester.invoke(NAME, Payload(question, "application/json"), patience=20)
            return manifest, result, carrier.store, anyio.current_time()

    outcome = run_virtual(seed, act)
    trace.flush()
    return MainJob(b"".join(pieces), *outcome)


def busy_half_minute(seed: int) -> bytes:
    """The trace of six nodes that come, go, publish and call each other over bad links, one of which is cut."""
    pieces: list[bytes] = []
    trace = EventTrace(pieces.append)

    async def act() -> None:
        async with World(seed, link=INTERNET, trace=trace) as world, anyio.create_task_group() as tasks:
            for number in range(6):
                world.add(f"n{number}", peers=[f"n{other}" for other in range(number)], clock_offset_ms=37 * number)
                tasks.start_soon(live, world, number)
            await anyio.sleep(5)
            world.network.cut("n0", "n1")
            await anyio.sleep(13)
            world.network.heal("n0", "n1")
            await anyio.sleep(12)
            tasks.cancel_scope.cancel()

    async def live(world: World, number: int) -> None:
        me = world.nodes[f"n{number}"]
        await anyio.sleep(random_below(me.environment, 3000) / 1000)
        while True:
            await me.start()
            await me.node.publish(f"capability-{number}", b"opaque")
            await me.node.provide(f"capability-{number}", price, policy=CallPolicy(anyone=True))
            other = (number + 1 + random_below(me.environment, 5)) % 6
            try:
                await me.invoke(f"capability-{other}", Payload(QUESTION, "application/json"), patience=4)
            except BnwError as error:
                world.record(me.name, error.code)
            await anyio.sleep(2)
            await me.stop()
            await anyio.sleep(1)

    run_virtual(seed, act)
    trace.flush()
    return b"".join(pieces)


if __name__ == "__main__":
    told = {"main_job": lambda seed: main_job(seed).trace, "busy_half_minute": busy_half_minute}[sys.argv[1]]
    sys.stdout.buffer.write(told(int(sys.argv[2])))
