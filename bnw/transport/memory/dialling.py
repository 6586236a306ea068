"""Addresses of a memory network, and one attempt to connect."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import anyio

from bnw.transport.interface import PeerId
from bnw.transport.memory.peering import Peering
from bnw.transport.memory.stream import CONTROL_SIZE
from bnw.wire.errors import LocalError, RemoteError

if TYPE_CHECKING:
    from bnw.transport.memory.endpoint import MemoryEndpoint

SCHEME = "mem:"
EXPECTATION = "/p2p/"


def to_address(peer: PeerId) -> str:
    return SCHEME + peer


def parse_address(address: str) -> tuple[PeerId, PeerId]:
    """The peer at `mem:<name>` and the one expected there, which is the same unless `/p2p/<other>` follows.

    Raises `LocalError` (`address`) for other text.
    """
    name, _, expected = address.removeprefix(SCHEME).partition(EXPECTATION)
    if not address.startswith(SCHEME) or not name:
        raise LocalError("address", "this is not an address of a memory network", place=address, cure="use mem:<name>")
    return PeerId(name), PeerId(expected or name)


class Dialling:
    """A knock at the target, and its answer. Methods named `on_...` run when an entry arrives somewhere."""

    def __init__(self, dialler: MemoryEndpoint, target: PeerId, address: str) -> None:
        self._dialler = dialler
        self._target = target
        self._address = address
        self._answered = anyio.Event()
        self._refusal: str | None = None
        self._given_up = False

    async def run(self) -> None:
        """Return once connected; raise `RemoteError` (`unreachable`) after a refusal. Cancel it to give up."""
        dialler = self._dialler
        if not dialler.vanished:
            dialler.network.carry(dialler.name, self._target, CONTROL_SIZE, self._on_knock, "dial", lossy=True)
        try:
            await self._answered.wait()
        finally:
            self._given_up = not self._answered.is_set()
        if self._refusal is not None:
            raise RemoteError("unreachable", self._refusal, place=self._address)

    def _on_knock(self) -> None:
        target = self._dialler.network.endpoint_named(self._target)
        if target is None:
            self._reply(partial(self._on_refusal, "nothing listens there"), "refused")
            return
        peering = target.on_dial(self._dialler)
        if peering is None:
            self._reply(partial(self._on_refusal, "the peer there has too many connections"), "refused")
            return
        self._reply(partial(self._on_acceptance, peering), "accepted")
        target.gossip.greet(peering.far)

    def _reply(self, call: partial[None], what: str) -> None:
        self._dialler.network.carry(self._target, self._dialler.name, CONTROL_SIZE, call, what)

    def _on_refusal(self, why: str) -> None:
        self._refusal = why
        self._answered.set()

    def _on_acceptance(self, peering: Peering) -> None:
        if not peering.up and self._given_up:
            peering.answer(partial(peering.far.owner.lose, peering.far), "hang up")
        elif not peering.up and not peering.far.up:
            self._on_refusal("the peer there hung up at once")
        elif not peering.up:
            self._dialler.come_up(peering)
            self._dialler.gossip.greet(peering)
        self._answered.set()
