"""Hostile peers: what they can make a node do, keep or send in one session is bounded, and honest peers are served."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any

import anyio
import pytest
from sync_world import NOW, Side, World, connect, delegation, delegations, open_world, raw_session

from bnw.objects.rules import CATALOG
from bnw.sync import protocol, server
from bnw.sync.negentropy.coding import FINGERPRINT, ID_LIST, INFINITY, MessageWriter, encode_varint, item_key
from bnw.sync.protocol import MAX_ROUNDS, MESSAGE_TIMEOUT, SESSION_TIMEOUT
from bnw.transport.interface import PeerId, Stream
from bnw.transport.message_stream import MessageStream
from bnw.wire.content_id import content_id
from bnw.wire.errors import InvalidError, RemoteError
from bnw.wire.frames import encode_frame

pytestmark = pytest.mark.anyio

EMPTY_LIST = b"\x61\x00\x00\x02\x00"
OPEN = {"type": "open", "version": 1, "scope": CATALOG, "message": EMPTY_LIST}


@pytest.fixture
async def world():
    async with open_world() as opened:
        yield opened


class Script:
    """A hostile answering side: gives each message to `answer` and sends what that returns."""

    def __init__(self, answer: Callable[[dict[str, Any], int], dict[str, Any]]) -> None:
        self._answer = answer
        self.received: list[dict[str, Any]] = []

    async def __call__(self, stream: Stream) -> None:
        messages = MessageStream(stream)
        while (message := await messages.receive()) is not None:
            self.received.append(message)
            await messages.send(self._answer(message, len(self.received)))


async def fails(side: Side, peer: PeerId) -> str:
    """Pull from a hostile peer; returns the code of the failure."""
    with anyio.fail_after(SESSION_TIMEOUT + 60), pytest.raises(RemoteError) as caught:
        await side.pull(peer)
    return caught.value.code


def id_list(ids: list[bytes]) -> dict[str, Any]:
    payload = encode_varint(len(ids)) + b"".join(ids)
    return {"type": "reconcile", "message": b"\x61\x00\x00\x02" + payload}


def ghost_ids(count: int, seed: int = 0) -> list[bytes]:
    """Ids of nothing."""
    return [hashlib.sha256(b"%d ghost %d" % (seed, number)).digest() for number in range(count)]


def random_fingerprints(number: int) -> dict[str, Any]:
    """As many ranges as fit, whose fingerprints match nothing."""
    writer = MessageWriter(protocol.MAX_NEGENTROPY)
    place = 0
    while writer.add(
        item_key(place, bytes(32))[:8], FINGERPRINT, hashlib.sha256(b"%d %d" % (number, place)).digest()[:16]
    ):
        place += 1
    return {"type": "reconcile", "message": writer.finish(INFINITY, bytes(16))}


async def test_a_peer_that_answers_for_ever_with_new_ranges_is_left_after_a_bounded_number_of_rounds(
    world: World,
) -> None:
    script = Script(lambda message, number: random_fingerprints(number))
    async with world.side("here", delegations(200)) as here, world.hostile(script) as peer:
        await connect(here, "hostile")
        assert await fails(here, peer) == "sync-endless"
        assert len(script.received) == MAX_ROUNDS
        assert all(len(message["message"]) <= protocol.MAX_NEGENTROPY for message in script.received)


async def test_a_peer_that_offers_new_ids_for_ever_makes_us_ask_for_a_bounded_number(world: World) -> None:
    def answer(message: dict[str, Any], number: int) -> dict[str, Any]:
        if message["type"] == "want":
            return {"type": "objects", "more": False, "objects": []}
        writer = MessageWriter(protocol.MAX_NEGENTROPY)
        ids = ghost_ids(1900, number)
        writer.add(item_key(1, bytes(32)), ID_LIST, encode_varint(len(ids)) + b"".join(ids))
        return {"type": "reconcile", "message": writer.finish(INFINITY, b"never equal".ljust(16))}

    script = Script(answer)
    async with world.side("here", delegations(20)) as here, world.hostile(script) as peer:
        await connect(here, "hostile")
        assert await fails(here, peer) == "sync-endless"
        wanted = [id for message in script.received if message["type"] == "want" for id in message["ids"]]
        assert len(wanted) == len(set(wanted)) == protocol.MAX_WANTED
        assert len(script.received) < MAX_ROUNDS


async def test_wrong_fingerprints_bring_nothing_and_cost_a_bounded_session(world: World) -> None:
    """The peer holds what we hold, but says of every range that it differs."""
    from bnw.sync.negentropy.reconciler import Responder

    async with world.side("here", delegations(300)) as here:
        responder = Responder(await here.index.at(NOW), frame_limit=protocol.MAX_NEGENTROPY)
        responder._fingerprint = lambda lower, upper: bytes(16)  # type: ignore[method-assign]  # the hostile side replaces its own method
        script = Script(lambda message, number: {"type": "reconcile", "message": responder.answer(message["message"])})
        async with world.hostile(script) as peer:
            await connect(here, "hostile")
            report = await here.pull(peer)
            assert (report.asked, report.news) == (0, 0)
            assert report.rounds <= 4


async def test_a_peer_that_stalls_after_each_byte_is_left_when_a_message_takes_too_long(world: World) -> None:
    async def drip(stream: Stream) -> None:
        for byte in encode_frame(random_fingerprints(1)):
            await stream.send(bytes([byte]))
            await anyio.sleep(1)

    async with world.side("here") as here, world.hostile(drip) as peer:
        await connect(here, "hostile")
        begin = anyio.current_time()
        assert await fails(here, peer) == "sync-slow"
        assert anyio.current_time() - begin == pytest.approx(MESSAGE_TIMEOUT, abs=1)


async def test_a_peer_that_takes_its_time_for_every_message_is_left_when_the_session_has_taken_too_long(
    world: World,
) -> None:
    async def dawdle(stream: Stream) -> None:
        messages = MessageStream(stream)
        for number in range(1000):
            await messages.receive()
            await anyio.sleep(15)
            await messages.send(random_fingerprints(number))

    async with world.side("here", delegations(10)) as here, world.hostile(dawdle) as peer:
        await connect(here, "hostile")
        begin = anyio.current_time()
        assert await fails(here, peer) == "sync-slow"
        assert anyio.current_time() - begin == pytest.approx(SESSION_TIMEOUT, abs=1)


@pytest.mark.parametrize(
    ("answer", "code"),
    [
        (id_list([bytes(32)] * 2), "negentropy-duplicate"),
        ({"type": "reconcile", "message": b"\x60"}, "negentropy-version"),
        ({"type": "reconcile", "message": b"\x61\x00"}, "negentropy"),
        ({"type": "reconcile", "message": b"\x61" + bytes(protocol.MAX_NEGENTROPY)}, "field"),
        ({"type": "objects", "more": False, "objects": []}, "message"),
        ({"type": "same"}, "message"),
    ],
)
async def test_answers_that_break_the_protocol_end_the_session(world: World, answer: dict[str, Any], code: str) -> None:
    async with world.side("here") as here, world.hostile(Script(lambda message, number: answer)) as peer:
        await connect(here, "hostile")
        assert await fails(here, peer) == code


async def test_a_frame_above_the_limit_ends_the_session_before_it_is_read(world: World) -> None:
    async def oversize(stream: Stream) -> None:
        await stream.receive()
        await stream.send((2**31).to_bytes(4))
        await anyio.sleep_forever()

    async with world.side("here") as here, world.hostile(oversize) as peer:
        await connect(here, "hostile")
        assert await fails(here, peer) == "frame-too-large"


def offering(ids: list[bytes], *objects: dict[str, Any]) -> Script:
    """Offers `ids`, and answers the first requests for objects with `objects`, all others with nothing."""
    left = list(objects)

    def answer(message: dict[str, Any], number: int) -> dict[str, Any]:
        if message["type"] != "want":
            return id_list(ids)
        return left.pop(0) if left else {"type": "objects", "more": False, "objects": []}

    return Script(answer)


async def test_ids_that_are_offered_and_not_delivered_are_not_asked_of_this_peer_again_but_of_others(
    world: World,
) -> None:
    objects = delegations(5)
    script = offering([obj.id for obj in objects] + ghost_ids(100))
    async with (
        world.side("here") as here,
        world.side("honest", objects) as honest,
        world.hostile(script) as peer,
    ):
        await connect(here, "hostile", "honest")
        assert (await here.pull(peer)).asked == 105
        assert (await here.pull(peer)).asked == 0
        assert (await here.pull(honest.peer)).news == 5


async def test_offering_an_id_twice_in_different_ranges_does_not_have_it_fetched_twice(world: World) -> None:
    obj = delegation()

    def answer(message: dict[str, Any], number: int) -> dict[str, Any]:
        if message["type"] == "want":
            return {"type": "objects", "more": False, "objects": [obj.data] * message["ids"].count(obj.id)}
        listed = b"\x02\x01" + obj.id
        return {"type": "reconcile", "message": b"\x61" + b"\x05\x00" + listed + b"\x05\x00" + listed}

    async with world.side("here") as here, world.hostile(Script(answer)) as peer:
        await connect(here, "hostile")
        report = await here.pull(peer)
        assert (report.asked, report.news) == (1, 1)


@pytest.mark.parametrize("what", ["another object", "the object twice", "junk"])
async def test_objects_that_do_not_match_what_was_asked_for_end_the_session_and_are_not_kept(
    world: World, what: str
) -> None:
    wanted, other = delegation(1), delegation(2)
    delivered = {
        "another object": [wanted.data, other.data],
        "the object twice": [wanted.data, wanted.data],
        "junk": [wanted.data, b"junk"],
    }[what]
    script = offering([wanted.id], {"type": "objects", "more": False, "objects": delivered})
    async with world.side("here") as here, world.hostile(script) as peer:
        await connect(here, "hostile")
        assert await fails(here, peer) == "sync-unasked"
        assert await here.holds([wanted]), "what was asked for and came is kept"


async def test_junk_under_its_own_id_ends_the_session(world: World) -> None:
    junk = b"junk"
    script = offering([content_id(junk)], {"type": "objects", "more": False, "objects": [junk]})
    async with world.side("here") as here, world.hostile(script) as peer:
        await connect(here, "hostile")
        assert await fails(here, peer) == "envelope"
        assert (await here.pull(peer)).asked == 0


async def test_a_refusal_is_seen_although_the_peer_has_stopped_reading(world: World) -> None:
    async def refuse_late(stream: Stream) -> None:
        messages = MessageStream(stream)
        await messages.receive()
        await messages.send(id_list(ghost_ids(10)))
        await messages.send({"type": "refused", "code": "busy", "retry_after": 7})

    async with world.side("here") as here, world.hostile(refuse_late) as peer:
        await connect(here, "hostile")
        report = await here.pull(peer)
        assert report.refused is not None and report.refused.retry_after == 7


async def test_an_answer_that_never_ends_is_refused(world: World) -> None:
    script = offering(ghost_ids(1), *[{"type": "objects", "more": True, "objects": []}] * 100)
    async with world.side("here") as here, world.hostile(script) as peer:
        await connect(here, "hostile")
        assert await fails(here, peer) == "sync-order"


async def test_a_puller_that_never_stops_comparing_is_refused_after_a_bounded_number_of_rounds(world: World) -> None:
    async with world.side("here") as here, world.side("there", delegations(50)), raw_session(here, "there") as messages:
        await messages.send(OPEN)
        answers = 0
        while (answer := await messages.receive()) is not None and answer["type"] == "reconcile":
            answers += 1
            await messages.send({"type": "reconcile", "message": EMPTY_LIST})
        assert answers == MAX_ROUNDS
        assert answer is not None and (answer["type"], answer["code"]) == ("refused", "limit")


async def test_a_puller_that_asks_for_the_same_objects_for_ever_is_refused(world: World) -> None:
    objects = delegations(protocol.MAX_IDS_PER_WANT)
    ids = [obj.id for obj in objects]
    async with world.side("here") as here, world.side("there", objects), raw_session(here, "there") as messages:
        await messages.send(OPEN)
        delivered = 0
        while (answer := await messages.receive()) is not None and answer["type"] != "refused":
            delivered += len(answer.get("objects", ()))
            if not answer.get("more"):
                await messages.send({"type": "want", "ids": ids})
        assert answer is not None and answer["code"] == "limit"
        assert delivered == protocol.MAX_WANTED


async def test_one_peer_cannot_occupy_all_places(world: World) -> None:
    async with world.side("here") as here, world.side("there", delegations(3)) as there:
        opened = []
        for _ in range(server.MAX_SERVED_PER_PEER + 1):
            peer = await here.transport.dial("mem:there")
            messages = MessageStream(await here.transport.open_stream(peer, protocol.SYNC_PROTOCOL))
            await messages.send(OPEN)
            opened.append(messages)
        answers = [await messages.receive() for messages in opened]
        assert [answer and answer["type"] for answer in answers] == ["reconcile"] * 2 + ["refused"]
        async with world.side("other") as other:
            await connect(other, "there")
            assert (await other.pull(there.peer)).news == 3


async def test_a_flood_of_sessions_is_refused_as_busy_and_others_are_served(world: World) -> None:
    async with world.side("here") as here, world.side("there", delegations(3)) as there:
        codes: list[object] = []
        for _ in range(60):
            async with raw_session(here, "there") as messages:
                await messages.send(OPEN)
                answer = await messages.receive()
                codes.append(answer and answer.get("code"))
        assert codes.count("busy") >= 60 - server.STREAMS_AT_ONCE - 10
        async with world.side("other") as other:
            await connect(other, "there")
            assert (await other.pull(there.peer)).news == 3


async def test_a_puller_that_stalls_is_hung_up_on(world: World) -> None:
    async def is_hung_up_on(*data: bytes) -> None:
        async with raw_session(here, "there") as messages:
            for piece in data:
                await messages.send_bytes(piece)
            with anyio.fail_after(MESSAGE_TIMEOUT + 5), pytest.raises(RemoteError):
                while await messages.receive() is not None:
                    pass

    async with world.side("here") as here, world.side("there"):
        await is_hung_up_on()
        await is_hung_up_on(encode_frame(OPEN)[:20])


@pytest.mark.parametrize("opening", [{"type": "want", "ids": [bytes(32)]}, {"type": "open"}, {**OPEN, "message": b"?"}])
async def test_a_puller_that_breaks_the_protocol_is_hung_up_on(world: World, opening: dict[str, Any]) -> None:
    async with world.side("here") as here, world.side("there"), raw_session(here, "there") as messages:
        await messages.send(opening)
        with pytest.raises(RemoteError) as caught:
            await messages.receive()
        assert caught.value.code == "stream-closed"


async def test_no_answer_makes_the_reader_of_a_message_do_more_than_its_bytes_allow() -> None:
    """The dearest message that fits: ranges with a fingerprint each, as many as there is room for."""
    from bnw.sync.negentropy.index import BlockedIndex
    from bnw.sync.negentropy.reconciler import Responder

    index = BlockedIndex(item_key(number, hashlib.sha256(b"%d" % number).digest()) for number in range(5000))
    sums: list[int] = []
    original = index.sum_below
    index.sum_below = lambda rank: sums.append(rank) or original(rank)  # type: ignore[method-assign]  # the hostile side replaces its own method
    answer = Responder(index, frame_limit=protocol.MAX_NEGENTROPY).answer(random_fingerprints(0)["message"])
    assert len(answer) <= protocol.MAX_NEGENTROPY
    assert len(sums) < 10_000
    with pytest.raises(InvalidError):
        Responder(index, max_message=protocol.MAX_NEGENTROPY).answer(b"\x61" + bytes(protocol.MAX_NEGENTROPY))
