"""Invocations that arrive again over another path: other nodes deliver copies of what a requester has delivered.

A copy leaves another node than the original and takes its own time, so it may come long after the original or before
it, during a crash of the provider or after one. The provider takes it for what it is, for it is signed all the same.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import anyio

from bnw.inbox.delivery import Courier
from bnw.node.node import Node
from bnw.objects.calls import Invocation
from bnw.objects.signed import SignedObject
from bnw.sim.environment import SeededEnvironment
from bnw.sim.node import SimulatedNode
from bnw.sim.world import World
from bnw.transport.interface import PeerId
from bnw.transport.memory.chance import chance
from bnw.transport.memory.dialling import to_address
from bnw.wire.environment import random_below
from bnw.wire.errors import BnwError

LOOK: Final = 0.25
"""Seconds between two looks whether the node has started anew."""
LONGEST_DETOUR: Final = 20.0
"""Seconds between the original and its copy at most; half of the copies take less than a quarter of it."""


def repeat_deliveries(world: World, node: SimulatedNode, copies: int) -> None:
    """From now on, and after each start of `node`, others repeat its deliveries of invocations `copies` times."""
    world.tasks.start_soon(_keep_tapping, world, node, copies)


async def _keep_tapping(world: World, node: SimulatedNode, copies: int) -> None:
    environment = SeededEnvironment(world.seed, "repeating", node.name)
    while True:
        await node.wait_until_running()
        start = node.starts
        _tap(world, node, copies, environment)
        while node.starts == start:  # noqa: ASYNC110 - nobody tells of a node's next start
            await anyio.sleep(LOOK)


def _tap(world: World, node: SimulatedNode, copies: int, environment: SeededEnvironment) -> None:
    courier = node.node._requester._parts.courier
    deliver = courier.deliver

    async def deliver_and_repeat(
        peer: PeerId,
        objects: Sequence[SignedObject],
        blobs: Sequence[bytes] = (),
        *,
        on_copy: Callable[[], None] = lambda: None,
    ) -> None:
        if any(isinstance(obj.body, Invocation) for obj in objects):
            for _ in range(copies):
                world.tasks.start_soon(_repeat, world, node, environment, peer, objects, blobs)
        await deliver(peer, objects, blobs, on_copy=on_copy)

    vars(courier)["deliver"] = deliver_and_repeat


async def _repeat(
    world: World,
    origin: SimulatedNode,
    environment: SeededEnvironment,
    peer: PeerId,
    objects: Sequence[SignedObject],
    blobs: Sequence[bytes],
) -> None:
    await anyio.sleep(LONGEST_DETOUR * chance(environment) ** 2)
    others = [node for node in world.nodes.values() if node.is_running and node.name not in (origin.name, peer)]
    if not others:
        return
    other = others[random_below(environment, len(others))]
    try:
        await _hand_over(other.node, peer, objects, blobs)
    except BnwError as error:
        world.record(other.name, "copy-not-taken", error.code)
    else:
        world.record(other.name, "copy-taken", peer)


async def _hand_over(node: Node, peer: PeerId, objects: Sequence[SignedObject], blobs: Sequence[bytes]) -> None:
    transport = node._transport
    await transport.dial(to_address(peer))
    await Courier(transport).deliver(peer, objects, blobs)
