"""The cured Yamux: flow control, and what happens to peers that break the protocol. Virtual time, no network."""

from __future__ import annotations

import math
import struct
from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest
import trio.testing
from anyio.abc import TaskGroup
from libp2p.abc import ISecureConn
from libp2p.crypto.ed25519 import create_new_key_pair
from libp2p.peer.id import ID
from libp2p.security.secure_session import SecureSession
from libp2p.stream_muxer.exceptions import MuxedConnUnavailable, MuxedStreamEOF, MuxedStreamError, MuxedStreamReset
from libp2p.stream_muxer.yamux.yamux import Yamux

from bnw.transport.bounds import MAX_STREAM_WINDOW, MAX_STREAMS, STALL_TIMEOUT, STREAM_WINDOW
from bnw.transport.p2p.cures.yamux import MAX_ANSWERS, MAX_CLOSING, MAX_CONNECTION_UNREAD, CuredYamux
from bnw.transport.p2p.cures.yamux_guard import MAX_REFUSED
from bnw.transport.p2p.cures.yamux_stream import CuredStream, MuxedStreamStalled

pytestmark = pytest.mark.anyio

DATA, WINDOW_UPDATE, PING, GO_AWAY = range(4)
SYN, ACK, FIN, RST = 1, 2, 4, 8
MIB = 2**20


@pytest.fixture
def anyio_backend() -> tuple[str, dict[str, Any]]:
    return "trio", {"clock": trio.testing.MockClock(autojump_threshold=0)}


def encode(kind: int, flags: int, stream: int, length: int) -> bytes:
    return struct.pack("!BBHII", 0, kind, flags, stream, length)


class Wire:
    """One end of an encrypted channel within the process; `fellow` is the other."""

    fellow: Wire

    def __init__(self) -> None:
        self._put, self._get = anyio.create_memory_object_stream[bytes](math.inf)
        self.stuck = False
        self.closed = False

    @classmethod
    def pair(cls) -> tuple[Wire, Wire]:
        one, other = cls(), cls()
        one.fellow, other.fellow = other, one
        return one, other

    async def read_msg(self) -> bytes:
        try:
            return await self._get.receive()
        except (anyio.EndOfStream, anyio.ClosedResourceError):
            return b""

    async def write_msg(self, data: bytes) -> None:
        await anyio.lowlevel.checkpoint()
        while self.stuck:
            await anyio.sleep(0.1)
        self.fellow._put.send_nowait(data)

    async def close(self) -> None:
        self.closed = True
        self.fellow._put.close()
        self._get.close()

    def get_remote_address(self) -> None:
        return None


def secure(wire: Wire, *, initiator: bool) -> ISecureConn:
    keys = create_new_key_pair(bytes(32))
    return SecureSession(
        local_peer=ID.from_pubkey(keys.public_key),
        local_private_key=keys.private_key,
        remote_peer=ID.from_pubkey(keys.public_key),
        remote_permanent_pubkey=keys.public_key,
        is_initiator=initiator,
        conn=wire,  # type: ignore[arg-type]  # the test's own wire and inner parts
    )


class End:
    """A running connection, and the streams that the other side opened on it."""

    def __init__(self, wire: Wire, *, initiator: bool, kind: type[Yamux] = CuredYamux) -> None:
        self.opened: list[Any] = []
        self.wire = wire
        self.yamux = kind(secure(wire, initiator=initiator), ID(b"other"), is_initiator=initiator)

    @property
    def is_over(self) -> bool:
        return self.wire.closed

    async def accept(self) -> None:
        try:
            while True:
                self.opened.append(await self.yamux.accept_stream())
        except MuxedConnUnavailable:
            return


def run(end: End, tasks: TaskGroup) -> None:
    tasks.start_soon(end.yamux.start)
    tasks.start_soon(end.accept)


@asynccontextmanager
async def two_ends() -> AsyncIterator[tuple[End, End, TaskGroup]]:
    wires = Wire.pair()
    ends = End(wires[0], initiator=True), End(wires[1], initiator=False)
    async with anyio.create_task_group() as tasks:
        for end in ends:
            run(end, tasks)
        yield *ends, tasks
        tasks.cancel_scope.cancel()


@asynccontextmanager
async def against_raw(kind: type[Yamux] = CuredYamux) -> AsyncIterator[tuple[End, Wire]]:
    """A connection, and the bare other end of it."""
    wire, raw = Wire.pair()
    end = End(wire, initiator=False, kind=kind)
    async with anyio.create_task_group() as tasks:
        run(end, tasks)
        yield end, raw
        tasks.cancel_scope.cancel()


async def settle() -> None:
    await anyio.sleep(0.3)


