"""The memory of the catalog: read once, forgotten with every change, and never older than the store."""

from __future__ import annotations

import anyio
import pytest

from bnw.identity.keys import SigningKey
from bnw.invoke.catalog_cache import MAX_OBJECTS, MAX_QUESTIONS, CatalogCache
from bnw.objects.catalog import ProviderOffer
from bnw.objects.signed import SignedObject, sign_object
from bnw.store.memory import MemoryStore
from bnw.wire.content_id import content_id
from bnw.wire.limits import HOUR

pytestmark = pytest.mark.anyio

NOW = 1_800_000_000_000
KEY = SigningKey(b"k" * 32)


def offer(number: int, expires: int = NOW + HOUR) -> SignedObject:
    body = ProviderOffer(
        created=NOW,
        expires=expires,
        available=True,
        capability=content_id(b"%d" % number),
        endpoints=(),
        sequence=NOW,
    )
    return sign_object(body, KEY)


class Reader:
    def __init__(self, store: MemoryStore) -> None:
        self.store = store
        self.reads = 0
        self.pause = anyio.Event()
        self.pause.set()

    async def read(self) -> list[SignedObject]:
        self.reads += 1
        found = await self.store.list_objects(kind="provider-offer", now=NOW)
        await self.pause.wait()
        return found


async def test_a_question_is_read_once_and_again_after_any_change_of_the_catalog() -> None:
    reader = Reader(MemoryStore())
    cache = CatalogCache(reader.store)
    for expected in range(3):
        for _ in range(3):
            assert len(await cache.ask("offers", reader.read, now=NOW)) == expected
        assert reader.reads == expected + 1
        await reader.store.put_objects([offer(expected)], now=NOW)


async def test_what_has_expired_is_not_given_although_nothing_has_changed() -> None:
    reader = Reader(MemoryStore())
    cache = CatalogCache(reader.store)
    await reader.store.put_objects([offer(1, NOW + 10), offer(2)], now=NOW)
    assert len(await cache.ask("offers", reader.read, now=NOW)) == 2
    assert len(await cache.ask("offers", reader.read, now=NOW + 10)) == 1
    assert reader.reads == 1


async def test_what_was_read_while_the_catalog_changed_is_not_remembered() -> None:
    reader = Reader(MemoryStore())
    cache = CatalogCache(reader.store)
    reader.pause = anyio.Event()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(lambda: cache.ask("offers", reader.read, now=NOW))
        await anyio.wait_all_tasks_blocked()
        await reader.store.put_objects([offer(1)], now=NOW)
        reader.pause.set()
    assert len(await cache.ask("offers", reader.read, now=NOW)) == 1


async def test_it_is_bounded_in_questions_and_in_the_length_of_an_answer() -> None:
    store = MemoryStore()
    reader = Reader(store)
    cache = CatalogCache(store)
    for number in range(MAX_QUESTIONS + 1):
        await cache.ask(number, reader.read, now=NOW)
    assert len(cache._answers) == MAX_QUESTIONS
    await store.put_objects([offer(number) for number in range(MAX_OBJECTS + 1)], now=NOW)
    before = reader.reads
    for _ in range(2):
        assert len(await cache.ask("many", reader.read, now=NOW)) == MAX_OBJECTS + 1
    assert reader.reads == before + 2
