"""The transport within one process, for the simulator and for tests.

Nodes are named; the name is the peer id and `mem:<name>` the address. Everything that travels is an entry in one event
queue, which one task works off in the order of (virtual time, sequence number). Given Trio's MockClock, a seeded
scheduler and a seeded Environment, two runs do the same things at the same times, and `trace` shows it.
"""

from bnw.transport.memory.links import Link
from bnw.transport.memory.network import MemoryNetwork

__all__ = ["Link", "MemoryNetwork"]
