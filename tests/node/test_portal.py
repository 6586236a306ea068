"""An application on asyncio embeds nodes, each in a thread with a loop of its own (design section 3)."""

from __future__ import annotations

import asyncio
import hashlib
import shutil
from pathlib import Path

import pytest

from bnw.inbox.payload import Payload, PayloadFile, StoredPayload
from bnw.invoke.handlers import Answer, Call
from bnw.invoke.policy import CallPolicy
from bnw.node.configuration import Configuration
from bnw.node.home import Home
from bnw.node.opening import initialise_home
from bnw.node.portal import asyncio_node
from bnw.wire.errors import LocalError
from bnw.wire.limits import MAX_PAYLOAD_IN_MEMORY


def two_homes(tmp_path: Path) -> tuple[Home, Home]:
    provider, requester = Home(tmp_path / "provider"), Home(tmp_path / "requester")
    initialise_home(provider)
    initialise_home(requester)
    return provider, requester


def test_two_nodes_call_each_other_from_one_asyncio_application(tmp_path: Path) -> None:
    loops: list[asyncio.AbstractEventLoop] = []

    async def shout(call: Call) -> Answer:
        await asyncio.sleep(0)  # an asyncio call: this is the application's loop
        loops.append(asyncio.get_running_loop())
        return Answer(call.input.data.upper(), "text/plain")

    async def application() -> bytes:
        first, second = two_homes(tmp_path)
        async with asyncio_node(first) as provider:
            known = Configuration(peers=(await provider.status()).addresses)
            async with asyncio_node(second, configuration=known) as requester:
                await provider.publish("text/upper", b"opaque")
                await provider.provide("text/upper", shout, policy=CallPolicy(anyone=True))
                result = await requester.invoke("text/upper", Payload(b"hello", "text/plain"), patience=30)
        assert loops == [asyncio.get_running_loop()]
        assert isinstance(result.output, Payload)
        return result.output.data

    assert asyncio.run(application()) == b"HELLO"


def test_files_go_both_ways_from_an_asyncio_application(tmp_path: Path) -> None:
    size = MAX_PAYLOAD_IN_MEMORY + 1
    question, answer = tmp_path / "question", tmp_path / "answer"
    question.write_bytes(hashlib.shake_128(b"question").digest(size))

    async def copy(call: Call) -> Answer:
        assert isinstance(call.input, PayloadFile) and call.folder is not None
        output = call.folder.path / "copy"
        await asyncio.to_thread(shutil.copyfile, call.input.path, output)
        return Answer(file=output)

    async def application() -> None:
        first, second = two_homes(tmp_path)
        async with asyncio_node(first) as provider:
            known = Configuration(peers=(await provider.status()).addresses)
            async with asyncio_node(second, configuration=known) as requester:
                await provider.publish("text/copy", b"opaque")
                policy = CallPolicy(anyone=True, max_input_bytes=size, max_output_bytes=size)
                await provider.provide("text/copy", copy, policy=policy)
                payload = PayloadFile(question, size, "text/plain")
                result = await requester.invoke("text/copy", payload, max_output=size, patience=30)
                assert isinstance(result.output, StoredPayload)
                await requester.save_output(result.output, answer)

    asyncio.run(application())
    assert answer.read_bytes() == question.read_bytes()


def test_errors_and_cancellation_cross_the_loops(tmp_path: Path) -> None:
    home, _ = two_homes(tmp_path)

    async def application() -> None:
        async with asyncio_node(home) as node:
            with pytest.raises(LocalError) as caught:
                await node.withdraw("never/published")
            assert caught.value.code == "unknown-capability"
            with pytest.raises(TimeoutError):
                # Without the cancellation this would wait an hour, and so would closing the node.
                await asyncio.wait_for(node.inspect("never/published", patience=3600), 0.2)
            assert await node.entries() == []

    asyncio.run(application())


def test_a_node_that_cannot_open_says_why_and_leaves_no_thread(tmp_path: Path) -> None:
    async def application() -> None:
        async with asyncio_node(Home(tmp_path / "nothing")):
            pytest.fail("a node opened")

    with pytest.raises(LocalError) as caught:
        asyncio.run(application())
    assert caught.value.code == "home-missing"
