"""The fuzz and the benchmark run: a short one here, the long ones by hand and in CI."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

SCRIPTS = Path(__file__).parents[2] / "scripts"


def run(script: str, *arguments: str) -> str:
    command = [sys.executable, str(SCRIPTS / script), *arguments]
    result = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout


def test_a_short_fuzz_finds_no_fault() -> None:
    out = run("fuzz", "--documents", "6000", "--seed", "42")
    assert out.startswith("6,000 documents in ")
    assert "no fault" in out


def test_the_benchmark_reports_rates_goals_and_ratios() -> None:
    rows = {row["name"]: row for row in json.loads(run("bench_profiles.py", "--seconds", "0.05", "--json"))["profiles"]}
    assert rows["parse the seed's example"]["goal"] == 20_000
    assert rows["parse a 5 KB OpenWOP document"]["goal"] == 1_000
    assert all(row["per_second"] > 0 for row in rows.values())
