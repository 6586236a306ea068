"""The transport over py-libp2p 0.8.1: TCP, Noise, Yamux, gossipsub 1.1.

`transport` implements the contract on libp2p's own host, swarm, multiplexer, pubsub and router. `cures` holds a
subclass for each of them, with the faults that it cures; `docs/libp2p.md` lists those with their tests.
"""

from bnw.transport.p2p.quiet import quieten
from bnw.transport.p2p.transport import P2PTransport

# After the import, since importing libp2p takes away the handlers of its logger.
quieten()

__all__ = ["P2PTransport"]
