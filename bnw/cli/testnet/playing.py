"""Plays a scenario file with real processes: the workload of the simulator, asked of nodes over their local API."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Final, cast

import anyio
import anyio.abc

from bnw.cli.testnet.answering import AnswerDesk
from bnw.cli.testnet.net import DISTURBANCES, Net
from bnw.cli.testnet.plan import check_room
from bnw.cli.testnet.possible import NOT_SEEN, possible_part
from bnw.cli.testnet.real_node import RealNode
from bnw.cli.testnet.state import NetDirectory
from bnw.cli.testnet.watching import LOOK_EVERY
from bnw.cli.testnet.world import RealWorld, real_world
from bnw.sim.calls import CallLog
from bnw.sim.environment import SeededEnvironment
from bnw.sim.evaluate import evaluate
from bnw.sim.node import SimulatedNode
from bnw.sim.plan import Place, Plan, make_plan
from bnw.sim.play import Checked, Played
from bnw.sim.remembered import Memory
from bnw.sim.scenario.schema import Scenario
from bnw.sim.trace import EventTrace
from bnw.sim.troubles import Troubles
from bnw.sim.workload import Workload
from bnw.sim.world import World
from bnw.wire.errors import BnwError

STARTS_AT_ONCE: Final = os.cpu_count() or 1
TIMED: Final = ("publish", "provide", "invoke", "fetch", "follow", "churn", "crash", "leave", "partition")
"""The tables with times, and these times."""
MOMENTS: Final = ("start", "stop", "at", "heal")

Tell = Callable[[str], None]
Progress = Callable[[float, float], None]
"""Told how much of the stage that was told last is done, and how much there is: nodes, then seconds."""


@dataclass(frozen=True, slots=True)
class PlayedForReal:
    """What came of it: as a simulator's run, and what was not as in the file."""

    played: Played
    not_applied: list[str]


def play_for_real(
    scenario: Scenario, seed: int, directory: NetDirectory, *, place: str, tell: Tell, progress: Progress
) -> PlayedForReal:
    """Play it in `directory`, which is gone again afterwards. `tell` hears of each stage.

    Raises `LocalError`: `node-count`, as `Net.new` does, and as a node says that it cannot start.
    """
    possible, not_applied = possible_part(scenario)
    check_room(possible.honest, place)
    plan = make_plan(possible, SeededEnvironment(seed, "plan"))
    with Net.new(directory, possible.network.topology, {name: [] for name in plan.places}, tell=tell) as net:
        try:
            run = _Run(possible, plan, seed, net, tell, progress)
            played = anyio.run(run.play, backend="trio")
        finally:
            net.remove(gently=False)
            directory.remove_itself()
    unjudged = [
        f"[[expect]] {item.expect.metric}: not judged; {NOT_SEEN[item.expect.metric]}"
        for item in played.checked
        if item.value is None
    ]
    return PlayedForReal(played, [*not_applied, *run.shortcomings, *unjudged])


