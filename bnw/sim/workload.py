"""What nodes are asked to do: publish, provide, call, look, follow. Through the same calls that programs use."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Final

import anyio
from anyio.abc import TaskGroup

from bnw.identity.keys import did_key
from bnw.inbox.payload import Payload
from bnw.invoke.handlers import Answer, Call, Function
from bnw.invoke.policy import CallPolicy
from bnw.node.followed import WHOLE
from bnw.objects.catalog import PROVIDE_ANYONE, PROVIDE_PUBLISHER
from bnw.sim.calls import CallLog
from bnw.sim.environment import SeededEnvironment
from bnw.sim.node import SimulatedNode
from bnw.sim.plan import Plan
from bnw.sim.repeating import repeat_deliveries
from bnw.sim.scenario.schema import Fetch, Follow, Invoke, Provide, Publish, Scenario
from bnw.sim.taking_up import TakingUp
from bnw.sim.world import World
from bnw.transport.memory.chance import draw
from bnw.wire.content_id import content_id
from bnw.wire.environment import random_below
from bnw.wire.errors import BnwError, LocalError
from bnw.wire.limits import SECOND

MEDIA_TYPE: Final = "application/octet-stream"
LOOK_AGAIN: Final = 0.5
"""Seconds between two looks whether a node is back that has something to do."""
PROVIDED_SIZE: Final = 256


@dataclass(slots=True)
class Workload:
    scenario: Scenario
    world: World
    plan: Plan
    log: CallLog
    descriptors: dict[str, set[bytes]] = field(default_factory=dict)
    """Every descriptor that has been published under a reference, in all versions."""
    provided: dict[str, list[str]] = field(default_factory=dict)
    """References by the role of the provider."""
    published: dict[str, list[str]] = field(default_factory=dict)
    """References by the role of the publisher, those of providers included."""
    followers: list[SimulatedNode] = field(default_factory=list)
    taking_up: TakingUp = field(init=False)

    def __post_init__(self) -> None:
        self.taking_up = TakingUp(self.world, self.log)

    def start(self, tasks: TaskGroup) -> None:
        """Begin all that the scenario asks for, each node and table in a task of its own."""
        for publish in self.scenario.publish:
            for place in self.plan.of(publish.by):
                tasks.start_soon(self._publish, self.world.nodes[place.name], publish)
        for provide in self.scenario.provide:
            for place in self.plan.of(provide.by):
                tasks.start_soon(self._provide, self.world.nodes[place.name], provide)
        for invoke in self.scenario.invoke:
            for place in self.plan.of(invoke.by):
                tasks.start_soon(self._invoke, self.world.nodes[place.name], invoke)
        for fetch in self.scenario.fetch:
            places = self.plan.of(fetch.by)
            for number, place in enumerate(places):
                wait = fetch.start + fetch.spread * number / len(places)
                tasks.start_soon(self._fetch, self.world.nodes[place.name], fetch, wait)
        for follow in self.scenario.follow:
            for place in self.plan.of(follow.by):
                tasks.start_soon(self._follow, self.world.nodes[place.name], follow)

    def complete_share(self) -> float:
        """How much of what is followed is whole at the nodes that run."""
        running = [node for node in self.followers if node.is_running]
        states = [item.state for node in running for view in node.node.follows() for item in view.capabilities]
        return sum(state == WHOLE for state in states) / len(states) if states else 1.0

    async def _publish(self, node: SimulatedNode, table: Publish) -> None:
        environment = self._chance(node, "publish", table.start)
        await anyio.sleep_until(table.start)
        for version in range(table.versions):
            for number in range(table.count):
                name = f"{node.name}/p{number}"
                await self._say(node, name, environment.random_bytes(table.size), PROVIDE_PUBLISHER)
                if table.withdraw_after is not None and version == table.versions - 1:
                    self.world.tasks.start_soon(self._withdraw, node, name, table.withdraw_after)
                await anyio.sleep(table.every)

    async def _withdraw(self, node: SimulatedNode, name: str, after: float) -> None:
        await anyio.sleep(after)
        await self._insist(node, lambda: node.node.withdraw(name))

    async def _say(self, node: SimulatedNode, name: str, descriptor: bytes, provide: str) -> str:
        """Publish, however often the node is not there; returns the reference."""
        reference = f"{did_key(node.identity)}/{name}"
        self.descriptors.setdefault(reference, set()).add(descriptor)
        await self._insist(node, lambda: node.node.publish(name, descriptor, provide=provide))
        references = self.published.setdefault(self.plan.places[node.name].role, [])
        if reference not in references:
            references.append(reference)
        return reference

    async def _provide(self, node: SimulatedNode, table: Provide) -> None:
        environment = self._chance(node, "provide", table.start)
        descriptors = [environment.random_bytes(PROVIDED_SIZE) for _ in range(table.capabilities)]
        await anyio.sleep_until(table.start)

        async def answer(call: Call) -> Answer:
            self.log.runs[call.invocation] += 1
            self.world.record(node.name, "runs", call.invocation.hex())
            await anyio.sleep(draw(environment, table.thinking_shape, table.thinking))
            return Answer(right_answer(call.data, table.output), MEDIA_TYPE)

        rule = PROVIDE_ANYONE if table.open else PROVIDE_PUBLISHER
        is_first = True
        while True:
            for number, descriptor in enumerate(descriptors):
                reference = await self._say(node, f"{node.name}/s{number}", descriptor, rule)
                if is_first:
                    self.provided.setdefault(table.by, []).append(reference)
                await self._insist(node, partial(_provide_now, node, reference, answer))
            is_first = False
            start = node.starts
            while node.starts == start:
                await anyio.sleep(LOOK_AGAIN if table.renew is None else table.renew)
                if table.renew is not None and node.starts == start and node.is_running:
                    await node.renew_offers()

    async def _invoke(self, node: SimulatedNode, table: Invoke) -> None:
        environment = self._chance(node, "invoke", table.start)
        if table.take_up:
            self.taking_up.begin(node)
        if table.copies:
            repeat_deliveries(self.world, node, table.copies)
        await anyio.sleep_until(table.start + draw(environment, table.every_shape, table.every))
        for _ in range(table.count):
            references = self.provided.get(table.of, [])
            if node.is_running and references:
                reference = references[random_below(environment, len(references))]
                self.world.tasks.start_soon(self._call, node, table, reference, environment.random_bytes(32))
            await anyio.sleep(draw(environment, table.every_shape, table.every))

    async def _call(self, node: SimulatedNode, table: Invoke, reference: str, question: bytes) -> None:
        log, began = self.log, anyio.current_time()
        data = question + bytes(max(0, table.input - len(question)))
        output = max(provide.output for provide in self.scenario.provide if provide.by == table.of)
        try:
            result = await node.invoke(
                reference,
                Payload(data, MEDIA_TYPE),
                deadline_in=round(table.deadline * SECOND),
                patience=table.deadline,
            )
        except BnwError as error:
            log.made += 1
            log.endings[error.code] += 1
            return
        log.made += 1
        if not result.was_begun and log.runs[result.id]:
            log.forgotten += 1
        if result.output is None:
            log.endings[result.status if result.code is None else f"{result.status}: {result.code}"] += 1
        elif not isinstance(result.output, Payload) or result.output.data != right_answer(data, output):
            log.wrong += 1
        else:
            log.completed += 1
            log.seconds.append(anyio.current_time() - began)

    async def _fetch(self, node: SimulatedNode, table: Fetch, wait: float) -> None:
        await anyio.sleep_until(wait)
        for reference in list(self.published.get(table.of, [])):
            if not node.is_running:
                return
            began = anyio.current_time()
            try:
                view = await node.node.inspect(reference)
            except BnwError as error:
                self.log.looks += 1
                self.log.look_faults[error.code] += 1
                self.world.record(node.name, "look-failed", error.code)
                continue
            self.log.looks += 1
            if view.descriptor is None:
                self.log.look_faults["no-descriptor"] += 1
            elif view.descriptor not in self.descriptors[reference]:
                self.log.wrong_bytes += 1
            else:
                self.log.found += 1
                self.log.look_seconds.append(anyio.current_time() - began)

    async def _follow(self, node: SimulatedNode, table: Follow) -> None:
        await anyio.sleep_until(table.start)
        self.followers.append(node)
        for place in self.plan.of(table.of):
            reference = did_key(self.world.nodes[place.name].identity)
            await self._insist(node, partial(_follow_now, node, reference))

    async def _insist(self, node: SimulatedNode, act: Callable[[], Awaitable[object]]) -> None:
        """Do something as soon as the node runs, and again if it vanished over it."""
        while True:
            await node.wait_until_running()
            start = node.starts
            try:
                await act()
            except LocalError as error:
                if error.code == "already-provided":
                    return
                self.world.record(node.name, "not-done", error.code)
            except BnwError as error:
                self.world.record(node.name, "not-done", error.code)
            else:
                if node.starts == start and node.is_running:
                    return
            await anyio.sleep(LOOK_AGAIN)

    def _chance(self, node: SimulatedNode, what: str, start: float) -> SeededEnvironment:
        """A stream of chance for one task, so that tasks do not change each other's."""
        return SeededEnvironment(self.world.seed, "workload", node.name, what, f"{start}")


async def _provide_now(node: SimulatedNode, reference: str, handler: Function) -> None:
    await node.node.provide(reference, handler, policy=CallPolicy(anyone=True))


async def _follow_now(node: SimulatedNode, reference: str) -> None:
    await node.node.follow(reference, patience=0.0)


def right_answer(question: bytes, size: int) -> bytes:
    """What a provider of the workload answers: the hash of the input, repeated."""
    digest = content_id(question)
    return (digest * (size // len(digest) + 1))[:size]
