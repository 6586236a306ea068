"""How long to leave a peer alone after it refused or failed. Pure; times are seconds of any steady clock.

Each refusal in a row doubles the wait, whatever the peer says, up to `MAX_DELAY`. The wait is kept when the peer
disconnects, so that coming back does not shorten it. Its end is spread at random, so that peers who were refused by the
same busy node at the same time do not return at the same time.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Final

from bnw.transport.interface import PeerId

MIN_DELAY: Final = 5.0
MAX_DELAY: Final = 600.0
FAULT_DELAY: Final = 30.0
"""The first wait after a peer broke the protocol or did not answer."""
MAX_PEERS_REMEMBERED: Final = 1024


class Backoff:
    """The waits for all peers, of which the most recent are remembered."""

    def __init__(self) -> None:
        self._peers: OrderedDict[PeerId, tuple[int, float]] = OrderedDict()

    def failed(self, peer: PeerId, now: float, jitter: float, *, first: float = FAULT_DELAY) -> float:
        """Note a failure at `now`; returns the seconds to wait.

        `first` is the wait after the first failure in a row; `jitter` from 0 to 1 spreads it over half as much again.
        """
        failures = self._peers.pop(peer, (0, 0.0))[0] + 1
        first = min(max(first, MIN_DELAY), MAX_DELAY)
        delay = min(first * 2.0 ** min(failures - 1, 10), MAX_DELAY) * (1 + jitter / 2)
        self._peers[peer] = (failures, now + delay)
        if len(self._peers) > MAX_PEERS_REMEMBERED:
            self._peers.popitem(last=False)
        return delay

    def succeeded(self, peer: PeerId) -> None:
        self._peers.pop(peer, None)

    def remaining(self, peer: PeerId, now: float) -> float:
        """Seconds that are left of a wait; 0 if there is none."""
        return max(0.0, self._peers.get(peer, (0, 0.0))[1] - now)
