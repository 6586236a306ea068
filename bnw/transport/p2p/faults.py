"""How often peers have done what only a broken or hostile peer does; those who do it too often are hung up on."""

from __future__ import annotations

from collections import OrderedDict
from typing import Final

from bnw.transport.interface import PeerId

LIMIT: Final = 20.0
HALF_LIFE: Final = 60.0
"""Seconds in which a peer's faults count half, so that one who misbehaves rarely is never cut off."""
MAX_REMEMBERED: Final = 1024


class Faults:
    """Points by peer. They are remembered after a disconnection, so that coming back does not clear them."""

    def __init__(self) -> None:
        self._points: OrderedDict[PeerId, tuple[float, float]] = OrderedDict()

    def add(self, peer: PeerId, points: float, now: float) -> bool:
        """Note a fault; whether the peer has now gone too far."""
        before, since = self._points.pop(peer, (0.0, now))
        total: float = before * 0.5 ** ((now - since) / HALF_LIFE) + points
        self._points[peer] = total, now
        if len(self._points) > MAX_REMEMBERED:
            self._points.popitem(last=False)
        return total >= LIMIT
