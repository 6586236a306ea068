"""What goes wrong while a scenario runs, at the times that it says: churn, crashes, partitions, clocks."""

from __future__ import annotations

from dataclasses import dataclass

import anyio
from anyio.abc import TaskGroup

from bnw.objects.rules import CATALOG
from bnw.sim.environment import SeededEnvironment
from bnw.sim.measure import Recorder
from bnw.sim.node import SimulatedNode
from bnw.sim.plan import Place, Plan
from bnw.sim.scenario.schema import Churn, Clock, Crash, Leave, Partition, Scenario
from bnw.sim.topology import shuffled
from bnw.sim.world import World
from bnw.transport.memory.chance import draw
from bnw.wire.limits import SECOND


@dataclass(slots=True)
class Troubles:
    scenario: Scenario
    world: World
    plan: Plan
    recorder: Recorder
    numbers: dict[str, int]
    """The recorder's number of each honest node."""

    def start(self, tasks: TaskGroup) -> None:
        for number, churn in enumerate(self.scenario.churn):
            for place in self._some(churn.role, churn.share, f"churn {number}"):
                tasks.start_soon(self._churn, self.world.nodes[place.name], churn)
        for number, crash in enumerate(self.scenario.crash):
            for place in self._chosen(crash.role, crash.count, f"crash {number}"):
                tasks.start_soon(self._crash, self.world.nodes[place.name], crash)
        for number, leave in enumerate(self.scenario.leave):
            for place in self._chosen(leave.role, leave.count, f"leave {number}"):
                tasks.start_soon(self._leave, self.world.nodes[place.name], leave)
        for number, cut in enumerate(self.scenario.partition):
            tasks.start_soon(self._partition, cut, number)
        for clock in self.scenario.clock:
            tasks.start_soon(self._set_clocks, clock)

    async def bring_up(self, node: SimulatedNode) -> None:
        if node.is_alive:
            return  # two troubles of one scenario met at this node, and the other has brought it back
        await node.start()
        self.recorder.node_started(self.numbers[node.name])

    async def take_down(self, node: SimulatedNode, *, crash: bool, unsynced: float = 0.0) -> None:
        if not node.is_running:
            return
        number = self.numbers[node.name]
        if not crash:
            # What it says as it goes, such as taking its offers back, still counts as said by a running node.
            await node.stop()
            self.recorder.node_stopped(number, crashed=False)
            return
        self.recorder.node_stopped(number, crashed=True)
        await node.crash(unsynced=unsynced)
        held = await node.store.scope_ids(CATALOG, now=node.environment.now_ms(), limit=2**31)
        self.recorder.forget(number, held)

    async def _churn(self, node: SimulatedNode, table: Churn) -> None:
        environment = SeededEnvironment(self.world.seed, "churn", node.name)
        await anyio.sleep_until(table.start)
        await node.wait_until_running()
        while True:
            await anyio.sleep(draw(environment, table.session_shape, table.session))
            if table.stop is not None and anyio.current_time() >= table.stop:
                return
            await self.take_down(node, crash=table.crash)
            back = anyio.current_time() + draw(environment, table.pause_shape, table.pause)
            await anyio.sleep_until(back if table.stop is None else min(back, max(table.stop, anyio.current_time())))
            await self.bring_up(node)

    async def _crash(self, node: SimulatedNode, table: Crash) -> None:
        await anyio.sleep_until(max(0.0, table.at - table.full_for))
        if table.full_for:
            self.world.record(node.name, "disk-full")
            node.disk.is_full = True
            await anyio.sleep_until(table.at)
            node.disk.is_full = False
        if not node.is_running:
            return
        await self.take_down(node, crash=True, unsynced=table.unsynced)
        if table.back_after is not None:
            await anyio.sleep(table.back_after)
            await self.bring_up(node)

    async def _leave(self, node: SimulatedNode, table: Leave) -> None:
        await anyio.sleep_until(table.at)
        await self.take_down(node, crash=table.crash)

    async def _partition(self, cut: Partition, number: int) -> None:
        places = list(self.plan.places.values())
        if cut.regions:
            inside = {place.name for place in places if place.region in cut.regions}
        else:
            order = shuffled(len(places), SeededEnvironment(self.world.seed, "partition", f"{number}"))
            inside = {places[at].name for at in order[: round(cut.share * len(places))]}
        side = frozenset(inside)
        await anyio.sleep_until(cut.at)
        self.world.network.divide(side)
        await anyio.sleep_until(cut.heal)
        self.world.network.unite(side)
        self.recorder.healed(f"{len(side)} of {len(places)} nodes apart")

    async def _set_clocks(self, table: Clock) -> None:
        await anyio.sleep_until(table.at)
        for place in self.plan.of(table.role):
            self.world.nodes[place.name].environment.clock_offset_ms += round(table.by * SECOND)

    def _some(self, role: str, share: float, what: str) -> list[Place]:
        return self._chosen(role, round(share * len(self.plan.of(role))), what)

    def _chosen(self, role: str, count: int | None, what: str) -> list[Place]:
        places = self.plan.of(role)
        order = shuffled(len(places), SeededEnvironment(self.world.seed, "choice", what))
        return [places[at] for at in sorted(order[: len(places) if count is None else count])]
