"""Connections and streams: what the transport contract promises, for both implementations."""

from __future__ import annotations

import hashlib
from contextlib import AsyncExitStack

import anyio
import pytest
from worlds import ECHO, World, ask_echo, connect, echo, read_all, until

from bnw.transport.bounds import MAX_STREAMS, STREAM_WINDOW
from bnw.transport.interface import PeerConnected, PeerDisconnected, Stream, Transport
from bnw.wire.errors import LocalError, RemoteError

pytestmark = pytest.mark.anyio

HOLD = "/test/hold/1"


async def hold(stream: Stream) -> None:
    await anyio.sleep_forever()


async def pair(world: World, stack: AsyncExitStack) -> tuple[Transport, Transport]:
    """Two endpoints that serve ECHO and HOLD and are connected; the first one dialled."""
    a = await stack.enter_async_context(world.endpoint("a"))
    b = await stack.enter_async_context(world.endpoint("b"))
    for endpoint in (a, b):
        endpoint.serve(ECHO, echo)
        endpoint.serve(HOLD, hold)
    await connect(a, b)
    return a, b


async def test_dial_connects_both_sides_and_tells_who_dialled(world: World) -> None:
    async with world.endpoint("a") as a, world.endpoint("b") as b:
        assert await a.dial(b.addresses[0]) == b.peer_id
        await until(lambda: bool(b.peers()))
        (of_a,), (of_b,) = a.peers(), b.peers()
        assert (of_a.peer, of_a.inbound) == (b.peer_id, False)
        assert (of_b.peer, of_b.inbound) == (a.peer_id, True)


async def test_dialling_a_connected_peer_does_nothing(world: World) -> None:
    async with AsyncExitStack() as stack:
        a, b = await pair(world, stack)
        async with b.events() as events:
            assert await a.dial(b.addresses[0]) == b.peer_id
            assert len(a.peers()) == len(b.peers()) == 1
            await a.disconnect(b.peer_id)
            assert await anext(events) == PeerDisconnected(a.peer_id)


async def test_dialling_each_other_at_once_leaves_both_connected(world: World) -> None:
    async with world.endpoint("a") as a, world.endpoint("b") as b:
        for endpoint in (a, b):
            endpoint.serve(ECHO, echo)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(a.dial, b.addresses[0])
            tasks.start_soon(b.dial, a.addresses[0])
        assert await ask_echo(a, b.peer_id, b"from a") == b"from a"
        assert await ask_echo(b, a.peer_id, b"from b") == b"from b"
        assert len(a.peers()) == len(b.peers()) == 1


async def test_two_tasks_that_dial_one_peer_make_one_connection(world: World) -> None:
    async with world.endpoint("a") as a, world.endpoint("b") as b, b.events() as events:
        async with anyio.create_task_group() as tasks:
            for _ in range(5):
                tasks.start_soon(a.dial, b.addresses[0])
        await until(lambda: bool(b.peers()))
        await a.disconnect(b.peer_id)
        assert [await anext(events), await anext(events)] == [PeerConnected(a.peer_id), PeerDisconnected(a.peer_id)]


async def test_another_peer_than_the_address_says_is_unreachable(world: World) -> None:
    async with world.endpoint("a") as a, world.endpoint("b") as b, world.endpoint("c") as c:
        with pytest.raises(RemoteError) as caught:
            await a.dial(world.with_other_peer(b.addresses[0], c.peer_id))
        assert caught.value.code == "unreachable"
        assert not a.peers()
        await until(lambda: not b.peers())


async def test_dialling_where_nobody_listens_is_unreachable(world: World) -> None:
    async with world.endpoint("a") as a, world.endpoint("b") as b:
        with pytest.raises(RemoteError) as caught:
            await a.dial(world.address_of_nobody(b.peer_id), timeout=5)
        assert caught.value.code == "unreachable"


