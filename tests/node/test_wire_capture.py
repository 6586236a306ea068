"""Every byte that nodes hand to the network while a call and a file go through a mailbox, searched for what is private.

The memory network stands for a wire without encryption: what a peer sees after it has decrypted its connection.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import anyio
import pytest
import trio.testing
from test_offline_calls import ANSWER, QUESTION, place

from bnw.blobs.offload import inline
from bnw.cli.demo.search import _forms
from bnw.sim.world import World
from bnw.transport.memory.gossip import Gossip
from bnw.transport.memory.stream import MemoryStream
from bnw.wire.content_id import content_id

pytestmark = pytest.mark.anyio

CONTENT = b"what only the recipient is to read"
FILE = "quarterly figures.csv"


@pytest.fixture
def anyio_backend() -> tuple[str, dict[str, Any]]:
    return "trio", {"clock": trio.testing.MockClock(autojump_threshold=0)}


@pytest.fixture
def wire(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    captured: list[bytes] = []
    send = MemoryStream.send

    async def capture(stream: MemoryStream, data: bytes) -> None:
        captured.append(bytes(data))
        await send(stream, data)

    publish = Gossip.publish

    async def capture_gossip(gossip: Gossip, topic: str, data: bytes) -> None:
        captured.append(bytes(data))
        await publish(gossip, topic, data)

    monkeypatch.setattr(MemoryStream, "send", capture)
    monkeypatch.setattr(Gossip, "publish", capture_gossip)
    return captured


def holds(wire: list[bytes], secret: bytes) -> bool:
    everything = b"".join(wire)
    return any(form in everything for form in _forms(secret))


async def test_nothing_private_is_on_the_wire_and_what_is_public_is(wire: list[bytes], tmp_path: Path) -> None:
    async with World(seed=1) as world:
        here = await place(world, 1)
        id = await here.ask_and_leave()
        await here.answer_and_leave()
        result = await here.come_back(id)
        assert result.output is not None and result.output.data == ANSWER
        (tmp_path / FILE).write_bytes(CONTENT)
        await here.requester.node.mail.send_file(
            here.provider.identity,
            tmp_path / FILE,
            media_type="text/csv",
            name=FILE,
            offload=inline,
            on_progress=lambda done, total: None,
        )
        await here.provider.start()
        await anyio.sleep(30)
        [message] = await here.provider.node.mail.list_messages()
        assert message.name == FILE
    for secret in (QUESTION.data, ANSWER, CONTENT, FILE.encode(), b"text/plain", b"text/csv"):
        assert not holds(wire, secret), secret
    for plaintext in (QUESTION.data, ANSWER, CONTENT):
        assert not holds(wire, content_id(plaintext))
    assert holds(wire, b"opaque descriptor"), "or nothing was captured"
    assert holds(wire, here.provider.identity)
