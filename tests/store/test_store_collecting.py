"""Listing blobs, dropping inbox objects, and collecting blobs that nothing needs while others put and read them."""

from __future__ import annotations

import anyio
import pytest

from bnw.identity.keys import SigningKey
from bnw.objects.calls import Cancellation
from bnw.objects.signed import SignedObject, sign_object
from bnw.store.interface import ScopeChange, Store
from bnw.store.limits import INLINE_BLOB
from bnw.store.scopes import inbox_scope
from bnw.wire.content_id import content_id
from bnw.wire.limits import HOUR

pytestmark = pytest.mark.anyio

SMALL, LARGE = b"small", bytes(INLINE_BLOB + 1)
NOW = 1_800_000_000_000
BOB = SigningKey(b"b" * 32)
both = pytest.mark.parametrize("data", [SMALL, LARGE], ids=["in the database", "in a file"])


async def test_blobs_are_listed_by_id_in_pages_wherever_they_are_kept(store: Store) -> None:
    blobs = [b"%d" % number for number in range(20)] + [bytes([number]) * (INLINE_BLOB + 1) for number in range(5)]
    expected = sorted([(await store.put_blob(data), len(data)) for data in blobs])
    assert await store.list_blobs() == expected
    assert await store.list_blobs(limit=7) == expected[:7]
    assert await store.list_blobs(after=expected[6][0], limit=100) == expected[7:]
    assert await store.list_blobs(after=expected[-1][0]) == []


@both
async def test_what_nobody_touches_is_collected_and_gone(store: Store, data: bytes) -> None:
    id = await store.put_blob(data)
    with store.collecting():
        assert await store.collect_blob(id) is True
        assert await store.collect_blob(id) is False
    assert await store.blob_size(id) is None


@both
async def test_what_is_put_again_or_found_here_while_a_collection_runs_stays(store: Store, data: bytes) -> None:
    id = await store.put_blob(data)
    for touch in (lambda: store.put_blob(data), lambda: store.blob_size(id), lambda: store.get_blob(id)):
        with store.collecting():
            await touch()
            assert await store.collect_blob(id) is False
        assert await store.get_blob(id) == data
    with store.collecting():
        assert await store.collect_blob(id) is True


@both
async def test_whoever_puts_a_blob_in_the_moment_of_its_collection_has_it_afterwards(store: Store, data: bytes) -> None:
    id = content_id(data)
    for _ in range(20):
        await store.put_blob(data)
        with store.collecting():
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(store.collect_blob, id)
                tasks.start_soon(store.put_blob, data)
        assert await store.get_blob(id) == data


def cancellation(number: int) -> SignedObject:
    body = Cancellation(
        created=NOW - HOUR,
        expires=NOW + HOUR,
        invocation=content_id(b"%d" % number),
        reason=None,
        recipient=BOB.identity,
    )
    return sign_object(body, SigningKey(b"a" * 32))


async def test_inbox_objects_can_be_dropped_and_the_scope_knows(store: Store) -> None:
    mail = [cancellation(number) for number in range(3)]
    await store.put_objects(mail, now=NOW)
    told: list[ScopeChange] = []
    store.watch_scope(inbox_scope(BOB.identity), told.extend)
    assert await store.delete_inbox_objects([mail[0].id, mail[0].id, content_id(b"nothing")]) == 1
    assert await store.get_object(mail[0].id) is None
    assert (await store.scope_summary(inbox_scope(BOB.identity), now=NOW)).count == 2
    assert [(change.item.id, change.added) for change in told] == [(mail[0].id, False)]
