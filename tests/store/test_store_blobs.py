"""What every store does with blobs and with records of the node's own."""

from __future__ import annotations

import pytest
from store_objects import ALICE, NOW, OpenStore, delegation, offer

from bnw.store.interface import PutOutcome, Quota, Store, StoreStatistics
from bnw.store.limits import INLINE_BLOB, MAX_RECORD
from bnw.wire.content_id import content_id
from bnw.wire.errors import InvalidError
from bnw.wire.limits import MAX_BLOB

pytestmark = pytest.mark.anyio

SIZES = [0, 1, INLINE_BLOB, INLINE_BLOB + 1, 1_000_000]


@pytest.mark.parametrize("size", SIZES)
async def test_a_blob_reads_back_under_its_content_id_until_it_is_deleted(store: Store, size: int) -> None:
    data = bytes(size)
    id = content_id(data)
    assert await store.get_blob(id) is None
    assert await store.blob_size(id) is None
    assert await store.delete_blob(id) is False
    assert await store.put_blob(data) == id
    assert await store.put_blob(data) == id
    assert await store.get_blob(id) == data
    assert await store.blob_size(id) == size
    assert await store.delete_blob(id) is True
    assert await store.get_blob(id) is None
    assert await store.delete_blob(id) is False


async def test_a_blob_of_the_largest_size_is_kept_and_one_byte_more_is_refused(store: Store) -> None:
    id = await store.put_blob(bytes(MAX_BLOB))
    assert await store.blob_size(id) == MAX_BLOB
    with pytest.raises(InvalidError) as caught:
        await store.put_blob(bytes(MAX_BLOB + 1))
    assert caught.value.code == "too-large"
    assert await store.get_blob(content_id(bytes(MAX_BLOB + 1))) is None


async def test_an_object_can_be_read_as_a_blob_but_not_deleted_as_one(store: Store) -> None:
    obj = offer()
    await store.put_objects([obj], now=NOW)
    assert await store.get_blob(obj.id) == obj.data
    assert await store.blob_size(obj.id) == len(obj.data)
    assert await store.delete_blob(obj.id) is False
    assert await store.get_object(obj.id) == obj


async def test_a_blob_is_not_an_object_even_if_its_bytes_are_one(store: Store) -> None:
    """What is put as bytes has not been verified."""
    obj = offer()
    await store.put_blob(obj.data)
    assert await store.get_object(obj.id) is None
    assert await store.missing_objects([obj.id]) == [obj.id]


async def test_statistics_count_objects_and_blobs(store: Store) -> None:
    assert await store.statistics() == StoreStatistics(0, 0, 0, 0)
    objects = [delegation(1), delegation(2), offer()]
    await store.put_objects(objects, now=NOW)
    ids = [await store.put_blob(bytes(size)) for size in SIZES]
    await store.put_blob(bytes(SIZES[1]))
    size = sum(len(obj.data) for obj in objects)
    assert await store.statistics() == StoreStatistics(3, size, len(SIZES), sum(SIZES))
    for id in ids:
        await store.delete_blob(id)
    assert await store.statistics() == StoreStatistics(3, size, 0, 0)


async def test_records_are_kept_replaced_and_deleted_by_table_and_key(store: Store) -> None:
    await store.put_record("calls", b"k", b"1")
    await store.put_record("other", b"k", b"2")
    assert await store.get_record("calls", b"k") == b"1"
    await store.put_record("calls", b"k", b"3")
    assert await store.get_record("calls", b"k") == b"3"
    assert await store.delete_record("calls", b"k") is True
    assert await store.delete_record("calls", b"k") is False
    assert await store.get_record("calls", b"k") is None
    assert await store.get_record("other", b"k") == b"2"


async def test_records_are_listed_by_key_and_paged(store: Store) -> None:
    keys = [b"", b"\0", b"\0\0", b"a", b"a\0", b"b", b"\xff"]
    for key in reversed(keys):
        await store.put_record("t", key, key * 2)
    await store.put_record("u", b"x", b"y")
    assert await store.list_records("t") == [(key, key * 2) for key in keys]
    assert await store.list_records("nothing") == []
    paged: list[bytes] = []
    while page := await store.list_records("t", after=paged[-1] if paged else None, limit=2):
        assert len(page) <= 2
        paged += [key for key, _ in page]
    assert paged == keys


async def test_records_have_a_largest_size(store: Store) -> None:
    await store.put_record("t", b"k", bytes(MAX_RECORD))
    with pytest.raises(InvalidError) as caught:
        await store.put_record("t", b"k", bytes(MAX_RECORD + 1))
    assert caught.value.code == "too-large"
    with pytest.raises(InvalidError):
        await store.put_record_with_objects("t", b"k", bytes(MAX_RECORD + 1), [offer()], now=NOW)
    assert await store.get_object(offer().id) is None
    assert await store.get_record("t", b"k") == bytes(MAX_RECORD)


async def test_a_record_goes_in_with_its_objects(open_store: OpenStore) -> None:
    async with open_store(Quota(objects=1)) as store:
        objects = [offer(1, key=ALICE), delegation()]
        outcomes = await store.put_record_with_objects("t", b"k", b"v", objects, now=NOW)
        assert outcomes == [PutOutcome.ADDED, PutOutcome.OVER_QUOTA]
        assert await store.get_record("t", b"k") == b"v"
        assert await store.get_object(objects[0].id) == objects[0]
