"""What the server of blobs gives away, and how much of itself."""

from __future__ import annotations

import anyio
import pytest
from sources_of_all_kinds import Scene, in_virtual_time, peer

from bnw.blobs.protocol import BLOB_PROTOCOL, BlobAbsent, BlobBusy, BlobFollows, GetBlob
from bnw.blobs.server import MAX_SERVED_AT_ONCE, MAX_SERVED_TO_ONE
from bnw.identity.keys import SigningKey
from bnw.objects.calls import Cancellation
from bnw.objects.catalog import Withdrawal
from bnw.objects.message import read_message
from bnw.objects.signed import sign_object
from bnw.transport.interface import Stream, Transport
from bnw.transport.message_stream import MessageStream
from bnw.wire.content_id import ContentId, content_id
from bnw.wire.errors import RemoteError
from bnw.wire.frames import encode_frame
from bnw.wire.limits import CANCELLING_LIFETIME_MIN, DAY, MIB

KEY = SigningKey(bytes(31) + b"k")


async def ask(messages: MessageStream, id: ContentId) -> bytes | BlobAbsent | BlobBusy:
    await messages.send(GetBlob(id).to_wire())
    return await answer(messages)


async def answer(messages: MessageStream) -> bytes | BlobAbsent | BlobBusy:
    said = read_message(await messages.receive(), BlobFollows, BlobAbsent, BlobBusy)
    return await messages.receive_exactly(said.size) if isinstance(said, BlobFollows) else said


async def open_to(transport: Transport, name: str = "server") -> Stream:
    return await transport.open_stream(peer(name), BLOB_PROTOCOL)


def test_public_objects_and_blobs_are_served_and_objects_of_an_inbox_are_not() -> None:
    withdrawal = sign_object(
        Withdrawal(created=1, expires=1 + CANCELLING_LIFETIME_MIN, name="finance/lookup", sequence=1), KEY
    )
    mail = sign_object(
        Cancellation(created=1, expires=DAY, invocation=content_id(b"x"), reason=None, recipient=KEY.identity), KEY
    )

    async def act(scene: Scene) -> None:
        store = await scene.honest("server", b"blob")
        await store.put_objects([withdrawal, mail], now=2)
        async with MessageStream(await open_to(scene.me)) as messages:
            assert await ask(messages, content_id(b"blob")) == b"blob"
            assert await ask(messages, withdrawal.id) == withdrawal.data
            assert await ask(messages, mail.id) == BlobAbsent(), "although its id stands in other objects"
            assert await ask(messages, content_id(b"unknown")) == BlobAbsent()

    in_virtual_time(act)


def test_requests_that_come_together_are_answered_in_their_order() -> None:
    blobs = [b"%d" % number * 1000 for number in range(50)]

    async def act(scene: Scene) -> None:
        await scene.honest("server", *blobs)
        stream = await open_to(scene.me)
        await stream.send(b"".join(encode_frame(GetBlob(content_id(data)).to_wire()) for data in blobs))
        async with MessageStream(stream) as messages:
            assert [await answer(messages) for _ in blobs] == blobs

    in_virtual_time(act)


def test_what_is_no_request_ends_the_stream_after_the_answers_before_it() -> None:
    async def act(scene: Scene) -> None:
        await scene.honest("server", b"blob")
        async with MessageStream(await open_to(scene.me)) as messages:
            await messages.send(GetBlob(content_id(b"blob")).to_wire())
            await messages.send(BlobAbsent().to_wire())
            assert await answer(messages) == b"blob"
            with pytest.raises(RemoteError) as caught:
                await answer(messages)
            assert caught.value.code == "stream-closed"

    in_virtual_time(act)


def test_a_peer_that_asks_and_asks_without_reading_an_answer_is_not_listened_to_any_more() -> None:
    async def act(scene: Scene) -> None:
        blob = bytes(MIB)
        await scene.honest("server", blob)
        stream = await open_to(scene.me)
        request = encode_frame(GetBlob(content_id(blob)).to_wire())
        with anyio.move_on_after(5) as patience:
            await stream.send(request * 10_000)
        assert patience.cancelled_caught, "the server has stopped reading, and the window is full"
        await stream.reset()

    in_virtual_time(act)


def test_a_peer_that_reads_nothing_takes_some_places_and_leaves_some_for_others() -> None:
    blob = bytes(4 * MIB)

    async def act(scene: Scene) -> None:
        await scene.honest("server", blob, b"small")
        greedy = [await open_to(scene.me) for _ in range(MAX_SERVED_TO_ONE)]
        for stream in greedy:
            await stream.send(encode_frame(GetBlob(content_id(blob)).to_wire()))
        await anyio.sleep(1)
        async with MessageStream(await open_to(scene.me)) as messages:
            assert await ask(messages, content_id(b"small")) == BlobBusy()
        async with scene.network.endpoint("other") as other:
            await other.dial("mem:server")
            async with MessageStream(await open_to(other)) as messages:
                assert await ask(messages, content_id(b"small")) == b"small"
        for stream in greedy:
            await stream.reset()
        await anyio.sleep(1)
        async with MessageStream(await open_to(scene.me)) as messages:
            assert await ask(messages, content_id(b"small")) == b"small", "a stream that ends frees its place"

    in_virtual_time(act)


def test_places_are_few_and_further_requests_are_told_so() -> None:
    blob = bytes(4 * MIB)

    async def act(scene: Scene) -> None:
        await scene.honest("server", blob)
        answers: list[object] = []

        async def one(number: int) -> None:
            async with scene.network.endpoint(f"client-{number}") as client:
                await client.dial("mem:server")
                async with MessageStream(await open_to(client)) as messages:
                    answers.append(await ask(messages, content_id(blob)))

        async with anyio.create_task_group() as tasks:
            for number in range(MAX_SERVED_AT_ONCE + 3):
                tasks.start_soon(one, number)
        assert answers.count(BlobBusy()) == 3
        assert answers.count(blob) == MAX_SERVED_AT_ONCE

    in_virtual_time(act)


def test_a_reader_that_takes_little_by_little_is_served_to_the_end() -> None:
    """Half a mebibyte in a minute: slow, but it never stops for long."""

    async def act(scene: Scene) -> None:
        blob = bytes(MIB // 2)
        await scene.honest("server", blob)
        stream = await open_to(scene.me)
        await stream.send(encode_frame(GetBlob(content_id(blob)).to_wire()))
        received = 0
        while received < len(blob):
            await anyio.sleep(7)
            received += len(await stream.receive(65536))

    in_virtual_time(act)
