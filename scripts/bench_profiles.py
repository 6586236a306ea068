#!/usr/bin/env python3
"""Measure the profile layer: documents a second, beside the goals.

    scripts/bench_profiles.py [--seconds S] [--json]

`measure` is there for `scripts/bench` to call.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from bnw.profiles.capability.parse import parse  # noqa: E402 - the path comes first
from bnw.profiles.json_reader import read_json  # noqa: E402
from bnw.profiles.openwop.plugin import OpenWopPlugin  # noqa: E402
from bnw.profiles.service import ProfileService  # noqa: E402
from bnw.profiles.starter import starter_document  # noqa: E402
from bnw.wire.content_id import content_id  # noqa: E402

SAMPLES = ROOT / "tests/profiles/samples"
SCHEMA = b'{"type":"object","required":["symbol"],"properties":{"symbol":{"type":"string","pattern":"^[A-Z]{1,5}$"}}}'
GOALS = {
    "parse the seed's example": 20_000,
    "parse a 5 KB OpenWOP document": 1_000,
    "check an input in the worker": 1_000,
}


def measure(seconds: float = 1.0) -> list[dict[str, Any]]:
    """One row for each thing measured: `name`, `per_second`, `bytes`, `goal` (or None) and `ratio` to the goal."""
    example = (SAMPLES / "capability.json").read_bytes()
    # The sample without its indentation is about 5 KB, as hosts serve it.
    host = json.dumps(json.loads((SAMPLES / "openwop-host.json").read_bytes()), separators=(",", ":")).encode()
    minimal = (SAMPLES / "openwop-minimal.json").read_bytes()
    openwop = OpenWopPlugin()
    document = json.loads(example)
    document["operation"]["input"]["schema"] = content_id(SCHEMA).hex()
    descriptor, schemas, data = json.dumps(document).encode(), {content_id(SCHEMA): SCHEMA}, b'{"symbol":"ABC"}'
    broken = example.replace(b'"privacy"', b'"privcy"')
    with ProfileService() as service:
        work: list[tuple[str, int, Callable[[], object]]] = [
            ("read the seed's example as strict JSON", len(example), lambda: read_json(example)),
            ("parse the seed's example", len(example), lambda: parse(example)),
            ("report the faults of a misspelt one", len(broken), lambda: parse(broken)),
            ("parse a minimal OpenWOP document", len(minimal), lambda: openwop.parse(minimal)),
            ("parse a 5 KB OpenWOP document", len(host), lambda: openwop.parse(host)),
            ("build a starter document", len(SCHEMA), lambda: starter_document(SCHEMA)),
            ("describe a known descriptor", len(descriptor), lambda: service.describe(descriptor)),
            (
                "check an input in the worker",
                len(data),
                lambda: service.check_input(descriptor, schemas, "application/json", data),
            ),
        ]
        return [_row(name, size, _rate(run, seconds)) for name, size, run in work]


def _rate(run: Callable[[], object], seconds: float) -> float:
    """Runs a second: the best of five shares of the time, for other work on the machine only ever slows a run down."""
    run()
    best = 0.0
    for _ in range(5):
        count, start = 0, time.perf_counter()
        while (elapsed := time.perf_counter() - start) < seconds / 5:
            for _ in range(20):
                run()
            count += 20
        best = max(best, count / elapsed)
    return best


def _row(name: str, size: int, rate: float) -> dict[str, Any]:
    goal = GOALS.get(name)
    return {
        "name": name,
        "per_second": round(rate),
        "bytes": size,
        "goal": goal,
        "ratio": goal and round(rate / goal, 2),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=1.0, help="time for each row")
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    options = parser.parse_args()
    rows = measure(options.seconds)
    if options.json:
        print(json.dumps({"profiles": rows}, indent=2))
        return
    print(f"{'':40} {'bytes':>6} {'a second':>10} {'goal':>8} {'ratio':>6}")
    for row in rows:
        goal = f"{row['goal']:>8,} {row['ratio']:>6.1f}" if row["goal"] else ""
        print(f"{row['name']:40} {row['bytes']:>6,} {row['per_second']:>10,} {goal}")


if __name__ == "__main__":
    main()
