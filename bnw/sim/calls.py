"""What became of the calls, looks and follows of a scenario: kept by the workload, read by the metrics."""

from __future__ import annotations

from array import array
from collections import Counter
from dataclasses import dataclass, field


@dataclass(slots=True)
class CallLog:
    made: int = 0
    completed: int = 0
    wrong: int = 0
    """Completed, but not with the answer of this call."""
    forgotten: int = 0
    """A handler ran the call, and its receipt knows of no beginning."""
    unsettled: int = 0
    contradicted: int = 0
    """Of the calls that nodes take up again (`bnw.sim.taking_up`); counted when the metrics are asked for."""
    seconds: array[float] = field(default_factory=lambda: array("d"))
    endings: Counter[str] = field(default_factory=Counter)
    """How calls ended otherwise, by status and code."""
    runs: Counter[bytes] = field(default_factory=Counter)
    """How often a handler was run, by id of the invocation; it outlasts crashes."""
    looks: int = 0
    found: int = 0
    wrong_bytes: int = 0
    look_seconds: array[float] = field(default_factory=lambda: array("d"))
    look_faults: Counter[str] = field(default_factory=Counter)
    attacks: int = 0
    """What adversaries have sent."""
