"""What peers can do to the gossip of py-libp2p 0.8.1 with frames that are well formed, and not to ours."""

from __future__ import annotations

import os
import threading
from collections.abc import AsyncIterator

import pytest
from attacker import MESHSUB, raw_peer
from hypothesis import given
from hypothesis import strategies as st
from libp2p.peer.id import ID
from libp2p.pubsub.gossipsub import PROTOCOL_ID_V11, GossipSub
from libp2p.pubsub.mcache import MessageCache
from libp2p.pubsub.pb.rpc_pb2 import (
    RPC,
    ControlGraft,
    ControlIHave,
    ControlIWant,
    ControlMessage,
    ControlPrune,
    Message,
    PeerInfo,
)
from libp2p.pubsub.pubsub import Pubsub
from libp2p.pubsub.rpc_queue import PriorityQueue
from libp2p.utils import encode_varint_prefixed
from stock_host import stock_host, stock_pubsub
from worlds import TOPIC, Listener, P2PWorld, until

from bnw.transport.bounds import MAX_GOSSIP_MESSAGE, MAX_SEEN
from bnw.transport.p2p.cures.frames import MAX_RPC, FrameReader
from bnw.transport.p2p.cures.gossipsub import MAX_BACKOFF, ContainedGossipSub
from bnw.transport.p2p.cures.message_cache import GOSSIP_HISTORY, MAX_CACHED_SIZE, ContentCache, SeenMessages
from bnw.transport.p2p.cures.outbox import MAX_RPCS, MAX_SIZE, Outbox
from bnw.transport.p2p.transport import P2PTransport
from bnw.wire.content_id import content_id
from bnw.wire.errors import InvalidError

pytestmark = pytest.mark.anyio

A, B = ID(b"a"), ID(b"b")
ONE = content_id(b"one")


def message(data: bytes, number: int = 0) -> Message:
    return Message(data=data, topicIDs=[TOPIC], from_id=b"author", seqno=number.to_bytes(8))


class Recorder:
    """A router that is in TOPIC, and what it sends, to whom."""

    def __init__(self, kind: str) -> None:
        host, _ = stock_host()
        _, self.router = stock_pubsub(host) if kind == "stock" else (None, ContainedGossipSub())
        if kind == "cured":
            pubsub = Pubsub(host, self.router, msg_id_constructor=lambda m: content_id(m.data))
            pubsub.seen_messages.stop()
        self.router.mesh[TOPIC] = set()
        self.sent: list[tuple[ID, RPC]] = []
        self.router.send_rpc = self._send  # type: ignore[method-assign]  # a stand-in for what libp2p hands in

    def _send(self, peer_id: ID, rpc: RPC, priority: bool = False) -> None:
        self.sent.append((peer_id, rpc))

    async def control(self, peer: ID, **control: object) -> None:
        await self.router.handle_rpc(RPC(control=ControlMessage(**control)), peer)  # type: ignore[arg-type]  # a stand-in for what libp2p hands in


@pytest.mark.parametrize("kind", ["stock", "cured"])
async def test_topics_that_a_peer_makes_up_fill_only_the_stock_tables(kind: str) -> None:
    at = Recorder(kind)
    for number in range(20):
        topics = [f"{number} {n}" for n in range(50)]
        await at.control(
            A,
            prune=[ControlPrune(topicID=topic) for topic in topics],
            ihave=[ControlIHave(topicID=topic, messageIDs=[ONE]) for topic in topics],
        )
    entries = len(at.router.back_off) + len(at.router.ihave_message_limits[A])
    assert entries == (2_000 if kind == "stock" else 0)


@pytest.mark.parametrize("kind", ["stock", "cured"])
async def test_grafts_of_made_up_topics_are_answered_only_by_the_stock_router(kind: str) -> None:
    at = Recorder(kind)
    await at.control(A, graft=[ControlGraft(topicID=f"{n}") for n in range(200)])
    assert len(at.sent) == (200 if kind == "stock" else 0)


@pytest.mark.parametrize("kind", ["stock", "cured"])
async def test_a_message_wanted_many_times_is_sent_as_often_only_by_the_stock_router(kind: str) -> None:
    at = Recorder(kind)
    sent = message(b"one")
    at.router.mcache.put(sent)
    key = sent.from_id + sent.seqno if kind == "stock" else ONE
    await at.control(A, iwant=[ControlIWant(messageIDs=[key] * 2_000)])
    (_, rpc), *_ = at.sent
    assert len(rpc.publish) == (2_000 if kind == "stock" else 1)


