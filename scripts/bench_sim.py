"""Measure the simulator: `python scripts/bench_sim.py [--json] [--nodes N] [--large N] [--profile]`.

- Deliveries a second of processor time at 1,000 nodes: all entries that arrive while 20 publishers publish 100
  capabilities, starting the nodes included, and the same for gossip messages alone. One process, one core. Without a
  trace, as is said: with one it takes about half as long again.
- Memory per node at 10,000 nodes, of which each holds what 20 publishers publish.

Processor time, not the clock on the wall: other programs on the machine do not count.
"""

from __future__ import annotations

import argparse
import cProfile
import json
import pstats
import resource
import sys
from pathlib import Path
from typing import Any

from bnw.sim.play import play
from bnw.sim.quiet import no_logging
from bnw.sim.scenario import read_scenario

GOAL_RATE = 50_000
GOAL_MEMORY = 200 * 1024

TEMPLATE = """
title = "Bench"
about = "Publishing in a large network."
duration = "{duration}s"
[network]
topology = "random-regular"
degree = {degree}
latency = "20ms"
jitter = "10ms"
identity_records = "roles"
[[nodes]]
role = "carrier"
count = {carriers}
[[nodes]]
role = "publisher"
count = {publishers}
[[publish]]
by = "publisher"
count = {objects}
start = "5s"
every = "1s"
size = 256
"""


def cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


def measure(nodes: int, publishers: int, objects: int, duration: int, degree: int) -> dict[str, Any]:
    text = TEMPLATE.format(
        carriers=nodes - publishers, publishers=publishers, objects=objects, duration=duration, degree=degree
    )
    scenario = read_scenario(text.encode())
    before, began = resident(), cpu()
    played = play(scenario, 1, observe=False)
    seconds = cpu() - began
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    metrics = played.metrics
    return {
        "nodes": nodes,
        "degree": degree,
        "objects": len(played.recorder.objects),
        "coverage": metrics["delivery.coverage"],
        "cpu_seconds": round(seconds, 2),
        "entries": int(metrics["traffic.entries"]),
        "gossip": int(metrics["traffic.gossip"]),
        "first_arrivals": int(metrics["delivery.first"]),
        "entries_per_second": round(metrics["traffic.entries"] / seconds),
        "first_arrivals_per_second": round(metrics["delivery.first"] / seconds),
        "bytes_per_node": round((peak - before) / nodes),
    }


@no_logging()
def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--nodes", type=int, default=1000)
    parser.add_argument("--large", type=int, default=10_000, help="nodes for the memory; 0 leaves it out")
    parser.add_argument("--profile", action="store_true", help="show where the time of the first measurement goes")
    options = parser.parse_args()
    profile = cProfile.Profile()
    if options.profile:
        profile.enable()
    speed = measure(options.nodes, 20, 5, 15, 6)
    profile.disable()
    if options.profile:
        pstats.Stats(profile, stream=sys.stderr).sort_stats("tottime").print_stats(45)
    results = [
        {
            "name": "deliveries",
            "goal": GOAL_RATE,
            "ratio": round(speed["entries_per_second"] / GOAL_RATE, 3),
            **speed,
        }
    ]
    if options.large:
        large = measure(options.large, 20, 1, 15, 4)
        results.append(
            {"name": "memory", "goal": GOAL_MEMORY, "ratio": round(large["bytes_per_node"] / GOAL_MEMORY, 3), **large}
        )
    if options.json:
        print(json.dumps({"results": results}, indent=2))
    else:
        for result in results:
            print(result["name"])
            for key, value in result.items():
                print(f"  {key:28} {value}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
