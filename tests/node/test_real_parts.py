"""The main job with real parts: three nodes on SQLite and libp2p over loopback."""

from __future__ import annotations

from contextlib import AsyncExitStack
from pathlib import Path

import anyio
import pytest

from bnw.inbox.payload import Payload
from bnw.invoke.handlers import ProgramHandler
from bnw.invoke.policy import CallPolicy
from bnw.node.configuration import Configuration
from bnw.node.home import Home
from bnw.node.opening import initialise_home, open_node
from bnw.wire.errors import LocalError

pytestmark = pytest.mark.anyio


async def test_a_program_answers_a_call_over_libp2p_and_the_carrier_keeps_no_plaintext(tmp_path: Path) -> None:
    async with AsyncExitStack() as stack:
        homes = {name: Home(tmp_path / name) for name in ("carrier", "provider", "requester")}
        initialise_home(homes["carrier"])
        carrier = await stack.enter_async_context(open_node(homes["carrier"]))
        known = Configuration(peers=(await carrier.status()).addresses)
        for name in ("provider", "requester"):
            initialise_home(homes[name], configuration=known)
        provider = await stack.enter_async_context(open_node(homes["provider"]))
        requester = await stack.enter_async_context(open_node(homes["requester"]))
        await provider.publish("text/upper", b"opaque descriptor")
        program = ProgramHandler(["/usr/bin/env", "tr", "a-z", "A-Z"], environment={"PATH": "/usr/bin:/bin"})
        await provider.provide("text/upper", program, policy=CallPolicy(anyone=True))
        with anyio.fail_after(60):
            result = await requester.invoke("text/upper", Payload(b"a secret question", "text/plain"), patience=50)
        assert result.status == "completed"
        assert result.output is not None
        assert result.output.data == b"A SECRET QUESTION"
        kept = b"".join(path.read_bytes() for path in sorted(homes["carrier"].path.rglob("*")) if path.is_file())
        assert b"text/upper" in kept, "the carrier carried the manifest, and the search finds what is there"
        assert b"secret question" not in kept.lower()


async def test_a_second_node_on_the_same_home_is_refused(tmp_path: Path) -> None:
    home = Home(tmp_path)
    initialise_home(home)
    async with open_node(home):
        with pytest.raises(LocalError) as caught:
            async with open_node(home):
                pytest.fail("a second node opened")
    assert caught.value.code == "home-in-use"
    assert str(tmp_path) in str(caught.value)


async def test_a_home_is_never_initialised_twice(tmp_path: Path) -> None:
    home = Home(tmp_path)
    initialise_home(home)
    before = home.keystore.read_bytes()
    with pytest.raises(LocalError, match="not touched"):
        initialise_home(home)
    assert home.keystore.read_bytes() == before