@pytest.mark.parametrize(
    "address", ["", "nonsense", "/ip4/127.0.0.1/udp/1", "/ip4/127.0.0.1/tcp/1", "mem:", "x" * 9999]
)
async def test_an_address_that_cannot_be_read_is_the_callers_fault(world: World, address: str) -> None:
    async with world.endpoint("a") as a:
        with pytest.raises(LocalError) as caught:
            await a.dial(address)
        assert caught.value.code == "address"


async def test_an_endpoint_does_not_dial_itself(world: World) -> None:
    async with world.endpoint("a") as a:
        with pytest.raises(LocalError) as caught:
            await a.dial(a.addresses[0])
        assert caught.value.code == "address"


async def test_events_tell_connections_and_disconnections_on_both_sides(world: World) -> None:
    async with world.endpoint("a") as a, world.endpoint("b") as b, a.events() as of_a, b.events() as of_b:
        await a.dial(b.addresses[0])
        assert await anext(of_a) == PeerConnected(b.peer_id)
        assert await anext(of_b) == PeerConnected(a.peer_id)
        await b.disconnect(a.peer_id)
        assert await anext(of_a) == PeerDisconnected(b.peer_id)
        assert await anext(of_b) == PeerDisconnected(a.peer_id)
        assert a.peers() == b.peers() == ()


async def test_a_closed_endpoint_is_missed_by_its_peers_and_ends_its_own_readers(world: World) -> None:
    async with world.endpoint("a") as a, a.events() as of_a:
        async with AsyncExitStack() as stack:
            b = await stack.enter_async_context(world.endpoint("b"))
            of_b = await stack.enter_async_context(b.events())
            await connect(a, b)
            assert await anext(of_a) == PeerConnected(b.peer_id)
            gone = b.peer_id
        assert await anext(of_a) == PeerDisconnected(gone)
        assert [event async for event in of_b][:1] == [PeerConnected(a.peer_id)]


async def test_peers_can_connect_again_after_a_disconnection(world: World) -> None:
    async with AsyncExitStack() as stack:
        a, b = await pair(world, stack)
        for _ in range(3):
            await a.disconnect(b.peer_id)
            await until(lambda: not b.peers())
            await connect(a, b)
        assert await ask_echo(b, a.peer_id, b"again") == b"again"


async def test_a_stream_to_a_peer_that_is_not_connected_is_refused(world: World) -> None:
    async with world.endpoint("a") as a, world.endpoint("b") as b:
        with pytest.raises(RemoteError) as caught:
            await a.open_stream(b.peer_id, ECHO)
        assert caught.value.code == "not-connected"


async def test_a_protocol_that_the_peer_does_not_speak_is_refused(world: World) -> None:
    async with AsyncExitStack() as stack:
        a, b = await pair(world, stack)
        with pytest.raises(RemoteError) as caught:
            await a.open_stream(b.peer_id, "/test/unheard-of/1")
        assert caught.value.code == "protocol"
        assert await ask_echo(a, b.peer_id, b"and on") == b"and on"


async def test_streams_work_in_both_directions_of_dialling(world: World) -> None:
    async with AsyncExitStack() as stack:
        a, b = await pair(world, stack)
        assert await ask_echo(a, b.peer_id, b"to the dialled") == b"to the dialled"
        assert await ask_echo(b, a.peer_id, b"to the dialler") == b"to the dialler"


async def test_a_stream_knows_its_peer_and_protocol_at_both_ends(world: World) -> None:
    async with AsyncExitStack() as stack:
        a, b = await pair(world, stack)
        seen: list[tuple[str, str]] = []

        async def note(stream: Stream) -> None:
            seen.append((stream.peer, stream.protocol))

        b.serve("/test/note/1", note)
        stream = await a.open_stream(b.peer_id, "/test/note/1")
        assert (stream.peer, stream.protocol) == (b.peer_id, "/test/note/1")
        assert await stream.receive() == b""
        assert seen == [(a.peer_id, "/test/note/1")]


async def test_bytes_arrive_in_order_across_many_small_and_large_sends(world: World) -> None:
    async with AsyncExitStack() as stack:
        a, b = await pair(world, stack)
        pieces = [bytes([n % 251]) * size for n, size in enumerate([1, 2, 3, 65_507, 65_508, 100_000, 0, 7])]
        assert await ask_echo(a, b.peer_id, b"".join(pieces)) == b"".join(pieces)


