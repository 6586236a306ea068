"""Plays a scenario from a seed: sets the world up, lets it live, looks at it, and says what became of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Final

import anyio
from anyio.abc import TaskGroup

from bnw.node.node import Node
from bnw.sim.adversaries.attacks import Attacker, attack
from bnw.sim.adversaries.shapes import shape_of
from bnw.sim.adversaries.silent import be_silent
from bnw.sim.calls import CallLog
from bnw.sim.disk import Disk
from bnw.sim.environment import SeededEnvironment
from bnw.sim.evaluate import evaluate
from bnw.sim.measure import Recorder
from bnw.sim.node import Parts, SimulatedNode, real_node
from bnw.sim.plan import Place, Plan, link_between, make_plan
from bnw.sim.remembered import Memory, remembering
from bnw.sim.run import run_virtual
from bnw.sim.scenario.schema import REPLAY, SILENT, Expect, Scenario
from bnw.sim.trace import EventTrace
from bnw.sim.troubles import Troubles
from bnw.sim.workload import Workload
from bnw.sim.world import World
from bnw.transport.interface import PeerId
from bnw.transport.memory.dialling import to_address

SAMPLES: Final = 240
"""Looks at the world during a run, for the pictures."""
SHORTEST_SAMPLE: Final = 0.25
"""Seconds between two of them at least."""

Progress = Callable[[float, float], None]
"""Told of the virtual time, now and then, and of the time at which the run ends."""


@dataclass(frozen=True, slots=True)
class Checked:
    """An expectation and what was found. `value` is None if the run ended before its time."""

    expect: Expect
    value: float | None
    at: float

    @property
    def met(self) -> bool | None:
        if self.value is None:
            return None
        low, high = self.expect.at_least, self.expect.at_most
        return (low is None or self.value >= low) and (high is None or self.value <= high)


@dataclass(slots=True)
class Played:
    """A run that has ended, with all that a report may want."""

    scenario: Scenario
    seed: int
    until: float
    plan: Plan
    recorder: Recorder
    log: CallLog
    metrics: dict[str, float]
    checked: list[Checked]
    trace: EventTrace
    memory: Memory
    node_traffic: dict[str, tuple[int, int]]
    """Bytes received and sent, by name."""
    counts: dict[str, int] = field(default_factory=dict)

    @property
    def passed(self) -> bool:
        return all(item.met is not False for item in self.checked)


def play(
    scenario: Scenario,
    seed: int,
    *,
    trace: EventTrace | None = None,
    observe: bool = True,
    until: float | None = None,
    progress: Progress = lambda now, end: None,
) -> Played:
    """Run a scenario, or its beginning up to `until` (virtual seconds).

    The same scenario, seed and versions give the same trace. Without `observe` there is none, which is faster.

    Raises `InvalidError` (`cbor-integer`) for a seed outside ±(2^53−1), `KeyboardInterrupt` after Ctrl-C, and whatever
    a fault of BNW's own raises.
    """
    end = scenario.duration if until is None else min(until, scenario.duration)
    with remembering() as memory:
        run = _Run(scenario, seed, end, trace or EventTrace(), observe, memory, progress)
        try:
            return run_virtual(seed, run.play)
        except BaseExceptionGroup as group:
            # Ctrl-C, or a signal that ends the process, leaves as itself and not wrapped up by every task group.
            for kind in (KeyboardInterrupt, SystemExit):
                if (ended := group.subgroup(kind)) is not None:
                    raise _first(ended) from None
            raise


class _Run:
    def __init__(
        self,
        scenario: Scenario,
        seed: int,
        end: float,
        trace: EventTrace,
        observe: bool,
        memory: Memory,
        progress: Progress,
    ) -> None:
        self._scenario = scenario
        self._seed = seed
        self._end = end
        self._trace = trace
        self._observe = observe
        self._memory = memory
        self._progress = progress
        self._plan = make_plan(scenario, SeededEnvironment(seed, "plan"))
        self._log = CallLog()
        self._numbers: dict[str, int] = {}
        self._values: dict[float, dict[str, float]] = {}

    async def play(self) -> Played:
        async with World(self._seed, trace=self._trace if self._observe else None) as world:
            self._recorder = Recorder(anyio.current_time, world.environment.now_ms)
            self._workload = Workload(self._scenario, world, self._plan, self._log)
            troubles = Troubles(self._scenario, world, self._plan, self._recorder, self._numbers)
            self._link(world)
            self._add_honest(world)
            async with anyio.create_task_group() as tasks:
                self._start_adversaries(world, tasks)
                for place in self._plan.honest:
                    tasks.start_soon(self._join, troubles, world.nodes[place.name], place)
                self._workload.start(tasks)
                troubles.start(tasks)
                tasks.start_soon(self._watch, world)
                await self._look_when_asked(world)
                metrics = await evaluate(world, self._plan, self._recorder, self._workload)
                self._sample(world)
                tasks.cancel_scope.cancel()
            traffic = world.network.traffic.nodes
            played = Played(
                scenario=self._scenario,
                seed=self._seed,
                until=self._end,
                plan=self._plan,
                recorder=self._recorder,
                log=self._log,
                metrics=metrics,
                checked=self._check(metrics),
                trace=self._trace,
                memory=self._memory,
                node_traffic={name: (node.received_bytes, node.sent_bytes) for name, node in traffic.items()},
            )
            self._trace.flush()
            played.counts = {"trace_lines": len(self._trace)}
            # What the nodes do when they are taken down is no part of the scenario.
            world.network.go_dark()
            return played

    def _link(self, world: World) -> None:
        plan = self._plan
        # Any two may come to talk, for calls go straight to providers; most never do, so links are made when needed.
        world.network.link_maker = lambda a, b: link_between(self._scenario, plan.places[a], plan.places[b])

    def _add_honest(self, world: World) -> None:
        mortal = {table.role for table in self._scenario.crash}
        mortal |= {table.role for table in self._scenario.churn if table.crash}
        mortal |= {table.role for table in self._scenario.leave if table.crash}
        recorder = self._recorder
        for place in self._plan.honest:
            assert place.group is not None
            number = len(self._numbers)
            disk = Disk(write_time=place.group.write_time, can_crash=place.role in mortal)
            node = world.add(
                place.name,
                peers=place.peers,
                mailboxes=place.mailboxes,
                clock_offset_ms=place.clock_offset_ms,
                clock_drift=place.clock_drift,
                disk=disk,
                shape=real_node if place.has_record else _without_record,
            )
            self._numbers[place.name] = recorder.add_node(place.name, node.identity)
            disk.on_put = partial(recorder.on_put, number)

    def _start_adversaries(self, world: World, tasks: TaskGroup) -> None:
        for place in self._plan.places.values():
            if place.table is None:
                continue
            table = self._scenario.adversary[place.table]
            if table.kind == SILENT:
                addresses = [to_address(PeerId(peer)) for peer in place.peers]
                tasks.start_soon(be_silent, world, place.name, addresses, self._log)
                continue
            disk = Disk(can_crash=False)
            node = world.add(place.name, peers=place.peers, disk=disk, shape=shape_of(table.kind, self._log))
            attacker = Attacker(world, node, self._log, node.signing_key)
            if table.kind == REPLAY:
                disk.on_put = attacker.hear
            tasks.start_soon(node.start)
            tasks.start_soon(attack, attacker, table)

    async def _join(self, troubles: Troubles, node: SimulatedNode, place: Place) -> None:
        await anyio.sleep_until(place.start)
        await troubles.bring_up(node)
        for owner in self._plan.honest:
            if place.name in owner.mailboxes:
                identity = troubles.world.nodes[owner.name].identity
                await node.node.mail.rules.allow(identity, now=node.environment.now_ms())

    async def _watch(self, world: World) -> None:
        pause = max(SHORTEST_SAMPLE, self._end / SAMPLES)
        while True:
            self._sample(world)
            self._progress(anyio.current_time(), self._end)
            await anyio.sleep(pause)

    def _sample(self, world: World) -> None:
        nodes = world.network.traffic.nodes.values()
        self._recorder.sample(sum(n.received_bytes for n in nodes), sum(n.received_entries for n in nodes))

    async def _look_when_asked(self, world: World) -> None:
        """Sleep to the end, and evaluate all metrics at each time that an expectation names."""
        times = {expect.at for expect in self._scenario.expect if expect.at is not None and expect.at < self._end}
        for at in sorted(times):
            await anyio.sleep_until(at)
            self._values[at] = await evaluate(world, self._plan, self._recorder, self._workload)
        await anyio.sleep_until(self._end)

    def _check(self, metrics: dict[str, float]) -> list[Checked]:
        checked = []
        for expect in self._scenario.expect:
            at = self._scenario.duration if expect.at is None else expect.at
            values = metrics if at == self._end else self._values.get(at)
            checked.append(Checked(expect, None if values is None else values[expect.metric], at))
        return checked


def _first(group: BaseExceptionGroup[BaseException]) -> BaseException:
    error: BaseException = group
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


def _without_record(parts: Parts) -> Node:
    """A node that says nothing of itself unless it provides something: it publishes no identity record."""
    node = real_node(parts)

    async def say_nothing() -> None:
        return None

    # There is no setting for it: outside simulations a record costs nothing worth saving.
    vars(node._publisher)["_renew_record"] = say_nothing
    return node
