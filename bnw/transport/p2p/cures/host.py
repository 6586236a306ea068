"""A host whose stream handlers may raise, and which asks peers nothing about themselves.

Faults (libp2p 0.8.1): an exception in a stream handler, or in the negotiation before it, ends the swarm and with it the
program; a stream is left open when its handler returns; identify and identify-push fill the peerstore with whatever
peers say, from system tasks of Trio; the ping service remembers every peer that ever pinged.

On the stock library: a handler that raises, and a stream that starts with `ff 0a`, each end the program
(tests/transport/test_crash_frames.py).

Can go when the swarm resets a stream whose handler raises, and identify can be switched off one way.

We answer identify, since js-libp2p starts gossip only with peers that say they speak it. We do not ask: nothing in BNW
needs what peers say of themselves, and what is not read can do no harm.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager

import anyio
from libp2p.abc import INetStream
from libp2p.custom_types import TProtocol
from libp2p.host.basic_host import BasicHost
from libp2p.host.exceptions import StreamFailure
from libp2p.host.ping import ID as PING
from libp2p.host.ping import handle_ping
from libp2p.identity.identify_push.identify_push import ID_PUSH as IDENTIFY_PUSH
from libp2p.network.stream.net_stream import NetStream
from libp2p.peer.id import ID
from multiaddr import Multiaddr

from bnw.transport.p2p.cures.negotiation import BoundedMultiselect, propose
from bnw.transport.p2p.cures.service import contained_service
from bnw.transport.p2p.cures.swarm import ContainedSwarm
from bnw.transport.p2p.cures.yamux import CuredYamux
from bnw.transport.p2p.cures.yamux_stream import CuredStream
from bnw.transport.tasks import log

NEGOTIATION_TIMEOUT = 10
"""Seconds that a peer has to say which protocol a stream of its speaks."""


class ProtocolRefused(StreamFailure):
    """The peer does not speak the protocol."""


class ContainedHost(BasicHost):
    def __init__(self, network: ContainedSwarm, announce: Sequence[Multiaddr] | None) -> None:
        super().__init__(
            network,
            negotiate_timeout=NEGOTIATION_TIMEOUT,
            announce_addrs=announce,
            disable_identify_address_discovery=True,
        )
        self.multiselect = BoundedMultiselect(self.multiselect.handlers)
        self.remove_stream_handler(IDENTIFY_PUSH)
        self.set_stream_handler(PING, handle_ping)

    def run(self, listen_addrs: Sequence[Multiaddr], **_: object) -> AbstractAsyncContextManager[None]:
        @asynccontextmanager
        async def run() -> AsyncIterator[None]:
            network = self.get_network()
            assert isinstance(network, ContainedSwarm)
            async with contained_service(network):
                await network.listen(*listen_addrs)
                yield

        return run()

    async def new_stream(self, peer_id: ID, protocol_ids: Sequence[TProtocol]) -> INetStream:
        """Open a stream that speaks the first of `protocol_ids`. Raises `ProtocolRefused`, or anything else."""
        stream = await self.get_network().new_stream(peer_id)
        agreed = False
        try:
            agreed = await propose(stream, protocol_ids[0])
        finally:
            if not agreed:
                await abandon(stream)
        if not agreed:
            raise ProtocolRefused(f"the peer does not speak {protocol_ids[0]}")
        stream.set_protocol(protocol_ids[0])
        return stream

    async def _swarm_stream_handler(self, net_stream: INetStream) -> None:
        finished = False
        try:
            await super()._swarm_stream_handler(net_stream)
            finished = True
        except Exception as error:  # noqa: BLE001 - the point of this module
            log.debug("a stream of peer %s is reset: %r", net_stream.muxed_conn.peer_id, error)
        finally:
            if isinstance(net_stream.muxed_conn, CuredYamux):
                net_stream.muxed_conn.slot_is_free()
            await (finish(net_stream) if finished else abandon(net_stream))

    def _schedule_identify(self, peer_id: ID, *, reason: str) -> None:
        return

    async def _push_identify_to_all_peers(self) -> None:
        return


async def finish(stream: INetStream) -> None:
    """Close both directions of a stream, also in a cancelled scope. Raises nothing."""
    assert isinstance(stream, NetStream)
    with anyio.CancelScope(shield=True):
        try:
            await stream.close()
            if isinstance(stream.muxed_stream, CuredStream):
                await stream.muxed_stream.discard()
        except Exception as error:  # noqa: BLE001 - the connection has gone, and with it the stream
            log.debug("closing a stream of peer %s: %r", stream.muxed_conn.peer_id, error)


async def abandon(stream: INetStream) -> None:
    """Reset a stream, also in a cancelled scope. Raises nothing."""
    with anyio.CancelScope(shield=True):
        await stream.reset()