async def test_eight_mebibytes_pass_unharmed(world: World) -> None:
    async with AsyncExitStack() as stack:
        a, b = await pair(world, stack)
        data = hashlib.shake_256(b"eight mebibytes").digest(8 * 1024 * 1024)
        digests: list[bytes] = []

        async def take(stream: Stream) -> None:
            hasher = hashlib.sha256()
            while piece := await stream.receive(1024 * 1024):
                hasher.update(piece)
            digests.append(hasher.digest())

        b.serve("/test/take/1", take)
        stream = await a.open_stream(b.peer_id, "/test/take/1")
        await stream.send(data)
        await stream.send_eof()
        assert await stream.receive() == b""
        assert digests == [hashlib.sha256(data).digest()]


async def test_after_send_eof_the_other_direction_goes_on(world: World) -> None:
    async with AsyncExitStack() as stack:
        a, b = await pair(world, stack)

        async def answer_at_the_end(stream: Stream) -> None:
            request = await read_all(stream)
            await stream.send(request[::-1])

        b.serve("/test/reverse/1", answer_at_the_end)
        stream = await a.open_stream(b.peer_id, "/test/reverse/1")
        await stream.send(b"abc")
        await stream.send_eof()
        assert await read_all(stream) == b"cba"
        assert await stream.receive() == b"", "the end stays the end"


async def test_sending_after_send_eof_is_the_callers_fault(world: World) -> None:
    async with AsyncExitStack() as stack:
        a, b = await pair(world, stack)
        stream = await a.open_stream(b.peer_id, HOLD)
        await stream.send_eof()
        await stream.send_eof()
        with pytest.raises(LocalError) as caught:
            await stream.send(b"more")
        assert caught.value.code == "stream-ended"


async def test_a_reset_is_seen_by_the_peer_in_both_directions(world: World) -> None:
    async with AsyncExitStack() as stack:
        a, b = await pair(world, stack)
        caught: list[RemoteError] = []

        async def suffer(stream: Stream) -> None:
            try:
                while await stream.receive():
                    pass
            except RemoteError as error:
                caught.append(error)
            try:
                await stream.send(b"too late")
            except RemoteError as error:
                caught.append(error)

        b.serve("/test/suffer/1", suffer)
        stream = await a.open_stream(b.peer_id, "/test/suffer/1")
        await stream.send(b"x")
        await stream.reset()
        await until(lambda: len(caught) == 2)
        assert [error.code for error in caught] == ["stream-closed"] * 2


async def test_closing_and_resetting_may_be_repeated(world: World) -> None:
    async with AsyncExitStack() as stack:
        a, b = await pair(world, stack)
        stream = await a.open_stream(b.peer_id, ECHO)
        for _ in range(2):
            await stream.aclose()
            await stream.reset()
        with pytest.raises(LocalError) as caught:
            await stream.receive()
        assert caught.value.code == "stream-ended"


async def test_closing_works_in_a_cancelled_scope(world: World) -> None:
    async with AsyncExitStack() as stack:
        a, b = await pair(world, stack)
        ended = anyio.Event()

        async def notice(stream: Stream) -> None:
            await read_all(stream)
            ended.set()

        b.serve("/test/notice/1", notice)
        stream = await a.open_stream(b.peer_id, "/test/notice/1")
        with anyio.CancelScope() as scope:
            scope.cancel()
            await stream.aclose()
        with anyio.fail_after(5):
            await ended.wait()


async def test_what_was_sent_before_closing_still_arrives(world: World) -> None:
    async with AsyncExitStack() as stack:
        a, b = await pair(world, stack)

        async def say_and_leave(stream: Stream) -> None:
            await stream.send(b"parting words")

        b.serve("/test/leave/1", say_and_leave)
        stream = await a.open_stream(b.peer_id, "/test/leave/1")
        assert await read_all(stream) == b"parting words"