async def open_pair(one: End, other: End) -> tuple[CuredStream, CuredStream]:
    stream = await one.yamux.open_stream()
    await settle()
    return stream, other.opened[-1]  # type: ignore[return-value]  # the test's own wire and inner parts


async def answers(raw: Wire) -> list[tuple[int, int, int, int]]:
    """Kind, flags, stream and length of what the connection has sent so far (it has sent headers only)."""
    await settle()
    headers = b""
    with anyio.move_on_after(0.001):
        while data := await raw.read_msg():
            headers += data
    return [struct.unpack("!xBHII", headers[at : at + 12]) for at in range(0, len(headers), 12)]


async def swallow(stream: CuredStream, size: float = math.inf) -> None:
    while size > 0:
        size -= len(await stream.read(MIB))


async def fails_with(kind: type[Exception], operation: Awaitable[object]) -> None:
    with pytest.raises(kind):
        await operation


async def test_the_window_grows_for_a_reader_that_keeps_up() -> None:
    async with two_ends() as (one, other, tasks):
        mine, theirs = await open_pair(one, other)
        tasks.start_soon(mine.write, bytes(64 * MIB))
        await swallow(theirs, 64 * MIB)
        assert theirs.target_recv_window == MAX_STREAM_WINDOW


async def test_the_windows_of_all_streams_together_grow_by_a_bounded_amount() -> None:
    async with two_ends() as (one, other, tasks):
        for _ in range(8):
            mine, theirs = await open_pair(one, other)
            tasks.start_soon(mine.write, bytes(16 * MIB))
            tasks.start_soon(swallow, theirs)
        await anyio.sleep(60)
        grown = sum(stream.target_recv_window - STREAM_WINDOW for stream in other.opened)
        assert MAX_STREAM_WINDOW / 2 <= grown <= MAX_STREAM_WINDOW


