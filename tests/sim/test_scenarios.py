"""`bnw simulate`: the same again from a seed, scenarios that hold, and files that are refused before anything runs."""

from __future__ import annotations

import dataclasses
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from bnw.sim.metrics import METRICS
from bnw.sim.scenario import load_scenario, schema
from bnw.wire.errors import LocalError

ROOT = Path(__file__).parent.parent.parent
SCENARIOS = sorted((ROOT / "simulations").glob("*.toml"))
SMOKE = ROOT / "simulations" / "smoke.toml"


def simulate(file: Path, *options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "bnw.cli", "simulate", str(file), *options]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)


def played(file: Path, seed: int, *options: str) -> dict[str, Any]:
    ended = simulate(file, "--seed", str(seed), "--json", *options)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    value: dict[str, Any] = json.loads(ended.stdout)
    return value


def test_the_same_seed_gives_the_same_trace_and_another_seed_another(tmp_path: Path) -> None:
    first = played(SMOKE, 7, "--trace", str(tmp_path / "first"))
    again = played(SMOKE, 7, "--trace", str(tmp_path / "again"))
    other = played(SMOKE, 8)
    assert first["trace_hash"] == again["trace_hash"]
    assert (tmp_path / "first").read_bytes() == (tmp_path / "again").read_bytes()
    assert other["trace_hash"] != first["trace_hash"]
    assert first["passed"] is True
    assert first["metrics"]["calls.run_twice"] == 0


def test_an_expectation_that_does_not_hold_decides_the_exit_status(tmp_path: Path) -> None:
    file = tmp_path / "hopeless.toml"
    file.write_text(SMOKE.read_text() + '\n[[expect]]\nmetric = "delivery.p50"\nat_most = 0.000001\n')
    ended = simulate(file, "--json")
    assert ended.returncode == 1
    unmet = [item["metric"] for item in json.loads(ended.stdout)["expectations"] if not item["met"]]
    assert unmet == ["delivery.p50"]


@pytest.mark.parametrize("file", SCENARIOS, ids=[file.stem for file in SCENARIOS])
def test_a_scenario_of_the_library_can_be_read_and_says_what_it_shows(file: Path) -> None:
    scenario = load_scenario(file)
    assert len(scenario.about) > 100
    assert scenario.expect


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (("[network]", "[netwrok]"), "network"),
        (("latency =", "latencey ="), "latency"),
        (('"delivery.p99"', '"delivery.p98"'), "delivery.p9"),
        (("count = 12", "count = 0"), "count"),
        (("count = 12", "count = 100000000"), "count"),
        (("degree = 4", "degree = 400"), "degree"),
        (('duration = "60s"', 'duration = "60 parsecs"'), "duration"),
        (('title = "Smoke"', "title = "), "line 1"),
    ],
)
def test_a_file_that_cannot_be_meant_is_refused_with_one_line(
    tmp_path: Path, change: tuple[str, str], complaint: str
) -> None:
    file = tmp_path / "wrong.toml"
    text = SMOKE.read_text()
    assert change[0] in text
    file.write_text(text.replace(*change, 1))
    with pytest.raises(LocalError) as caught:
        load_scenario(file)
    assert caught.value.exit_status == 2
    assert complaint in str(caught.value)
    assert str(file) in str(caught.value)


def test_the_page_names_every_key_and_metric() -> None:
    page = (ROOT / "docs" / "simulation.md").read_text()
    tables = [item for item in vars(schema).values() if dataclasses.is_dataclass(item) and isinstance(item, type)]
    keys = {field.name for table in tables for field in dataclasses.fields(table) if "help" in field.metadata}
    assert len(keys) > 40
    assert [name for name in sorted({*keys, *METRICS}) if f"`{name}`" not in page] == []