class _Run:
    def __init__(self, scenario: Scenario, plan: Plan, seed: int, net: Net, tell: Tell, progress: Progress) -> None:
        self._scenario = scenario
        self._plan = plan
        self._seed = seed
        self._net = net
        self._tell = tell
        self._progress = progress
        self._values: dict[float, dict[str, float]] = {}
        self.shortcomings: list[str] = []

    async def play(self) -> Played:
        scenario, plan = self._scenario, self._plan
        desk = AnswerDesk(self._net.directory.home(plan.honest[0].name).path / "answers.sock")
        async with real_world(scenario, plan, self._seed, self._net, desk) as world:
            await world.tasks.start(_end_on_signal)
            await self._start(world)
            recorder = world.watch.recorder
            timed = _shifted(scenario, world.origin)
            # A real world has what workload and troubles ask of a simulated one, and so have its nodes.
            like_simulated = cast(World, world)
            workload = _RealWorkload(timed, like_simulated, plan, CallLog())
            numbers = {node.name: number for number, node in enumerate(recorder.nodes)}
            troubles = Troubles(timed, like_simulated, plan, recorder, numbers)
            for place in plan.honest:
                if place.start:
                    world.tasks.start_soon(_join, world, troubles, place)
            workload.start(world.tasks)
            troubles.start(world.tasks)
            metrics = await self._live(world, workload)
            traffic = world.relays.traffic.nodes
            return Played(
                scenario=scenario,
                seed=self._seed,
                until=scenario.duration,
                plan=plan,
                recorder=recorder,
                log=workload.log,
                metrics=metrics,
                checked=self._check(metrics),
                trace=EventTrace(),
                memory=Memory(),
                node_traffic={name: (node.received_bytes, 0) for name, node in traffic.items()},
                counts={"trace_lines": 0},
            )

    async def _start(self, world: RealWorld) -> None:
        """Start what is there from the beginning, and begin to count time when all are connected."""
        at_once = [place.name for place in self._plan.honest if not place.start]
        self._tell(f"starting {len(at_once)} nodes")
        limit = anyio.Semaphore(STARTS_AT_ONCE)

        async def start(name: str) -> None:
            async with limit:
                await world.nodes[name].start()
            self._progress(sum(node.is_running for node in world.nodes.values()), len(at_once))

        async with anyio.create_task_group() as group:
            for name in at_once:
                group.start_soon(start, name)
        self._tell("waiting until all are connected")
        missing = await world.wait_until_connected()
        if missing:
            self.shortcomings.append(f"{missing} ends of connections were not there when the scenario began")
        self._tell(f"playing {self._scenario.duration:g} seconds")
        world.origin = anyio.current_time()
        for number, node in enumerate(world.nodes.values()):
            if node.is_running:
                world.watch.recorder.node_started(number)

    async def _live(self, world: RealWorld, workload: Workload) -> dict[str, float]:
        """Until the scenario's time is over: look at all nodes, and at all metrics when an expectation asks for it."""
        end = self._scenario.duration
        moments = {expect.at for expect in self._scenario.expect if expect.at is not None and expect.at < end}
        waiting = sorted(moments)
        moment = 0.0
        while moment < end:
            moment = min([moment + LOOK_EVERY, end, *waiting[:1]])
            await anyio.sleep_until(world.origin + moment)
            await self._look(world, workload)
            if waiting and waiting[0] <= moment:
                self._values[waiting.pop(0)] = await self._evaluate(world, workload)
            self._progress(moment, end)
        return await self._evaluate(world, workload)

    async def _look(self, world: RealWorld, workload: Workload) -> None:
        followers = cast(list[RealNode], workload.followers)
        async with anyio.create_task_group() as group:
            for number, node in enumerate(world.nodes.values()):
                if node.is_running:
                    group.start_soon(world.watch.look, number)
                if node.is_running and node in followers:
                    group.start_soon(_look_at_follows, node)
        traffic = world.relays.traffic.nodes.values()
        world.watch.recorder.sample(sum(node.received_bytes for node in traffic), 0)

    async def _evaluate(self, world: RealWorld, workload: Workload) -> dict[str, float]:
        values = await evaluate(cast(World, world), self._plan, world.watch.recorder, workload)
        return {name: value for name, value in values.items() if name not in NOT_SEEN}

    def _check(self, metrics: dict[str, float]) -> list[Checked]:
        end = self._scenario.duration
        checked = []
        for expect in self._scenario.expect:
            at = end if expect.at is None else expect.at
            values = metrics if at == end else self._values[at]
            checked.append(Checked(expect, values.get(expect.metric), at))
        return checked


async def _join(world: RealWorld, troubles: Troubles, place: Place) -> None:
    await anyio.sleep_until(world.origin + place.start)
    await troubles.bring_up(cast(SimulatedNode, world.nodes[place.name]))


async def _look_at_follows(node: RealNode) -> None:
    try:
        await node.look_at_follows()
    except BnwError:
        # It has ended in this moment, and counts no longer.
        return


async def _end_on_signal(*, task_status: anyio.abc.TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
    """Raising out of a signal's handler, in the middle of the event loop's own work, would break that."""
    with anyio.open_signal_receiver(*DISTURBANCES) as signals:
        task_status.started()
        async for number in signals:
            if number == signal.SIGINT:
                raise KeyboardInterrupt
            sys.exit(128 + number)


def _shifted(scenario: Scenario, origin: float) -> Scenario:
    """Workload and troubles wait on the clock of anyio, which here does not begin at 0."""
    tables: dict[str, Any] = {kind: tuple(_later(table, origin) for table in getattr(scenario, kind)) for kind in TIMED}
    return replace(scenario, **tables)


def _later(table: Any, origin: float) -> Any:
    times = {key: getattr(table, key, None) for key in MOMENTS}
    return replace(table, **{key: time + origin for key, time in times.items() if time is not None})


class _RealWorkload(Workload):
    """Draws the same chance as in the simulator, whenever the scenario began on this machine's clock."""

    def _chance(self, node: Any, what: str, start: float) -> SeededEnvironment:
        origin = cast(RealWorld, self.world).origin
        return super()._chance(node, what, round(start - origin, 6))
