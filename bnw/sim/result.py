"""A run as JSON: what `bnw simulate --json` prints and `--compare` reads.

All but `cost` follows from the scenario, the seed and the versions; two runs of the same give the same.
"""

from __future__ import annotations

import platform
import resource
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any, Final

import bnw
from bnw.sim.measure import HEAL
from bnw.sim.play import Checked, Played
from bnw.wire.content_id import content_id

FORMAT: Final = "bnw-simulation/1"
DIGITS: Final = 6
"""Significant ones of each number."""
MAX_REPAIRS: Final = 200
"""Listed one by one; heals first."""


@dataclass(frozen=True, slots=True)
class Cost:
    """What a run took on this machine: CPU seconds of this process, and its highest use of memory in bytes."""

    cpu_seconds: float
    peak_memory: int

    @staticmethod
    def so_far() -> Cost:
        used = resource.getrusage(resource.RUSAGE_SELF)
        unit = 1 if sys.platform == "darwin" else 1024
        return Cost(used.ru_utime + used.ru_stime, used.ru_maxrss * unit)


def to_json(played: Played, source: bytes, cost: Cost) -> dict[str, Any]:
    """`source` are the bytes of the scenario file."""
    recorder = played.recorder
    repairs = sorted(recorder.repairs, key=lambda repair: (repair.cause != HEAL, repair.began))
    return {
        "format": FORMAT,
        "scenario": played.scenario.title,
        "scenario_hash": content_id(source).hex(),
        "seed": played.seed,
        "virtual_seconds": rounded(played.until),
        "trace_hash": played.trace.digest.hex(),
        "trace_lines": played.counts["trace_lines"],
        "passed": played.passed,
        "expectations": [expectation_json(item) for item in played.checked],
        "metrics": {name: rounded(value) for name, value in sorted(played.metrics.items())},
        "call_endings": dict(sorted(played.log.endings.items())),
        "look_faults": dict(sorted(played.log.look_faults.items())),
        "repairs": [
            {
                "cause": repair.cause,
                "who": repair.who,
                "at": rounded(repair.began),
                "seconds": None if repair.ended is None else rounded(repair.ended - repair.began),
            }
            for repair in repairs[:MAX_REPAIRS]
        ],
        "checks_shared": {"asked": played.memory.asked, "known": played.memory.known},
        "versions": versions(),
        "cost": {"cpu_seconds": round(cost.cpu_seconds, 2), "peak_memory": cost.peak_memory},
    }


def expectation_json(item: Checked) -> dict[str, Any]:
    return {
        "metric": item.expect.metric,
        "at": rounded(item.at),
        "at_least": item.expect.at_least,
        "at_most": item.expect.at_most,
        "value": None if item.value is None else rounded(item.value),
        "met": item.met,
    }


def versions() -> Mapping[str, str]:
    """What a trace hash depends on besides scenario and seed."""
    return {
        "bnw": bnw.__version__,
        "python": platform.python_version(),
        **{name: version(name) for name in ("anyio", "trio", "cbor2", "blake3", "pynacl")},
    }


def rounded(value: float) -> float:
    """To `DIGITS` significant digits, so that figures can be compared as text."""
    number = float(f"{value:.{DIGITS}g}")
    return int(number) if number.is_integer() and abs(number) < 1e15 else number
