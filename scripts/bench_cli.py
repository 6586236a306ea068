#!/usr/bin/env python3
"""Measure how fast commands start: `bnw --help`, `bnw status` beside a running node, and the whole of `bnw demo`.

`ratio` is the goal divided by the time, so above 1 is within the goal. `ratio_to_bare_python` is the time divided by
that of `python -c pass`, and depends less on the machine. The best of several runs counts, for other work on the
machine only ever slows one down.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from bnw.cli.node_process import NodeProcess
from bnw.node.home import Home
from bnw.node.opening import initialise_home

PYTHON = [sys.executable, "-c", "pass"]
BNW = [sys.executable, "-m", "bnw.cli"]
GOALS = {"bnw --help": 0.25, "bnw status": 0.4, "bnw demo": 20.0}
"""Seconds."""


def best(command: list[str], runs: int) -> float:
    """Seconds of the fastest run. Raises `CalledProcessError` if one fails."""
    times = []
    for _ in range(runs):
        start = time.perf_counter()
        subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
        times.append(time.perf_counter() - start)
    return min(times)


def measure(runs: int) -> list[dict[str, Any]]:
    with tempfile.TemporaryDirectory() as directory:
        home = Home(Path(directory) / "home")
        initialise_home(home)
        with NodeProcess.started(home):
            seconds = {
                "python -c pass": best(PYTHON, runs),
                "bnw --help": best([*BNW, "--help"], runs),
                "bnw status": best([*BNW, "status", "--home", str(home.path)], runs),
            }
    seconds["bnw demo"] = best([*BNW, "demo"], 2)
    return [row(name, took, seconds["python -c pass"]) for name, took in seconds.items()]


def row(name: str, seconds: float, bare: float) -> dict[str, Any]:
    goal = GOALS.get(name)
    return {
        "name": name,
        "seconds": round(seconds, 3),
        "goal": goal,
        "ratio": None if goal is None else round(goal / seconds, 2),
        "ratio_to_bare_python": round(seconds / bare, 1),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=7, help="runs of each short command")
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    options = parser.parse_args()
    rows = measure(options.runs)
    if options.json:
        print(json.dumps({"cli": rows}, indent=2))
        return
    for entry in rows:
        goal = "" if entry["goal"] is None else f"  goal {entry['goal']:g} s, ratio {entry['ratio']:.1f}"
        print(f"{entry['name']:<16} {entry['seconds']:>7.3f} s {entry['ratio_to_bare_python']:>7.1f} x python{goal}")


if __name__ == "__main__":
    main()
