"""The main job over the memory transport: publish, discover, invoke privately, verify. The carrier reads nothing."""

from __future__ import annotations

from contextlib import AsyncExitStack

import anyio
import pytest
from blake3 import blake3

from bnw.identity.keystore import Keystore, new_keystore
from bnw.inbox.payload import Payload
from bnw.invoke.handlers import Answer, Call, HandlerFailure
from bnw.invoke.policy import CallPolicy
from bnw.node.configuration import Configuration
from bnw.node.keyring import KeyRing
from bnw.node.node import Node
from bnw.store.memory import MemoryStore
from bnw.transport.memory import MemoryNetwork

pytestmark = pytest.mark.anyio

QUESTION = b'{"symbol":"MSFT secret question"}'
ANSWER = b'{"price":"39.81 secret answer"}'
START = 1_800_000_000_000


class SeededEnvironment:
    """Time from a fixed start, and random bytes from a seed."""

    def __init__(self, seed: str) -> None:
        self._stream = blake3(seed.encode())
        self._used = 0
        self._origin = anyio.current_time()

    def now_ms(self) -> int:
        return START + int((anyio.current_time() - self._origin) * 1000)

    def random_bytes(self, count: int) -> bytes:
        data = self._stream.digest(length=count, seek=self._used)
        self._used += count
        return data


async def _save(keystore: Keystore) -> None:
    return None


async def _node(
    stack: AsyncExitStack, network: MemoryNetwork, name: str, peers: tuple[str, ...]
) -> tuple[Node, MemoryStore]:
    environment = SeededEnvironment(name)
    transport = await stack.enter_async_context(network.endpoint(name))
    store = MemoryStore()
    node = Node(
        keys=KeyRing(new_keystore(environment), environment, save=_save),
        store=store,
        transport=transport,
        environment=environment,
        configuration=Configuration(peers=peers),
    )
    return await stack.enter_async_context(node.running()), store


async def _price(call: Call) -> Answer:
    assert call.input.data == QUESTION
    return Answer(ANSWER, "application/json")


async def _fail(call: Call) -> Answer:
    raise HandlerFailure("program-exit", "exit 3", detail="secret detail")


@pytest.fixture
async def three():
    async with AsyncExitStack() as stack:
        network = await stack.enter_async_context(MemoryNetwork(SeededEnvironment("links")))
        carrier, carried = await _node(stack, network, "carrier", ())
        provider, _ = await _node(stack, network, "provider", ("mem:carrier",))
        requester, _ = await _node(stack, network, "requester", ("mem:carrier",))
        yield provider, requester, carrier, carried


async def test_a_call_through_a_network_with_a_carrier_completes_and_its_receipt_verifies(three) -> None:
    provider, requester, _carrier, carried = three
    manifest = await provider.publish("finance/lookup", b"opaque descriptor")
    await provider.provide("finance/lookup", _price, policy=CallPolicy(anyone=True))
    with anyio.fail_after(30):
        result = await requester.invoke("finance/lookup", Payload(QUESTION, "application/json"), patience=20)
    assert result.status == "completed"
    assert result.output is not None
    assert result.output.data == ANSWER
    assert result.receipt.signer == provider.identity
    assert await carried.get_object(manifest.id) is not None, "the carrier carried the manifest"
    kept = b"".join(carried._blobs.values()) + b"".join(obj.data for obj in carried._index.objects.values())
    assert b"secret" not in kept


async def test_without_a_policy_nobody_may_call(three) -> None:
    provider, requester, *_ = three
    await provider.publish("finance/lookup", b"opaque descriptor")
    await provider.provide("finance/lookup", _price)
    with anyio.fail_after(30):
        result = await requester.invoke("finance/lookup", Payload(QUESTION, "application/json"), patience=20)
    assert (result.status, result.code) == ("rejected", "not-allowed")


async def test_a_failing_handler_gives_a_failed_receipt_whose_details_only_the_requester_reads(three) -> None:
    provider, requester, *_ = three
    await provider.publish("finance/lookup", b"opaque descriptor")
    await provider.provide("finance/lookup", _fail, policy=CallPolicy(anyone=True))
    with anyio.fail_after(30):
        result = await requester.invoke("finance/lookup", Payload(QUESTION, "application/json"), patience=20)
    assert (result.status, result.code) == ("failed", "program-exit")
    assert b"secret" not in result.receipt.data
    assert result.problem is not None and result.problem["detail"] == "secret detail"