@pytest.mark.parametrize("kind", ["stock", "cured"])
async def test_peers_named_in_a_prune_are_dialled_only_by_the_stock_router(kind: str) -> None:
    at = Recorder(kind)
    dialled: list[object] = []

    async def note(peers: list[PeerInfo]) -> None:
        dialled.extend(peers)

    at.router._do_px = note  # type: ignore[method-assign]  # a stand-in for what libp2p hands in
    await at.control(A, prune=[ControlPrune(topicID=TOPIC, peers=[PeerInfo(peerID=b"stranger")])])
    assert len(dialled) == (1 if kind == "stock" else 0)


@pytest.mark.parametrize("kind", ["stock", "cured"])
async def test_a_graft_for_one_peer_reaches_the_next_only_from_the_stock_router(kind: str) -> None:
    at = Recorder(kind)
    await at.router._emit_control_msgs({A: ["one"], B: ["two"]}, {}, {})
    grafts = {peer: [graft.topicID for graft in rpc.control.graft] for peer, rpc in at.sent}
    assert grafts == {A: ["one"], B: ["one", "two"] if kind == "stock" else ["two"]}


async def test_grafts_prunes_and_offers_of_our_topic_are_heeded() -> None:
    at = Recorder("cured")
    await at.control(A, graft=[ControlGraft(topicID=TOPIC)] * 3)
    assert at.router.mesh[TOPIC] == {A}
    await at.control(A, ihave=[ControlIHave(topicID=TOPIC, messageIDs=[ONE, ONE, b"short"])])
    assert [list(rpc.control.iwant[0].messageIDs) for _, rpc in at.sent] == [[ONE]]
    await at.control(A, prune=[ControlPrune(topicID=TOPIC, backoff=2**63)])
    assert at.router.mesh[TOPIC] == set()
    (until_then,) = at.router.back_off[TOPIC].values()
    at.router.mesh_heartbeat()
    assert list(at.router.back_off[TOPIC].values()) == [until_then], "a backoff lasts"
    assert until_then < 2**32, f"but not longer than {MAX_BACKOFF} s"


async def test_control_messages_without_end_are_refused() -> None:
    at = Recorder("cured")
    with pytest.raises(InvalidError):
        await at.control(A, graft=[ControlGraft(topicID=TOPIC)] * 257)


@pytest.mark.parametrize("kind", ["stock", "cured"])
async def test_messages_are_offered_under_the_configured_id_only_by_the_cured_cache(kind: str) -> None:
    cache = MessageCache(3, 5) if kind == "stock" else ContentCache()
    cache.put(message(b"one", 7))
    assert cache.window(TOPIC) == [b"author" + (7).to_bytes(8) if kind == "stock" else ONE]


