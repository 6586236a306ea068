"""The transport key: from a 32-byte seed to what libp2p wants, and peer ids as text."""

from __future__ import annotations

from libp2p.crypto.ed25519 import create_new_key_pair
from libp2p.crypto.keys import KeyPair
from libp2p.crypto.x25519 import X25519PrivateKey
from libp2p.peer.id import ID

from bnw.transport.interface import PeerId
from bnw.wire.errors import LocalError

SEED_SIZE = 32


def key_pair_from_seed(seed: bytes) -> KeyPair:
    """The Ed25519 key pair of a 32-byte seed (RFC 8032 section 5.1.5)."""
    if len(seed) != SEED_SIZE:
        raise LocalError("key", f"a transport key seed has {SEED_SIZE} bytes, not {len(seed)}")
    return create_new_key_pair(seed)


def noise_key(random_bytes: bytes) -> X25519PrivateKey:
    """The static key of the Noise handshakes, which the Ed25519 key vouches for. A new one each time we start."""
    return X25519PrivateKey.from_bytes(random_bytes)


def peer_id_of(key_pair: KeyPair) -> PeerId:
    return PeerId(ID.from_pubkey(key_pair.public_key).to_base58())


def to_libp2p(peer: PeerId) -> ID:
    return ID.from_base58(peer)
