"""Counts of what passed through a memory network: for whoever studies it, not for nodes."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(slots=True)
class NodeTraffic:
    """Of one name, over all its starts."""

    received_entries: int = 0
    received_bytes: int = 0
    sent_bytes: int = 0
    gossip_received: int = 0
    gossip_new: int = 0
    """Gossip messages that the node had not seen."""


@dataclass(slots=True)
class Traffic:
    """`marked` are ids of messages to be watched; `marked_from` counts their arrivals by who sent them on."""

    nodes: dict[str, NodeTraffic] = field(default_factory=dict)
    gossip_lost: int = 0
    marked: set[bytes] = field(default_factory=set)
    marked_from: dict[str, int] = field(default_factory=dict)

    def of(self, name: str) -> NodeTraffic:
        traffic = self.nodes.get(name)
        if traffic is None:
            traffic = self.nodes[name] = NodeTraffic()
        return traffic
