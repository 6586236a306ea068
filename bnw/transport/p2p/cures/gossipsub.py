"""A gossipsub router that a peer's control messages cannot crash, stall or fill up.

Faults (libp2p 0.8.1):

- tables of backoffs, rates and deliveries grow with every topic name that a peer makes up, and with every message;
- one RPC may hold 300,000 grafts, which are answered one by one in 15 s without a pause; one IWANT may ask for the same
  message 20,000 times, and gets it as often;
- a PRUNE may name peers, which are then dialled;
- messages are kept for 1,000 further messages to detect equivocation, which our objects do themselves, and for each
  peer that is not in the topic;
- grafts and prunes for one peer are sent to the next peer as well;
- the sender's signed record goes with every RPC.

On the stock library: tests/transport/test_gossip_cures.py.

Can go when these are cured upstream.
"""

from __future__ import annotations

from libp2p.peer.id import ID
from libp2p.pubsub.gossipsub import PROTOCOL_ID_V11, GossipSub
from libp2p.pubsub.pb.rpc_pb2 import (
    RPC,
    ControlGraft,
    ControlIHave,
    ControlIWant,
    ControlMessage,
    ControlPrune,
    Message,
)

from bnw.transport.p2p.cures.message_cache import ContentCache
from bnw.wire.content_id import CONTENT_ID_SIZE
from bnw.wire.errors import InvalidError

DEGREE, DEGREE_LOW, DEGREE_HIGH = 6, 4, 12
HEARTBEAT = 1

MAX_ENTRIES = 256
"""Grafts, prunes, ihaves and iwants in one RPC, each."""

MAX_IDS = 4096
"""Message ids in all IHAVEs of a topic, and in all IWANTs, of one RPC. More are not looked at."""

MAX_BACKOFF = 3600
"""Seconds for which a peer may ask us not to graft it."""


class ContainedGossipSub(GossipSub):
    def __init__(self) -> None:
        super().__init__(
            [PROTOCOL_ID_V11],
            DEGREE,
            DEGREE_LOW,
            DEGREE_HIGH,
            heartbeat_interval=HEARTBEAT,
            adaptive_gossip_enabled=False,
            spam_protection_enabled=False,
        )
        self.mcache = ContentCache()

    def targets(self, topic: str) -> set[ID]:
        """The peers that a message of ours goes to, as far as that is decided already."""
        return self.mesh.get(topic) or self.fanout.get(topic) or set()

    async def handle_rpc(self, rpc: RPC, sender_peer_id: ID) -> None:
        """Act on what is sound in `rpc`. Raises `InvalidError` (`rpc`) for what nobody sends in good faith."""
        control = rpc.control
        for entries in (control.graft, control.prune, control.ihave, control.iwant):
            if len(entries) > MAX_ENTRIES:
                raise InvalidError("rpc", f"{len(entries):,} control messages of one kind in an RPC")
        # Each topic once, and only topics of ours: others are not answered (gossipsub 1.1, spam protection).
        backoffs = {p.topicID: min(p.backoff, MAX_BACKOFF) for p in control.prune if p.topicID in self.mesh}
        offers: dict[str, list[bytes]] = {}
        for ihave in control.ihave:
            if ihave.topicID in self.mesh:
                offers.setdefault(ihave.topicID, []).extend(ihave.messageIDs)
        wanted = [key for iwant in control.iwant for key in iwant.messageIDs]
        sound = ControlMessage(
            graft=[ControlGraft(topicID=t) for t in {g.topicID: None for g in control.graft} if t in self.mesh],
            prune=[ControlPrune(topicID=topic, backoff=backoff) for topic, backoff in backoffs.items()],
            ihave=[ControlIHave(topicID=topic, messageIDs=_ids(keys)) for topic, keys in offers.items()],
            iwant=[ControlIWant(messageIDs=[key for key in _ids(wanted) if key in self.mcache.msgs])],
        )
        await super().handle_rpc(RPC(control=sound), sender_peer_id)

    async def publish(self, msg_forwarder: ID, pubsub_msg: Message) -> None:
        await super().publish(msg_forwarder, pubsub_msg)
        # Who subscribes later is given what the message cache holds.
        self._pending_messages.clear()
        self.recent_message_deliveries.clear()

    def mesh_heartbeat(self) -> tuple[dict[ID, list[str]], dict[ID, list[str]]]:  # type: ignore[override]  # a DefaultDict there
        # (The base returns one although nobody adds to it.)
        for topic, backoffs in self.back_off.items():
            for peer in list(backoffs):
                self._check_back_off(peer, topic)  # forgets what is over
        return super().mesh_heartbeat()

    def send_rpc(self, peer_id: ID, rpc: RPC, priority: bool = False) -> None:
        rpc.ClearField("senderRecord")
        super().send_rpc(peer_id, rpc, priority)

    def _check_equivocation(self, msg: Message) -> bool:
        return True

    async def _emit_control_msgs(
        self,
        peers_to_graft: dict[ID, list[str]],
        peers_to_prune: dict[ID, list[str]],
        peers_to_gossip: dict[ID, dict[str, list[bytes]]],
    ) -> None:
        for peer in dict.fromkeys((*peers_to_graft, *peers_to_prune, *peers_to_gossip)):
            control = ControlMessage(
                graft=[ControlGraft(topicID=topic) for topic in peers_to_graft.get(peer, ())],
                prune=[
                    ControlPrune(topicID=topic, backoff=self.prune_back_off) for topic in peers_to_prune.get(peer, ())
                ],
                ihave=[
                    ControlIHave(topicID=topic, messageIDs=ids) for topic, ids in peers_to_gossip.get(peer, {}).items()
                ],
            )
            await self.emit_control_message(control, peer)


def _ids(keys: list[bytes]) -> list[bytes]:
    """Those that can be content ids, each once."""
    return [key for key in dict.fromkeys(keys[:MAX_IDS]) if len(key) == CONTENT_ID_SIZE]
