"""Descriptors and what they link to: refused before publishing if nodes could not fetch them, and fetched from whoever
provides the capability if no neighbour has them. Virtual time."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import anyio
import pytest
import trio.testing

from bnw.invoke.descriptors import OpaqueDescriptors
from bnw.invoke.handlers import Answer, Call
from bnw.node.descriptors import MAX_LINKS
from bnw.sim.world import World
from bnw.wire.content_id import CONTENT_ID_SIZE, ContentId, content_id
from bnw.wire.errors import BnwError
from bnw.wire.limits import MAX_DESCRIPTOR

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> tuple[str, dict[str, Any]]:
    return "trio", {"clock": trio.testing.MockClock(autojump_threshold=0)}


@dataclass(frozen=True)
class Links:
    """The description of a descriptor that is nothing but content ids."""

    links: tuple[ContentId, ...]
    profile: str = "links"
    title: str = ""
    facts: tuple[Any, ...] = ()
    errors: tuple[Any, ...] = ()
    limits: None = None


class LinkProfile(OpaqueDescriptors):
    async def describe(self, descriptor: bytes) -> Any:
        steps = range(0, len(descriptor), CONTENT_ID_SIZE)
        return Links(tuple(ContentId(descriptor[start : start + CONTENT_ID_SIZE]) for start in steps))


@pytest.fixture
async def world() -> AsyncIterator[World]:
    async with World(seed=1, plugins=LinkProfile()) as world:
        yield world


async def fault(call: Any) -> str:
    with pytest.raises(BnwError) as caught:
        await call
    return caught.value.code


async def test_a_descriptor_with_more_links_than_nodes_fetch_is_not_published(world: World) -> None:
    node = (await world.start("publisher")).node
    ids = [await node.add_blob(b"%d" % number) for number in range(MAX_LINKS + 1)]
    assert await fault(node.publish("many", b"".join(ids))) == "too-many-links"
    await node.publish("most", b"".join(ids[:MAX_LINKS] * 2))


async def test_a_descriptor_that_links_to_what_nodes_do_not_fetch_is_not_published(world: World) -> None:
    node = (await world.start("publisher")).node
    assert await fault(node.publish("large", await node.add_blob(bytes(MAX_DESCRIPTOR + 1)))) == "too-large"
    assert await fault(node.publish("missing", content_id(b"nowhere"))) == "linked-blob-missing"
    await node.publish("largest", await node.add_blob(bytes(MAX_DESCRIPTOR)))


async def test_what_no_neighbour_has_comes_from_whoever_provides_the_capability(world: World) -> None:
    async def answer(call: Call) -> Answer:
        return Answer(b"", "text/plain")

    await world.start("carrier")
    provider = (await world.start("provider", peers=["carrier"])).node
    requester = (await world.start("requester", peers=["carrier"])).node
    schema = await provider.add_blob(b"schema")
    await provider.publish("linked", schema)
    assert await fault(requester.inspect("linked", patience=20)) == "blob-not-found"
    await provider.provide("linked", answer)
    # The offer has to come round before its endpoint can be reached.
    await requester.settle()
    with anyio.fail_after(60):
        while not requester_knows_offer(await requester.entries()):
            await anyio.sleep(0.1)
    view = await requester.inspect("linked")
    assert (view.descriptor, dict(view.schemas)) == (schema, {schema: b"schema"})


def requester_knows_offer(entries: list[Any]) -> bool:
    return any(entry.providers for entry in entries)
