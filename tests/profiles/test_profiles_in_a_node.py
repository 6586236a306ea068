"""The profile layer at work in running nodes: inputs are checked by the provider, and bad plug-ins harm nobody."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import anyio
import pytest

from bnw.api.profiles import ThreadedProfiles
from bnw.inbox.payload import Payload
from bnw.invoke.handlers import Answer, Call
from bnw.invoke.policy import CallPolicy
from bnw.invoke.requester import CallResult
from bnw.profiles.registry import OWN, PluginSource
from bnw.profiles.service import ProfileService
from bnw.profiles.worker_client import Bounds
from bnw.sim.world import World

pytestmark = pytest.mark.anyio

ROOT = Path(__file__).parents[2]
FINANCE = ROOT / "docs/examples/finance"
NAME = "finance/lookup"
TIGHT = Bounds(call_seconds=0.5, memory_bytes=300 * 1024 * 1024)


async def ask(question: Any) -> CallResult:
    """The end of a call with this input, of a capability whose input has a schema."""

    async def answer(call: Call) -> Answer:
        return Answer((FINANCE / "question.json").read_bytes(), "application/json")

    async with World(seed=1) as world:
        provider = (await world.start("provider")).node
        requester = (await world.start("requester", peers=["provider"])).node
        for side in ("input", "output"):
            await provider.add_blob((FINANCE / f"{side}.schema.json").read_bytes())
        await provider.publish(NAME, (FINANCE / "lookup.profile.json").read_bytes())
        await provider.provide(NAME, answer, policy=CallPolicy(anyone=True))
        with anyio.fail_after(20):
            return await requester.invoke(NAME, Payload(json.dumps(question).encode(), "application/json"), patience=10)


async def test_an_input_that_breaks_the_schema_gets_a_signed_rejection_that_locates_the_fault() -> None:
    result = await ask({"symbol": "IBM", "month": "March"})
    assert (result.status, result.code) == ("rejected", "invalid-input")
    assert result.problem is not None
    assert [error["pointer"] for error in result.problem["errors"]] == ["/month"]


async def test_the_requester_is_held_to_neither_schema_nor_template() -> None:
    """What it sends is its own affair: the input of the call above left the requester, and so does one of no kind."""
    result = await ask(["nothing", "like", "the", "template"])
    assert (result.status, result.code) == ("rejected", "invalid-input")


@pytest.mark.parametrize("kind", ["raising", "crashing", "hanging"])
async def test_a_plugin_that_fails_leaves_its_documents_opaque_and_replicated(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(Path(__file__).parent / "thirdparty"))
    bad = PluginSource(kind, f"toy_profile.bad:{kind.capitalize()}", "toy-profile")
    document = f"{kind} at every document".encode()
    with ProfileService(sources=[*OWN, bad], bounds=TIGHT) as service:
        async with World(seed=1, plugins=ThreadedProfiles(service)) as world:
            publisher = await world.start("publisher")
            follower = await world.start("follower", peers=["publisher"])
            third = world.add("third", peers=["follower"])
            with anyio.fail_after(30):
                await publisher.node.publish("toy", document)
                [capability] = (await follower.node.follow("toy", patience=20)).capabilities
                assert capability.state == "whole"
                await publisher.stop()
                await third.start()
                view = await third.node.inspect("toy", patience=20)
            assert (view.descriptor, view.description, view.input_template) == (document, None, None)
        assert service.faults(), "the plug-in was asked, and it failed"
