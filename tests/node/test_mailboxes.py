"""A mailbox: whom it takes mail for, how much of it, and when it lets go."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, NamedTuple

import anyio
import pytest
import trio.testing

from bnw.blobs.offload import inline
from bnw.identity.keys import SigningKey
from bnw.inbox.carrier import InboxStatus
from bnw.inbox.delivery import Mail
from bnw.inbox.payload import CarriedPayload, Payload, seal_payload
from bnw.objects.mail import Acknowledgement, PayloadManifest
from bnw.objects.signed import SignedObject, sign_object
from bnw.sim.node import SimulatedNode
from bnw.sim.world import World
from bnw.store.scopes import inbox_scope
from bnw.transport.interface import PeerId
from bnw.wire.content_id import ContentId, content_id
from bnw.wire.errors import LocalError, RemoteError
from bnw.wire.limits import DAY, HOUR, KIB, MINUTE

pytestmark = pytest.mark.anyio

STRANGER = SigningKey(b"s" * 32)


@pytest.fixture
def anyio_backend() -> tuple[str, dict[str, Any]]:
    return "trio", {"clock": trio.testing.MockClock(autojump_threshold=0)}


class Place(NamedTuple):
    world: World
    box: SimulatedNode
    owner: SimulatedNode
    sender: SimulatedNode

    def letter(self, data: bytes = b"hello", *, name: str | None = None) -> CarriedPayload:
        """A message from the sender to the owner."""
        recipients = {self.owner.identity: self.owner._keys.inbox_keys()[-1].public}
        return seal_payload(
            Payload(data, "text/plain", name),
            sender=self.sender.signing_key,
            recipients=recipients,
            environment=self.sender.environment,
        )

    async def deposit(self, carried: CarriedPayload, peer: str = "sender") -> None:
        blobs = {content_id(chunk): chunk for chunk in carried.chunks}
        await self.box.node.mail.carrier.take(PeerId(peer), Mail((), (carried.manifest,), blobs))

    def acknowledgement(self, *ids: ContentId, key: SigningKey | None = None) -> SignedObject:
        now = self.owner.environment.now_ms()
        body = Acknowledgement(
            created=now, expires=now + HOUR, objects=tuple(sorted(ids)), recipient=self.sender.identity
        )
        return sign_object(body, key or self.owner.signing_key)

    async def release(self, *ids: ContentId, key: SigningKey | None = None) -> list[ContentId]:
        return await self.box.node.mail.carrier.release(self.acknowledgement(*ids, key=key))

    async def status(self) -> InboxStatus:
        [status] = await self.box.node.mail.carrier.status()
        return status

    async def allow(self, **bounds: int) -> None:
        await self.box.node.mail.rules.allow(self.owner.identity, now=self.box.environment.now_ms(), **bounds)


@pytest.fixture
async def place() -> AsyncIterator[Place]:
    """The owner has named the mailbox, which allows it, and is away."""
    async with World(seed=1) as world:
        box = await world.start("box")
        owner = await world.start("owner", mailboxes=["box"])
        sender = await world.start("sender", peers=["box"])
        here = Place(world, box, owner, sender)
        await here.allow()
        await anyio.sleep(30)
        await owner.stop()
        yield here


async def refused(place: Place, carried: CarriedPayload, code: str) -> None:
    with pytest.raises(LocalError) as caught:
        await place.deposit(carried)
    assert caught.value.code == code


async def test_what_was_accepted_waits_with_its_chunks_and_survives_a_crash(place: Place) -> None:
    carried = place.letter(bytes(20_000))
    await place.deposit(carried)
    await place.box.crash()
    await place.box.start()
    status = await place.status()
    size = len(carried.manifest.data) + sum(map(len, carried.chunks))
    assert (status.objects, status.bytes) == (1, size)
    for chunk in carried.chunks:
        assert await place.box.store.get_blob(content_id(chunk)) == chunk


async def test_mail_for_somebody_who_is_not_served_and_for_one_who_has_not_named_the_mailbox_is_refused_alike(
    place: Place,
) -> None:
    stranger = seal_payload(
        Payload(b"x", "text/plain"),
        sender=place.sender.signing_key,
        recipients={STRANGER.identity: place.owner._keys.inbox_keys()[-1].public},
        environment=place.sender.environment,
    )
    await refused(place, stranger, "not-here")
    await place.box.node.mail.rules.allow(STRANGER.identity, now=place.box.environment.now_ms())
    await refused(place, stranger, "not-here")


async def test_a_full_mailbox_refuses_and_drops_nothing_that_it_accepted(place: Place) -> None:
    await place.allow(bytes=64 * KIB)
    letters = [place.letter(bytes(25_000)) for _ in range(3)]
    await place.deposit(letters[0])
    await place.deposit(letters[1])
    before = await place.status()
    await refused(place, letters[2], "mailbox-full")
    assert await place.status() == before
    await place.release(letters[0].manifest.id)
    await place.deposit(letters[2])


async def test_objects_are_bounded_as_well_as_bytes(place: Place) -> None:
    await place.allow(objects=2)
    await place.deposit(place.letter(b"1"))
    await place.deposit(place.letter(b"2"))
    await refused(place, place.letter(b"3"), "mailbox-full")


async def test_deliveries_at_the_same_time_cannot_exceed_the_quota_together(place: Place) -> None:
    await place.allow(objects=3)
    results: list[bool] = []

    async def try_one(number: int) -> None:
        try:
            await place.deposit(place.letter(b"%d" % number), f"peer{number}")
        except LocalError:
            results.append(False)
        else:
            results.append(True)

    async with anyio.create_task_group() as group:
        for number in range(10):
            group.start_soon(try_one, number)
    assert (sorted(results), (await place.status()).objects) == ([False] * 7 + [True] * 3, 3)


async def test_the_quota_is_judged_by_what_is_declared_before_anything_is_fetched(place: Place) -> None:
    await place.allow(bytes=64 * KIB)
    large = place.letter(bytes(200_000))
    with pytest.raises(LocalError) as caught:
        await place.box.node.mail.carrier.take(PeerId("sender"), Mail((), (large.manifest,)))
    assert caught.value.code == "mailbox-full"
    assert (await place.box.store.statistics()).blobs == 0


async def test_without_its_chunks_a_payload_is_not_accepted(place: Place) -> None:
    carried = place.letter()
    with pytest.raises(LocalError) as caught:
        await place.box.node.mail.carrier.take(PeerId("sender"), Mail((), (carried.manifest,)))
    assert caught.value.code == "unavailable"
    assert (await place.status()).objects == 0


async def test_released_mail_is_gone_with_its_chunks_and_comes_no_second_time(place: Place) -> None:
    carried = place.letter()
    await place.deposit(carried)
    assert await place.release(carried.manifest.id) == [carried.manifest.id]
    assert await place.release(carried.manifest.id) == []
    await place.deposit(carried)  # again: the sender is told that it was delivered
    status = await place.status()
    assert (status.objects, status.bytes, status.oldest) == (0, 0, None)
    assert (await place.box.store.statistics()).blobs == 0
    assert await place.box.store.get_object(carried.manifest.id) is None


async def test_only_the_owner_can_release(place: Place) -> None:
    carried = place.letter()
    await place.deposit(carried)
    assert await place.release(carried.manifest.id, key=STRANGER) == []
    await place.box.node.mail.rules.allow(STRANGER.identity, now=place.box.environment.now_ms())
    assert await place.release(carried.manifest.id, key=STRANGER) == []
    assert await place.release(carried.manifest.id) == [carried.manifest.id]


async def test_mail_that_is_too_old_is_dropped_and_mail_that_was_denied_afterwards_waits(place: Place) -> None:
    await place.allow(age=2 * HOUR)
    await place.deposit(place.letter())
    place.box.environment.clock_offset_ms += HOUR
    await place.box.node.mail.maintain()
    assert (await place.status()).objects == 1
    place.box.environment.clock_offset_ms += HOUR
    await place.box.node.mail.maintain()
    assert (await place.status()).objects == 0
    assert (await place.box.store.statistics()).blobs == 0
    await place.deposit(place.letter(b"another"))
    await place.box.node.mail.rules.deny(place.owner.identity)
    await place.box.node.mail.maintain()
    assert (await place.status()).objects == 1
    await refused(place, place.letter(b"a third"), "not-here")


async def test_what_was_held_before_a_denial_can_still_be_collected(place: Place) -> None:
    carried = place.letter()
    await place.deposit(carried)
    await place.box.node.mail.rules.deny(place.owner.identity)
    await place.owner.start()
    await anyio.sleep(30)
    assert [view.id for view in await place.owner.node.mail.list_messages()] == [carried.manifest.id]
    assert (await place.box.store.statistics()).blobs == 0


async def test_what_was_released_takes_no_room_from_what_is_to_come(place: Place) -> None:
    await place.allow(objects=1)
    for number in range(5):
        carried = place.letter(b"%d" % number)
        await place.deposit(carried)
        await refused(place, place.letter(b"one more"), "mailbox-full")
        await place.release(carried.manifest.id)


async def test_mail_that_expires_is_dropped_with_its_chunks_and_forgotten(place: Place) -> None:
    await place.deposit(place.letter())
    place.box.environment.clock_offset_ms += 31 * DAY
    await place.box.node.mail.maintain()
    assert (await place.status()).objects == 0
    assert (await place.box.store.statistics()).blobs == 0
    assert await place.box.store.list_records("carried-mail") == []


async def test_the_owner_gets_a_message_once_from_two_mailboxes_also_over_a_crash(tmp_path: Path) -> None:
    async with World(seed=2) as world:
        boxes = [await world.start("box0"), await world.start("box1", peers=["box0"])]
        owner = await world.start("owner", mailboxes=["box0", "box1"])
        sender = await world.start("sender", peers=["box0", "box1"])
        for box in boxes:
            await box.node.mail.rules.allow(owner.identity, now=box.environment.now_ms())
        await anyio.sleep(60)
        await owner.stop()
        (tmp_path / "file").write_bytes(b"secret content")
        _, posted = await sender.node.mail.send_file(
            owner.identity,
            tmp_path / "file",
            media_type="text/plain",
            name="file",
            offload=inline,
            on_progress=lambda done, total: None,
        )
        assert sorted(posted.mailboxes) == ["box0", "box1"]
        await owner.start()
        await anyio.sleep(20)
        [message] = await owner.node.mail.list_messages()
        assert (message.name, message.size, message.entry.sender) == ("file", 14, sender.identity)
        await owner.node.mail.drop_message(message.id.hex())
        await owner.crash()
        await owner.start()
        await anyio.sleep(60)
        assert await owner.node.mail.list_messages() == []
        for box in boxes:
            assert [status.objects for status in await box.node.mail.carrier.status()] == [0]


async def test_an_owner_that_starts_again_from_nothing_gets_everything_that_waits(place: Place) -> None:
    letters = [place.letter(b"%d" % number) for number in range(3)]
    for letter in letters:
        await place.deposit(letter)
    await place.owner.start()
    await anyio.sleep(30)
    assert {view.id for view in await place.owner.node.mail.list_messages()} == {one.manifest.id for one in letters}


@pytest.mark.parametrize("minutes", [-10, 10])
async def test_an_owner_whose_clock_is_ten_minutes_wrong_loses_nothing(place: Place, minutes: int) -> None:
    carried = place.letter()
    await place.deposit(carried)
    place.owner.environment.clock_offset_ms += minutes * MINUTE
    await place.owner.start()
    await anyio.sleep(120)
    early = await place.owner.node.mail.list_messages()
    place.owner.environment.clock_offset_ms -= minutes * MINUTE
    await anyio.sleep(120)
    assert [view.id for view in await place.owner.node.mail.list_messages()] == [carried.manifest.id]
    assert len(early) <= 1


async def test_a_sender_without_a_way_is_told_each_reason(place: Place) -> None:
    await place.allow(objects=1)
    await place.deposit(place.letter())
    with pytest.raises(RemoteError, match="holds as much for the recipient as it may") as caught:
        await place.sender.node.mail.post.deposit(place.owner.identity, [place.letter(b"2").manifest])
    assert caught.value.code == "mail-not-taken"
    with pytest.raises(RemoteError) as caught:
        await place.sender.node.mail.post.deposit(place.box.identity, [place.letter(b"2").manifest])
    assert caught.value.code == "no-mailbox"


async def test_payloads_of_10_and_4000_bytes_cost_the_mailbox_the_same(place: Place) -> None:
    for size in (10, 4000):
        await place.deposit(place.letter(bytes(size), name="a" * (size % 200 + 1)))
    store, now = place.box.store, place.box.environment.now_ms()
    ids = await store.scope_ids(inbox_scope(place.owner.identity), now=now)
    held = [obj for id in ids if (obj := await store.get_object(id)) is not None]
    assert len({(len(obj.data), obj.body.size) for obj in held if isinstance(obj.body, PayloadManifest)}) == 1
    assert len(held) == 2


async def test_messages_that_have_no_room_wait_at_the_mailbox_and_nothing_of_them_is_fetched(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    letters = [place.letter(bytes(20_000)) for _ in range(3)]
    for letter in letters:
        await place.deposit(letter)
    monkeypatch.setattr("bnw.inbox.messages.MAX_BYTES_PER_SENDER", 50_000)
    await place.owner.start()
    await anyio.sleep(30)
    kept = await place.owner.node.mail.list_messages()
    assert len(kept) == 2
    assert (await place.owner.store.statistics()).blobs == 2
    assert (await place.status()).objects == 1
    await place.owner.node.mail.drop_message(kept[0].id.hex())
    await anyio.sleep(30)
    assert len(await place.owner.node.mail.list_messages()) == 2
    assert (await place.status()).objects == 0
