"""What lies between two nodes: delay, jitter, bandwidth, loss, and cuts.

A link carries entries in order, each way, as TCP does. Losing a packet of a stream therefore shows as delay; only
gossip messages can vanish (as they do in the full queues of a real router).
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

from bnw.transport.memory.chance import UNIFORM, chance, draw
from bnw.transport.memory.queue import Call
from bnw.wire.environment import Environment

RETRANSMISSION = 0.2
"""Seconds that a lost packet delays its successors; the smallest retransmission timeout common among TCP stacks."""

MAX_RETRANSMISSIONS = 8


@dataclass(frozen=True, slots=True)
class Link:
    """Properties of a link, the same both ways."""

    latency: float = 0.005
    """Seconds one way."""
    jitter: float = 0.0
    """Seconds added to the latency: up to so many, evenly distributed, or so many on average in another shape."""
    jitter_shape: str = UNIFORM
    """One of `bnw.transport.memory.chance.SHAPES`."""
    message_cost: int = 0
    """Bytes that each entry takes beyond its size."""
    bandwidth: float | None = None
    """Bytes a second each way; None for no limit."""
    loss: float = 0.0
    """Fraction of entries whose packet is lost once and sent again."""
    gossip_loss: float = 0.0
    """Fraction of gossip messages that are lost for good."""


class Direction:
    """One direction of a link. Decides when an entry arrives; keeps what a cut holds back."""

    def __init__(self, link: Link, environment: Environment) -> None:
        self.link = link
        self.held: deque[Call] = deque()
        self._environment = environment
        self._sender_free = 0.0
        self._last_arrival = 0.0

    def arrival(self, now: float, size: int) -> float:
        """When an entry of `size` bytes, sent now, arrives. Never before one sent earlier."""
        link = self.link
        sent = now
        if link.bandwidth is not None:
            self._sender_free = max(now, self._sender_free) + (size + link.message_cost) / link.bandwidth
            sent = self._sender_free
        delay = link.latency
        if link.jitter:
            if link.jitter_shape == UNIFORM:
                delay += link.jitter * chance(self._environment)
            else:
                delay += draw(self._environment, link.jitter_shape, link.jitter)
        if link.loss:
            for _ in range(MAX_RETRANSMISSIONS):
                if chance(self._environment) >= link.loss:
                    break
                delay += RETRANSMISSION
        self._last_arrival = max(sent + delay, self._last_arrival)
        return self._last_arrival

    def loses_gossip(self) -> bool:
        return bool(self.link.gossip_loss) and chance(self._environment) < self.link.gossip_loss
