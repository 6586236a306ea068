"""The main job over the memory transport: publish, discover, invoke privately, verify. The carrier reads nothing."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any, NamedTuple

import anyio
import pytest
import trio.testing

from bnw.inbox.payload import Payload
from bnw.invoke.handlers import Answer, Call, HandlerFailure
from bnw.invoke.policy import CallPolicy
from bnw.invoke.requester import CallResult
from bnw.sim.node import SimulatedNode
from bnw.sim.world import World

pytestmark = pytest.mark.anyio

NAME = "finance/lookup"
QUESTION = b'{"symbol":"MSFT secret question"}'
ANSWER = b'{"price":"39.81 secret answer"}'
ANYONE = CallPolicy(anyone=True)


class Three(NamedTuple):
    """Provider and requester are configured to know the carrier, and learn of each other through it."""

    provider: SimulatedNode
    requester: SimulatedNode
    carrier: SimulatedNode

    async def ask(self) -> CallResult:
        return await self.requester.invoke(NAME, Payload(QUESTION, "application/json"), patience=20)


@pytest.fixture
def anyio_backend() -> tuple[str, dict[str, Any]]:
    return "trio", {"clock": trio.testing.MockClock(autojump_threshold=0)}


@pytest.fixture
async def three() -> AsyncIterator[Three]:
    async with World(seed=1) as world:
        carrier = await world.start("carrier")
        provider = await world.start("provider", peers=["carrier"])
        requester = await world.start("requester", peers=["carrier"])
        await provider.node.publish(NAME, b"opaque descriptor")
        yield Three(provider, requester, carrier)


async def _price(call: Call) -> Answer:
    assert call.input.data == QUESTION
    return Answer(ANSWER, "application/json")


async def _fail(call: Call) -> Answer:
    raise HandlerFailure("program-exit", "exit 3", detail="secret detail")


async def test_a_call_through_a_network_with_a_carrier_completes_and_its_receipt_verifies(three: Three) -> None:
    await three.provider.node.provide(NAME, _price, policy=ANYONE)
    with anyio.fail_after(30):
        result = await three.ask()
    assert result.status == "completed"
    assert result.output is not None
    assert result.output.data == ANSWER
    assert result.receipt.signer == three.provider.identity


async def test_the_carrier_holds_the_manifest_and_neither_question_nor_answer(three: Three) -> None:
    await three.provider.node.provide(NAME, _price, policy=ANYONE)
    await three.ask()
    carried = b"".join(three.carrier.store.all_bytes())
    assert NAME.encode() in carried, "the carrier carried the manifest, and the search finds what is there"
    assert b"secret" not in carried


async def test_without_a_policy_nobody_may_call(three: Three) -> None:
    await three.provider.node.provide(NAME, _price)
    with anyio.fail_after(30):
        result = await three.ask()
    assert (result.status, result.code) == ("rejected", "not-allowed")


async def test_a_failing_handler_gives_a_failed_receipt_whose_details_only_the_requester_reads(three: Three) -> None:
    await three.provider.node.provide(NAME, _fail, policy=ANYONE)
    with anyio.fail_after(30):
        result = await three.ask()
    assert (result.status, result.code) == ("failed", "program-exit")
    assert b"secret" not in result.receipt.data
    assert result.problem is not None and result.problem["detail"] == "secret detail"
