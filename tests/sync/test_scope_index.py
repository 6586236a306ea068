"""The index of a scope: the same as the store, at every moment and after any history."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

import anyio
import pytest
from sync_world import BOB, NOW, ROOMY, cancellation, delegation, delegations, offer

from bnw.objects.rules import CATALOG
from bnw.store.interface import ScopeItem, Store
from bnw.store.memory import MemoryStore
from bnw.store.scopes import inbox_scope
from bnw.store.sqlite import SqliteStore
from bnw.sync import scope_index
from bnw.sync.negentropy.coding import item_key
from bnw.sync.scope_index import ScopeIndex
from bnw.wire.content_id import ContentId
from bnw.wire.errors import LocalError

pytestmark = pytest.mark.anyio

OpenStore = Callable[[], AbstractAsyncContextManager[Store]]


@pytest.fixture
def anyio_backend() -> str:
    """Real time, since a virtual clock does not wait for threads."""
    return "trio"


@pytest.fixture(params=["memory", "sqlite"])
def open_store(request: pytest.FixtureRequest, tmp_path: Path) -> OpenStore:
    memory = MemoryStore(ROOMY)

    @asynccontextmanager
    async def open_one() -> AsyncIterator[Store]:
        if request.param == "memory":
            yield memory
        else:
            async with SqliteStore.open(tmp_path / "store", ROOMY) as store:
                yield store

    return open_one


async def agree(index: ScopeIndex, store: Store, now: int = NOW) -> bool:
    """Whether index and store have the same items, ordered by the time in each object and then by id."""
    items = await index.at(now)
    ids = await store.scope_ids(index.scope, now=now, limit=10_000)
    held = [await store.get_object(id) for id in ids]
    expected = sorted(item_key(obj.body.created, obj.id) for obj in held if obj is not None)
    return items.keys(0, len(items)) == expected and await index.summary(now) == await store.scope_summary(
        index.scope, now=now
    )


async def test_it_is_filled_from_what_the_store_holds_at_the_start(
    open_store: OpenStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scope_index, "LOADED_AT_ONCE", 7)
    async with open_store() as store:
        await store.put_objects([*delegations(50), cancellation()], now=NOW)
    async with open_store() as store:
        index = ScopeIndex(store, CATALOG)
        assert len(await index.at(NOW)) == 50
        assert await agree(index, store)


async def test_it_follows_every_change(open_store: OpenStore) -> None:
    async with open_store() as store:
        index = ScopeIndex(store, CATALOG)
        assert await agree(index, store)
        await store.put_objects(delegations(5), now=NOW)
        assert await agree(index, store)
        await store.put_objects([offer(1), offer(2)], now=NOW)
        await store.put_objects([offer(3, text=text) for text in "ab"], now=NOW)
        assert await agree(index, store), "replaced objects and losers of a contradiction are gone"
        assert len(await index.at(NOW)) == 6
        await store.put_record_with_objects("table", b"key", b"value", [delegation(99)], now=NOW)
        assert await agree(index, store)
        await store.put_objects([cancellation()], now=NOW)
        assert await agree(index, store), "mail is none of its business"


async def test_the_index_of_an_inbox_follows_that_inbox(open_store: OpenStore) -> None:
    async with open_store() as store:
        index = ScopeIndex(store, inbox_scope(BOB.identity))
        await store.put_objects([cancellation(1), delegation()], now=NOW)
        assert len(await index.at(NOW)) == 1
        assert await agree(index, store)


async def test_what_has_expired_is_gone_whether_the_store_has_removed_it_or_not(open_store: OpenStore) -> None:
    async with open_store() as store:
        index = ScopeIndex(store, CATALOG)
        await store.put_objects([delegation(1, expires=NOW + 10), delegation(2)], now=NOW)
        assert len(await index.at(NOW + 9)) == 2
        for _ in range(2):
            assert len(await index.at(NOW + 10)) == 1
            assert await agree(index, store, NOW + 10)
            await store.remove_expired(now=NOW + 10)


async def test_several_may_ask_while_it_is_being_filled(open_store: OpenStore) -> None:
    async with open_store() as store:
        await store.put_objects(delegations(3000), now=NOW)
        index = ScopeIndex(store, CATALOG)
        sizes: list[int] = []

        async def ask() -> None:
            sizes.append(len(await index.at(NOW)))

        async with anyio.create_task_group() as tasks:
            for _ in range(4):
                tasks.start_soon(ask)
        assert sizes == [3000] * 4


class SlowStore(MemoryStore):
    """Lets others act between reading a page and handing it over, as a store with threads does."""

    def __init__(self) -> None:
        super().__init__(ROOMY)
        self.is_read = anyio.Event()
        self.may_return = anyio.Event()
        self.is_broken = False

    async def scope_items(
        self, scope: str, *, now: int, after: ContentId | None = None, limit: int = 1024
    ) -> list[ScopeItem]:
        if self.is_broken:
            raise LocalError("store-failed", "the disk is gone")
        page = await super().scope_items(scope, now=now, after=after, limit=limit)
        self.is_read.set()
        await self.may_return.wait()
        return page


async def test_changes_during_the_filling_are_not_undone_by_what_was_read_before() -> None:
    store = SlowStore()
    await store.put_objects([offer(1), *delegations(3)], now=NOW)
    index = ScopeIndex(store, CATALOG)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(index.at, NOW)
        await store.is_read.wait()
        await store.put_objects([offer(2), delegation(50)], now=NOW)
        store.may_return.set()
    assert await agree(index, store)


async def test_a_failing_store_is_asked_again_the_next_time() -> None:
    store = SlowStore()
    store.may_return.set()
    await store.put_objects(delegations(3), now=NOW)
    index = ScopeIndex(store, CATALOG)
    store.is_broken = True
    with pytest.raises(LocalError):
        await index.at(NOW)
    store.is_broken = False
    assert len(await index.at(NOW)) == 3