async def test_a_handler_that_raises_resets_its_stream_and_nothing_else(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    async with AsyncExitStack() as stack:
        a, b = await pair(world, stack)

        async def stumble(stream: Stream) -> None:
            raise ZeroDivisionError

        b.serve("/test/stumble/1", stumble)
        other = await a.open_stream(b.peer_id, ECHO)
        for _ in range(3):
            with pytest.raises(RemoteError) as caught:
                stream = await a.open_stream(b.peer_id, "/test/stumble/1")
                await stream.receive()
            assert caught.value.code == "stream-closed"
        await other.send(b"still here")
        assert await other.receive() == b"still here"
        assert "ZeroDivisionError" in caplog.text


async def test_a_disconnection_fails_the_streams_of_both_sides(world: World) -> None:
    async with AsyncExitStack() as stack:
        a, b = await pair(world, stack)
        codes: list[str] = []

        async def wait_for_more(stream: Stream) -> None:
            try:
                await read_all(stream)
            except RemoteError as error:
                codes.append(error.code)

        b.serve("/test/wait/1", wait_for_more)
        stream = await a.open_stream(b.peer_id, "/test/wait/1")
        await a.disconnect(b.peer_id)
        with pytest.raises(RemoteError) as caught:
            await stream.receive()
        assert caught.value.code == "stream-closed"
        await until(lambda: codes == ["stream-closed"])


async def test_streams_are_bounded_and_a_freed_slot_serves_the_next(world: World) -> None:
    async with AsyncExitStack() as stack:
        a, b = await pair(world, stack)
        # Gossip over libp2p has a stream of its own, which takes a slot.
        streams = [await a.open_stream(b.peer_id, HOLD) for _ in range(MAX_STREAMS - 1)]
        with pytest.raises(RemoteError) as caught:
            for _ in range(2):
                await a.open_stream(b.peer_id, HOLD, timeout=0.2)
        assert caught.value.code == "busy"
        await streams[0].reset()
        await a.open_stream(b.peer_id, HOLD, timeout=5)


async def test_a_cancelled_opening_gives_its_slot_back(world: World) -> None:
    async with AsyncExitStack() as stack:
        a, b = await pair(world, stack)
        for _ in range(2 * MAX_STREAMS):
            with anyio.CancelScope() as scope:
                scope.cancel()
                await a.open_stream(b.peer_id, ECHO)
        assert await ask_echo(a, b.peer_id, b"room left") == b"room left"


async def test_a_reader_that_does_not_read_holds_the_sender_back(world: World) -> None:
    async with AsyncExitStack() as stack:
        a, b = await pair(world, stack)
        stream = await a.open_stream(b.peer_id, HOLD)
        sent = 0
        with anyio.move_on_after(1):
            while True:
                await stream.send(bytes(65_507))
                sent += 65_507
        assert sent <= STREAM_WINDOW
        assert await ask_echo(a, b.peer_id, b"others go on") == b"others go on"


async def test_one_stalled_stream_does_not_stall_the_others(world: World) -> None:
    async with AsyncExitStack() as stack:
        a, b = await pair(world, stack)
        async with anyio.create_task_group() as tasks:
            for _ in range(3):
                tasks.start_soon((await a.open_stream(b.peer_id, HOLD)).send, bytes(STREAM_WINDOW * 2))
            with anyio.fail_after(10):
                data = bytes(2 * 1024 * 1024)
                assert await ask_in_parallel(a, b, data) == data
            tasks.cancel_scope.cancel()


async def ask_in_parallel(a: Transport, b: Transport, data: bytes) -> bytes:
    """Echo more than fits into the windows, so that sending and receiving must overlap."""
    stream = await a.open_stream(b.peer_id, ECHO)

    async def send() -> None:
        await stream.send(data)
        await stream.send_eof()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(send)
        return await read_all(stream)
    raise AssertionError("unreachable")


async def test_exceptions_from_the_body_leave_an_endpoint_as_they_are(world: World) -> None:
    with pytest.raises(KeyError):
        async with world.endpoint("a"):
            raise KeyError("not a group")
