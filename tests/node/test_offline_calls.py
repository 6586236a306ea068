"""Calls between two nodes that are never online at the same time; only mailboxes always are."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any, NamedTuple

import anyio
import pytest
import trio.testing

from bnw.inbox.payload import Payload
from bnw.invoke.handlers import Answer, Call
from bnw.invoke.machines.requester import CONFIRMED
from bnw.invoke.policy import CallPolicy
from bnw.invoke.requester import CallResult
from bnw.sim.node import SimulatedNode
from bnw.sim.world import World
from bnw.wire.content_id import ContentId
from bnw.wire.limits import DAY, HOUR

pytestmark = pytest.mark.anyio

NAME = "lookup"
QUESTION = Payload(b"the secret question", "text/plain")
ANSWER = b"the secret answer"


@pytest.fixture
def anyio_backend() -> tuple[str, dict[str, Any]]:
    return "trio", {"clock": trio.testing.MockClock(autojump_threshold=0)}


class Place(NamedTuple):
    world: World
    boxes: list[SimulatedNode]
    provider: SimulatedNode
    requester: SimulatedNode
    runs: list[ContentId]

    async def provide(self) -> None:
        async def handler(call: Call) -> Answer:
            self.runs.append(call.invocation)
            return Answer(ANSWER, "text/plain")

        await self.provider.node.provide(NAME, handler, policy=CallPolicy(anyone=True))

    async def ask_and_leave(self) -> ContentId:
        """Ask, see that a mailbox has it, and leave."""
        mailed = anyio.Event()
        async with anyio.create_task_group() as group:

            async def ask() -> None:
                await self.requester.node.invoke(
                    NAME,
                    QUESTION,
                    deadline_in=DAY,
                    on_step=lambda step, details: mailed.set() if step == "mailed" else None,
                )

            group.start_soon(ask)
            with anyio.fail_after(60):
                await mailed.wait()
            await anyio.sleep(1)
            group.cancel_scope.cancel()
        [(id, call)] = await self.requester.node.calls.all()
        assert call.receipt is None
        await self.requester.stop()
        return id

    async def answer_and_leave(self, runs: int = 1) -> None:
        await self.provider.start()
        await self.provide()
        with anyio.fail_after(120):
            while len(self.runs) < runs:
                await anyio.sleep(1)
        await anyio.sleep(30)
        await self.provider.stop()

    async def come_back(self, id: ContentId) -> CallResult:
        await self.requester.start()
        with anyio.fail_after(120):
            return await self.requester.node.calls.wait(id, lambda step, details: None)


async def place(world: World, boxes: int) -> Place:
    names = [f"box{number}" for number in range(boxes)]
    mailboxes = [await world.start(name, peers=names[:number]) for number, name in enumerate(names)]
    provider = await world.start("provider", mailboxes=names)
    requester = await world.start("requester", mailboxes=names)
    for mailbox in mailboxes:
        for node in (provider, requester):
            await mailbox.node.mail.rules.allow(node.identity, now=mailbox.environment.now_ms())
    here = Place(world, mailboxes, provider, requester, [])
    await provider.node.publish(NAME, b"opaque descriptor")
    await here.provide()
    await requester.node.inspect(NAME, patience=30)
    await anyio.sleep(30)  # records reach everybody
    await provider.stop()
    return here


@pytest.fixture
async def offline() -> AsyncIterator[Place]:
    async with World(seed=1) as world:
        yield await place(world, 1)


@pytest.fixture
async def two_boxes() -> AsyncIterator[Place]:
    async with World(seed=1) as world:
        yield await place(world, 2)


async def test_a_call_is_asked_answered_and_opened_by_nodes_that_never_meet(offline: Place) -> None:
    id = await offline.ask_and_leave()
    await anyio.sleep(HOUR / 1000)
    await offline.answer_and_leave()
    result = await offline.come_back(id)
    assert result.output is not None
    assert (result.status, result.output.data) == ("completed", ANSWER)
    assert offline.runs == [id]


async def test_the_mailbox_holds_nothing_any_more_once_both_have_collected(offline: Place) -> None:
    id = await offline.ask_and_leave()
    [box] = offline.boxes
    held = {status.identity: status for status in await box.node.mail.carrier.status()}
    assert held[offline.provider.identity].objects == 2
    assert held[offline.provider.identity].bytes > 4096
    await offline.answer_and_leave()
    await offline.come_back(id)
    await anyio.sleep(60)
    assert [(status.objects, status.bytes) for status in await box.node.mail.carrier.status()] == [(0, 0), (0, 0)]
    assert (await box.store.statistics()).blobs == 0


async def test_with_two_mailboxes_a_call_runs_once_and_its_receipt_comes_once(two_boxes: Place) -> None:
    id = await two_boxes.ask_and_leave()
    await two_boxes.answer_and_leave()
    result = await two_boxes.come_back(id)
    assert result.status == "completed"
    await anyio.sleep(60)
    assert two_boxes.runs == [id]
    for box in two_boxes.boxes:
        assert [status.objects for status in await box.node.mail.carrier.status()] == [0, 0]


async def test_a_provider_that_crashes_after_collecting_does_not_run_the_call_twice(offline: Place) -> None:
    id = await offline.ask_and_leave()
    await offline.provider.start()
    await offline.provide()
    with anyio.fail_after(120):
        while not offline.runs:
            await anyio.sleep(0.1)
    await offline.provider.crash()
    await offline.provider.start()
    await offline.provide()
    await anyio.sleep(120)
    await offline.provider.stop()
    result = await offline.come_back(id)
    assert result.status in {"completed", "interrupted"}
    assert offline.runs == [id]


async def test_a_requester_that_is_online_gets_the_answer_by_mail_too(offline: Place) -> None:
    id = await offline.ask_and_leave()
    await offline.requester.start()
    await offline.answer_and_leave()
    with anyio.fail_after(60):
        result = await offline.requester.node.calls.wait(id, lambda step, details: None)
    assert result.status == "completed"


async def test_a_call_that_only_a_mailbox_has_counts_as_confirmed(offline: Place) -> None:
    await offline.ask_and_leave()
    await offline.requester.start()
    [(_, call)] = await offline.requester.node.calls.all()
    assert call.state in {"sent", CONFIRMED}


@pytest.mark.parametrize("when", ["before the mail came", "between its arrival and the run"])
async def test_a_provider_restored_from_a_backup_does_not_run_a_mailed_call_again(offline: Place, when: str) -> None:
    id = await offline.ask_and_leave()
    if when == "between its arrival and the run":
        await offline.provider.start()  # without providing: what it collects waits for that
        await anyio.sleep(60)
        await offline.provider.stop()
    backup = offline.provider.store.backup()
    backup._blobs.update(offline.requester.store._blobs)  # nor must the lack of chunks be what prevents it
    await offline.answer_and_leave()
    assert offline.runs == [id]
    offline.provider.store = backup
    await offline.provider.start()
    await offline.provide()
    await anyio.sleep(120)
    assert offline.runs == [id]
    await offline.provider.stop()
    assert (await offline.come_back(id)).status == "completed"