@pytest.mark.parametrize("kind", [Yamux, CuredYamux])
async def test_small_reads_cost_few_window_updates(kind: type[Yamux]) -> None:
    async with against_raw(kind) as (end, raw):
        await raw.write_msg(encode(DATA, SYN, 1, 100_000))
        await raw.write_msg(bytes(50_000))
        await raw.write_msg(bytes(50_000))
        await settle()
        for _ in range(100_000 // 10):
            await end.opened[0].read(10)
        updates = [length for kind_, _, _, length in await answers(raw) if kind_ == WINDOW_UPDATE and length]
        assert len(updates) > 5_000 if kind is Yamux else len(updates) <= 1


@pytest.mark.parametrize("kind", [Yamux, CuredYamux])
async def test_a_reader_that_pauses_for_half_a_minute_kills_only_a_stock_transfer(kind: type[Yamux]) -> None:
    async with against_raw(kind) as (end, raw), anyio.create_task_group() as tasks:
        outcome: list[Exception | None] = []

        async def send() -> None:
            try:
                await end.opened[0].write(bytes(2 * STREAM_WINDOW))
                outcome.append(None)
            except MuxedStreamError as error:
                outcome.append(error)

        await raw.write_msg(encode(WINDOW_UPDATE, SYN, 1, 0))
        await settle()
        tasks.start_soon(send)
        await anyio.sleep(30)
        await raw.write_msg(encode(WINDOW_UPDATE, 0, 1, 2 * STREAM_WINDOW))
        await settle()
        assert [type(error) for error in outcome] == [MuxedStreamError if kind is Yamux else type(None)]


async def test_a_sender_without_window_gives_up_after_a_while_and_not_before() -> None:
    async with two_ends() as (one, other, _):
        mine, _ = await open_pair(one, other)
        started = anyio.current_time()
        with pytest.raises(MuxedStreamStalled):
            await mine.write(bytes(STREAM_WINDOW + 1))
        assert anyio.current_time() - started == pytest.approx(STALL_TIMEOUT, abs=0.1)


async def test_unread_data_of_all_streams_together_is_bounded() -> None:
    async with two_ends() as (one, other, tasks):
        streams = [await one.yamux.open_stream() for _ in range(30)]
        for stream in streams:
            tasks.start_soon(stream.write, bytes(STREAM_WINDOW))
        await anyio.sleep(10)
        held = sum(len(stream.buffer) for stream in other.opened)
        assert MAX_CONNECTION_UNREAD <= held <= MAX_CONNECTION_UNREAD + 65_536
        await settle()
        for stream in list(other.opened):
            tasks.start_soon(swallow, stream)
        await settle()
        for stream in other.opened[-20:]:
            tasks.start_soon(swallow, stream)
        await anyio.sleep(10)
        assert not any(stream.buffer for stream in other.opened), "and it goes on once they are read"


async def test_a_peer_whose_streams_nobody_reads_is_hung_up_on_in_the_end() -> None:
    async with two_ends() as (one, other, tasks):
        for _ in range(30):
            tasks.start_soon((await one.yamux.open_stream()).write, bytes(STREAM_WINDOW))
        await anyio.sleep(STALL_TIMEOUT + 5)
        assert other.is_over
        tasks.cancel_scope.cancel()


async def test_data_with_an_end_is_read_before_the_end() -> None:
    async with against_raw() as (end, raw):
        await raw.write_msg(encode(DATA, SYN | FIN, 1, 5) + b"hello")
        await settle()
        assert await end.opened[0].read(3) == b"hel"
        assert await end.opened[0].read(3) == b"lo"
        await fails_with(MuxedStreamEOF, end.opened[0].read(1))


@pytest.mark.parametrize("flag", [FIN, RST])
async def test_an_end_that_comes_with_an_acknowledgement_is_not_overlooked(flag: int) -> None:
    async with against_raw() as (end, raw):
        stream = await end.yamux.open_stream()
        await raw.write_msg(encode(WINDOW_UPDATE, ACK | flag, 2, 0))
        await fails_with(MuxedStreamEOF if flag == FIN else MuxedStreamReset, stream.read(1))


@pytest.mark.parametrize("kind", [Yamux, CuredYamux])
async def test_a_waiting_reader_learns_of_a_reset_and_not_of_an_end(kind: type[Yamux]) -> None:
    async with against_raw(kind) as (end, raw), anyio.create_task_group() as tasks:
        await raw.write_msg(encode(WINDOW_UPDATE, SYN, 1, 0))
        await settle()
        expected = MuxedStreamEOF if kind is Yamux else MuxedStreamReset
        tasks.start_soon(fails_with, expected, end.opened[0].read(1))
        await settle()
        await raw.write_msg(encode(WINDOW_UPDATE, RST, 1, 0))


async def test_a_reset_discards_what_was_not_read() -> None:
    async with against_raw() as (end, raw):
        await raw.write_msg(encode(DATA, SYN, 1, 5) + b"hello")
        await settle()
        await raw.write_msg(encode(WINDOW_UPDATE, RST, 1, 0))
        await settle()
        await fails_with(MuxedStreamReset, end.opened[0].read(5))
        assert end.yamux.streams == {}


async def test_what_arrived_before_the_connection_ended_can_still_be_read() -> None:
    async with against_raw() as (end, raw):
        await raw.write_msg(encode(DATA, SYN | FIN, 1, 5) + b"hello" + encode(GO_AWAY, 0, 0, 0))
        await settle()
        assert end.is_over
        assert await end.opened[0].read(5) == b"hello"
        await fails_with(MuxedStreamEOF, end.opened[0].read(1))


async def test_data_for_a_stream_that_we_closed_is_refused_once() -> None:
    async with against_raw() as (end, raw):
        await raw.write_msg(encode(WINDOW_UPDATE, SYN, 1, 0))
        await settle()
        await end.opened[0].close()
        await end.opened[0].discard()
        for _ in range(3):
            await raw.write_msg(encode(DATA, 0, 1, 4) + b"more")
        assert [stream for _, flags, stream, _ in await answers(raw) if flags & RST] == [1]
        assert not end.is_over


async def test_streams_that_the_peer_never_ends_are_reset_in_the_end() -> None:
    async with against_raw() as (end, raw):
        for number in range(1, 4 * MAX_CLOSING, 2):
            await raw.write_msg(encode(WINDOW_UPDATE, SYN, number, 0))
            await settle()
            await end.opened[-1].close()
            await end.opened[-1].discard()
            end.yamux.slot_is_free()  # type: ignore[attr-defined]  # the test's own wire and inner parts
        assert len(end.yamux.streams) == MAX_CLOSING
        assert not end.is_over


async def test_a_ping_is_answered_with_its_value() -> None:
    async with against_raw() as (_, raw):
        await raw.write_msg(encode(PING, SYN, 0, 12345))
        assert (PING, ACK, 0, 12345) in await answers(raw)


@pytest.mark.parametrize(
    "frames",
    [
        pytest.param(b"\x01" + bytes(11), id="version 1"),
        pytest.param(bytes([0, 9]) + bytes(10), id="type 9"),
        pytest.param(encode(WINDOW_UPDATE, SYN, 2, 0), id="a stream number of ours"),
        pytest.param(encode(WINDOW_UPDATE, SYN, 0, 0), id="stream number 0"),
        pytest.param(encode(WINDOW_UPDATE, SYN, 1, 0) * 2, id="the same stream twice"),
        pytest.param(encode(DATA, SYN, 1, STREAM_WINDOW + 1), id="more than the window"),
        pytest.param(encode(WINDOW_UPDATE, SYN | FIN, 1, 0) + encode(DATA, 0, 1, 1) + b"x", id="data after the end"),
        pytest.param(encode(DATA, 0, 1, 2**32 - 1), id="a frame of 4 GiB"),
        pytest.param(encode(GO_AWAY, 0, 0, 1), id="going away in anger"),
        pytest.param(
            b"".join(encode(WINDOW_UPDATE, SYN, 2 * n + 1, 0) for n in range(MAX_STREAMS + MAX_REFUSED + 1)),
            id="streams without end",
        ),
    ],
)
async def test_breaking_the_protocol_ends_the_connection(frames: bytes) -> None:
    async with against_raw() as (end, raw):
        await raw.write_msg(frames)
        await settle()
        assert end.is_over


async def test_a_peer_that_provokes_answers_and_does_not_read_them_is_dropped() -> None:
    async with against_raw() as (end, raw):
        raw.fellow.stuck = True
        # One batch is on its way; the rest waits.
        for flood, over in ((MAX_ANSWERS - 10_000, False), (20_000, True)):
            await raw.write_msg(encode(PING, SYN, 0, 0) * flood)
            await settle()
            assert end.yamux.event_shutting_down.is_set() == over


async def test_the_reading_loop_waits_for_no_writer() -> None:
    async with against_raw() as (end, raw), anyio.create_task_group() as tasks:
        stream = await end.yamux.open_stream()
        await settle()
        raw.fellow.stuck = True
        tasks.start_soon(stream.write, b"held up")
        await settle()
        await raw.write_msg(encode(PING, SYN, 0, 1) + encode(DATA, SYN, 1, 5) + b"hello")
        await settle()
        assert await end.opened[0].read(5) == b"hello"
        tasks.cancel_scope.cancel()
        raw.fellow.stuck = False


async def test_a_peer_that_takes_nothing_is_hung_up_on_in_the_end() -> None:
    async with against_raw() as (end, raw):
        stream = await end.yamux.open_stream()
        raw.fellow.stuck = True
        await fails_with(Exception, stream.write(b"x"))
        assert end.is_over


async def test_a_stream_too_many_is_refused_and_the_connection_goes_on() -> None:
    async with two_ends() as (one, other, _):
        other.yamux._serving = 1_000  # type: ignore[attr-defined]  # the test's own wire and inner parts
        stream = await one.yamux.open_stream()
        await fails_with(MuxedStreamReset, stream.read(1))
        other.yamux._serving = 0  # type: ignore[attr-defined]  # the test's own wire and inner parts
        await open_pair(one, other)


async def test_a_slot_is_free_when_its_stream_is_closed_and_not_half_closed() -> None:
    async with two_ends() as (one, other, _):
        streams = [await one.yamux.open_stream() for _ in range(MAX_STREAMS)]
        await streams[0].close()
        with anyio.move_on_after(1) as patience:
            await one.yamux.open_stream()
        assert patience.cancelled_caught
        await streams[0].discard()  # type: ignore[attr-defined]  # the test's own wire and inner parts
        await open_pair(one, other)


async def test_peers_that_only_reset_what_they_open_leave_nothing_behind() -> None:
    async with against_raw() as (end, raw):
        for number in range(1, 2000, 2):
            await raw.write_msg(encode(DATA, SYN, number, 10) + bytes(10) + encode(DATA, RST, number, 0))
            await settle()
            await end.opened.pop().discard()
            end.yamux.slot_is_free()  # type: ignore[attr-defined]  # the test's own wire and inner parts
        assert not end.is_over
        assert end.yamux.streams == {}
        assert end.yamux.stream_buffers == {}


async def test_cancelling_a_write_breaks_no_frame() -> None:
    async with against_raw() as (end, raw):
        stream = await end.yamux.open_stream()
        await answers(raw)
        raw.fellow.stuck = True
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(stream.write, b"held up")
            await settle()
            tasks.cancel_scope.cancel()
            raw.fellow.stuck = False
        await stream.write(b"next")
        sent = [await raw.read_msg() for _ in range(3)]  # one of them is a ping
        assert encode(DATA, 0, 2, 7) + b"held up" in sent
        assert encode(DATA, 0, 2, 4) + b"next" in sent


async def test_the_end_of_the_connection_fails_what_waits() -> None:
    async with two_ends() as (one, other, _):
        mine, _ = await open_pair(one, other)
        async with anyio.create_task_group() as waiting:
            waiting.start_soon(fails_with, MuxedStreamReset, mine.read(1))
            waiting.start_soon(fails_with, MuxedStreamReset, mine.write(bytes(STREAM_WINDOW * 2)))
            await settle()
            await other.yamux.close()
        with pytest.raises(Exception, match="closed"):
            await one.yamux.open_stream()