def test_the_message_cache_forgets_in_time_and_never_exceeds_its_size() -> None:
    cache = ContentCache()
    cache.put(message(b"one"))
    for _ in range(GOSSIP_HISTORY - 1):
        cache.shift()
        assert cache.get(ONE) is not None
    cache.shift()
    assert cache.get(ONE) is None
    for number in range(2 * MAX_CACHED_SIZE // MAX_GOSSIP_MESSAGE):
        cache.put(message(number.to_bytes(8) + bytes(MAX_GOSSIP_MESSAGE - 8)))
    assert sum(len(m.data) for m in cache.msgs.values()) == MAX_CACHED_SIZE


async def test_seen_messages_are_bounded_and_need_no_thread() -> None:
    threads = threading.active_count()
    seen = SeenMessages()
    assert threading.active_count() == threads
    assert [seen.add(b"one"), seen.add(b"one"), seen.has(b"one")] == [True, False, True]
    for number in range(MAX_SEEN):
        seen.add(number.to_bytes(8))
    assert not seen.has(b"one")


def test_an_outbox_sends_control_first_and_is_bounded_in_number_and_size() -> None:
    made_room = []
    outbox = Outbox(PriorityQueue(), lambda: made_room.append(1))
    control = RPC(control=ControlMessage(graft=[ControlGraft(topicID=TOPIC)]))
    large = RPC(publish=[message(bytes(MAX_GOSSIP_MESSAGE - 200))])
    assert outbox.push(large)
    assert outbox.push(control, priority=True)
    assert [outbox.pop(), outbox.pop(), outbox.pop()] == [control, large, None]
    assert len(made_room) == 3
    while not outbox.crowded:
        assert outbox.push(large)
    while outbox.push(large):
        pass
    assert MAX_SIZE - MAX_GOSSIP_MESSAGE < sum(rpc.ByteSize() for rpc in outbox._non_priority) <= MAX_SIZE
    small = Outbox(PriorityQueue(), lambda: None)
    assert sum(small.push(control) for _ in range(2 * MAX_RPCS)) == MAX_RPCS


@given(st.lists(st.binary(max_size=300), max_size=5), st.lists(st.integers(1, 200)))
def test_rpcs_may_arrive_in_any_pieces(bodies: list[bytes], sizes: list[int]) -> None:
    wire = b"".join(encode_varint_prefixed(body) for body in bodies)
    reader, got = FrameReader(), []
    while wire:
        size = sizes.pop() if sizes else len(wire)
        got += reader.feed(wire[:size])
        wire = wire[size:]
    assert got == bodies


def test_an_rpc_that_is_too_large_is_skipped_and_not_held() -> None:
    reader = FrameReader()
    wire = b"".join(map(encode_varint_prefixed, [b"before", os.urandom(MAX_RPC + 1), b"after"]))
    got: list[bytes] = []
    for start in range(0, len(wire), 65_536):
        got += reader.feed(wire[start : start + 65_536])
        assert len(reader._buffer) <= 65_536
    assert got == [b"before", b"after"]
    assert reader.skipped == 1


@pytest.mark.parametrize("prefix", [b"\xff" * 10, b"\xff\xff\xff\xff\x7f", b"\x81\x80\x80\x08"])
def test_a_length_that_nobody_can_mean_is_refused(prefix: bytes) -> None:
    with pytest.raises(InvalidError):
        list(FrameReader().feed(prefix))


@pytest.fixture
async def node() -> AsyncIterator[P2PTransport]:
    async with P2PWorld().endpoint("node") as endpoint:
        assert isinstance(endpoint, P2PTransport)
        yield endpoint


async def test_messages_that_are_not_signed_are_not_even_judged(node: P2PTransport) -> None:
    at_node = Listener()
    await node.subscribe(TOPIC, at_node.validate, at_node.handle)
    async with raw_peer(node.addresses[0]) as peer:
        await until(lambda: bool(node.peers()))
        stream = await peer.open(MESHSUB)
        for number in range(5):
            rpc = RPC(publish=[message(b"unsigned", number)])
            await peer.send_on(stream, encode_varint_prefixed(rpc.SerializeToString()))
        await until(lambda: not node.peers())
    assert not node.peers(), "five times is too often"
    assert at_node.judged == []


async def test_publishing_leaves_nothing_behind_for_peers_outside_the_topic(node: P2PTransport) -> None:
    async with P2PWorld().endpoint("other") as other:
        await node.dial(other.addresses[0])
        await Listener.at(node)
        router = node._gossip._pubsub.router
        await until(lambda: bool(node._gossip._pubsub.peers))
        for number in range(50):
            await node.publish(TOPIC, b"%d" % number)
        assert not router._pending_messages
        assert not router.recent_message_deliveries
        assert not router.equivocation_detection


async def test_what_was_published_just_before_closing_arrives() -> None:
    async with P2PWorld().endpoint("b") as b:
        at_b = await Listener.at(b)
        async with P2PWorld().endpoint("a") as a:
            await Listener.at(a)
            await a.dial(b.addresses[0])
            assert isinstance(a, P2PTransport)
            router = a._gossip._pubsub.router
            await until(lambda: bool(router.targets(TOPIC)))
            for number in range(100):
                await a.publish(TOPIC, b"%d" % number)
        await until(lambda: len(at_b.delivered) == 100)


def test_the_settings_are_those_that_work() -> None:
    router = ContainedGossipSub()
    assert isinstance(router, GossipSub)
    assert router.protocols == [PROTOCOL_ID_V11], "1.2 sends IDONTWANT for every message, and takes seconds"
    assert router.heartbeat_interval == 1, "the default is two minutes"
    assert (router.adaptive_gossip_enabled, router.spam_protection_enabled) == (False, False)
