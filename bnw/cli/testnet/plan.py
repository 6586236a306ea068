"""How many nodes are possible here, and who is connected with whom."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from bnw.node.configuration import MAX_PEERS
from bnw.node.environment import SystemEnvironment
from bnw.sim.scenario.schema import Network
from bnw.sim.topology import edges_of
from bnw.wire.errors import ExitStatus, LocalError
from bnw.wire.limits import GIB, KIB, MIB

MEMORY_PER_NODE: Final = 90 * MIB
"""What an idle node with a few peers takes for itself, 75 MiB, and room for what it is going to hold."""
MAX_NODES: Final = 500
"""On one machine: above it, processes and sockets run out before memory does."""
USABLE_MEMORY: Final = 0.9
"""Of what is available now."""
DEGREE: Final = 4

_MEMINFO: Final = Path("/proc/meminfo")


def check_count(count: int, topology: str) -> None:
    """Raise `LocalError` (`node-count`) for a number of nodes that is not possible here."""
    if count < 1:
        raise _count_fault(f"{count} nodes make no network", "1 is the least")
    if topology == "full" and MAX_PEERS + 1 < count <= MAX_NODES:
        raise _count_fault(
            f"{count} nodes that are all connected with each other",
            f"a node stays connected to at most {MAX_PEERS} peers: {MAX_PEERS + 1} nodes, or another --topology",
        )
    check_room(count, "--nodes")


def check_room(count: int, place: str) -> None:
    """Raise `LocalError` (`node-count`) for more nodes than a machine can run, or than fit into its memory now."""
    if count > MAX_NODES:
        raise _count_fault(
            f"{count:,} nodes on one machine", f"at most {MAX_NODES} are possible; `bnw simulate` runs more", place
        )
    most = int(available_memory() * USABLE_MEMORY) // MEMORY_PER_NODE
    if count > most:
        need, there = count * MEMORY_PER_NODE / GIB, available_memory() / GIB
        raise _count_fault(
            f"{count} nodes take {need:.1f} GiB, {MEMORY_PER_NODE // MIB} MiB each; {there:.1f} GiB are available",
            f"at most {most} fit now",
            place,
        )


def available_memory() -> int:
    """Bytes that new processes can have without anything being written to swap, about."""
    if _MEMINFO.exists():
        for line in _MEMINFO.read_text().splitlines():
            name, _, value = line.partition(":")
            if name == "MemAvailable":
                return int(value.split()[0]) * KIB
    return int(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))


def neighbours_of(topology: str, count: int) -> dict[str, list[str]]:
    """The neighbours of node-0, node-1, …; `topology` as scenario files call it."""
    names = [f"node-{number}" for number in range(count)]
    neighbours: dict[str, list[str]] = {name: [] for name in names}
    for one, other in edges_of(Network(topology=topology, degree=DEGREE), count, (), SystemEnvironment()):
        if one != other:
            neighbours[names[one]].append(names[other])
            neighbours[names[other]].append(names[one])
    return neighbours


def _count_fault(cause: str, cure: str, place: str = "--nodes") -> LocalError:
    return LocalError("node-count", cause, place=place, cure=cure, exit_status=ExitStatus.USAGE)
