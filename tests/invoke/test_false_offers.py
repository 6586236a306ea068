"""Offers that name somebody else's endpoints: they cost a question each, and never a copy of the invocation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
import trio.testing

from bnw.identity.inbox_keys import new_inbox_key
from bnw.identity.keys import SigningKey
from bnw.inbox.payload import Payload
from bnw.invoke.handlers import Answer, Call
from bnw.invoke.policy import CallPolicy
from bnw.objects.catalog import PROVIDE_ANYONE, IdentityRecord, ProviderOffer, PublicInboxKey
from bnw.objects.signed import SignedObject, sign_object
from bnw.sim.node import SimulatedNode
from bnw.sim.world import World
from bnw.transport.interface import PeerId
from bnw.transport.memory.dialling import to_address
from bnw.wire.content_id import ContentId
from bnw.wire.errors import RemoteError
from bnw.wire.limits import HOUR

pytestmark = pytest.mark.anyio

NAME = "lookup"
QUESTION = Payload(b"question", "text/plain")


@pytest.fixture
def anyio_backend() -> tuple[str, dict[str, Any]]:
    return "trio", {"clock": trio.testing.MockClock(autojump_threshold=0)}


async def answer(call: Call) -> Answer:
    return Answer(b"answer", "text/plain")


def false_offer(number: int, capability: ContentId, at: SimulatedNode) -> list[SignedObject]:
    """An offer at the endpoint of `at`, which knows nothing of it, and a key to seal to for whoever believes it."""
    now = at.environment.now_ms()
    key = SigningKey(bytes([number]) * 32)
    record = IdentityRecord(
        created=now,
        expires=now + HOUR,
        inbox_keys=(PublicInboxKey(new_inbox_key(bytes([number]) * 32, now).public, now + HOUR, now),),
        mailboxes=(),
        sequence=now,
    )
    body = ProviderOffer(
        available=True,
        capability=capability,
        created=now,
        endpoints=(to_address(PeerId(at.name)),),
        expires=now + HOUR,
        sequence=now,
    )
    return [sign_object(record, key), sign_object(body, key)]


async def put(node: SimulatedNode, objects: Sequence[SignedObject]) -> None:
    await node.store.put_objects(objects, now=node.environment.now_ms())


async def test_the_call_goes_to_a_provider_that_is_there_and_no_copy_of_it_anywhere_else() -> None:
    async with World(seed=1) as world:
        carrier = await world.start("carrier")
        provider = await world.start("provider", peers=["carrier"])
        requester = await world.start("requester", peers=["carrier"])
        manifest = await provider.node.publish(NAME, b"opaque", provide=PROVIDE_ANYONE)
        await provider.node.provide(NAME, answer, policy=CallPolicy(anyone=True))
        await requester.node.inspect(NAME, patience=20)  # or the lack of a descriptor would tell them apart
        for number in range(1, 5):
            await put(requester, false_offer(number, manifest.id, carrier))
        result = await requester.node.invoke(NAME, QUESTION, patience=20)
        assert (result.status, result.receipt.signer) == ("completed", provider.identity)
        assert len(await requester.node.calls.all()) == 1


async def test_when_nobody_is_there_no_invocation_is_even_signed() -> None:
    async with World(seed=1) as world:
        carrier = await world.start("carrier")
        requester = await world.start("requester", peers=["carrier"])
        manifest = await carrier.node.publish(NAME, b"opaque", provide=PROVIDE_ANYONE)
        await requester.node.find(NAME, patience=20)
        await put(requester, false_offer(1, manifest.id, carrier))
        with pytest.raises(RemoteError, match="knows nothing of it") as caught:
            await requester.node.invoke(NAME, QUESTION, patience=1)
        assert caught.value.code == "unreachable"
        assert await requester.node.calls.all() == []
