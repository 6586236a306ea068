"""py-libp2p as it comes, with only the settings without which it does not work for us at all."""

from __future__ import annotations

from libp2p import new_host
from libp2p.abc import IHost
from libp2p.crypto.ed25519 import create_new_key_pair
from libp2p.crypto.x25519 import create_new_key_pair as create_noise_key_pair
from libp2p.custom_types import TProtocol
from libp2p.network.config import ConnectionConfig
from libp2p.pubsub.gossipsub import PROTOCOL_ID_V11, GossipSub
from libp2p.pubsub.pb.rpc_pb2 import Message
from libp2p.pubsub.pubsub import Pubsub
from libp2p.security.noise.transport import PROTOCOL_ID as NOISE
from libp2p.security.noise.transport import Transport as Noise
from libp2p.stream_muxer.yamux.yamux import PROTOCOL_ID as YAMUX
from libp2p.stream_muxer.yamux.yamux import Yamux
from multiaddr import Multiaddr

from bnw.wire.content_id import content_id


def stock_host(max_connections: int | None = None, seed: bytes | None = None) -> tuple[IHost, list[Multiaddr]]:
    """A host with TCP, Noise and Yamux, and the addresses to run it with."""
    keys = create_new_key_pair(seed)
    listen = [Multiaddr("/ip4/127.0.0.1/tcp/0")]
    config = None
    if max_connections is not None:
        config = ConnectionConfig(
            max_connections=max_connections, min_connections=1, low_watermark=1, high_watermark=max_connections
        )
    noise = Noise(keys, create_noise_key_pair().private_key)
    host = new_host(
        key_pair=keys,
        sec_opt={NOISE: noise},
        muxer_opt={TProtocol(YAMUX): Yamux},
        listen_addrs=listen,
        connection_config=config,
    )
    return host, listen


def stock_pubsub(host: IHost) -> tuple[Pubsub, GossipSub]:
    """Gossipsub 1.1 with a heartbeat of a second; by default it would be two minutes."""
    gossip = GossipSub(
        [PROTOCOL_ID_V11],
        6,
        4,
        12,
        heartbeat_interval=1,
        adaptive_gossip_enabled=False,
        spam_protection_enabled=False,
    )
    return Pubsub(host, gossip, strict_signing=True, msg_id_constructor=_content_id), gossip


def _content_id(message: Message) -> bytes:
    return content_id(message.data)
