"""Requesters that do not forget their calls: after a crash, or a deadline without a receipt, each is taken up again.

It is what a user does with `bnw invocation wait`, and what shows that every call comes to one end once peers can talk.
"""

from __future__ import annotations

from typing import Final

import anyio

from bnw.invoke.machines.requester import ABANDONED, SENT, SIGNED
from bnw.node.node import Node
from bnw.sim.calls import CallLog
from bnw.sim.node import SimulatedNode
from bnw.sim.world import World
from bnw.wire.content_id import ContentId
from bnw.wire.errors import BnwError
from bnw.wire.limits import SECOND

LOOK: Final = 2.0
"""Seconds between two looks at the calls of a node."""
LATE: Final = 4 * SECOND
"""After its deadline, whoever waited for a call has given up."""


class TakingUp:
    """`begin` for each node that takes its calls up; `count` puts what they remember into the log."""

    def __init__(self, world: World, log: CallLog) -> None:
        self._world = world
        self._log = log
        self._nodes: list[SimulatedNode] = []
        self._under_way: set[tuple[str, int, ContentId]] = set()

    def begin(self, node: SimulatedNode) -> None:
        if node not in self._nodes:
            self._nodes.append(node)
            self._world.tasks.start_soon(self._look, node)

    async def count(self) -> None:
        unsettled = contradicted = 0
        for node in self._nodes:
            if not node.is_running:
                continue
            for id, call in await node.node.calls.all():
                unsettled += call.state in {SIGNED, SENT} or (call.state == ABANDONED and self._log.runs[id] > 0)
                contradicted += call.second_receipt is not None
        self._log.unsettled, self._log.contradicted = unsettled, contradicted

    async def _look(self, node: SimulatedNode) -> None:
        seen = 1
        while True:
            await node.wait_until_running()
            started, running = node.starts, node.node
            now = node.environment.now_ms()
            for id, call in await running.calls.all():
                is_left = started != seen or now >= call.body.deadline + LATE
                if is_left and call.state in {SIGNED, SENT} and (node.name, started, id) not in self._under_way:
                    self._under_way.add((node.name, started, id))
                    self._world.tasks.start_soon(self._wait, running, (node.name, started, id))
            seen = started
            await anyio.sleep(LOOK)

    async def _wait(self, node: Node, key: tuple[str, int, ContentId]) -> None:
        try:
            await node.calls.wait(key[2], lambda step, details: None)
        except BnwError as error:
            self._world.record(key[0], "not-settled", error.code)
        finally:
            self._under_way.discard(key)
