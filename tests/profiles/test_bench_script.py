"""`scripts/bench` runs what there is and prints ratios, also of benchmarks that it knows nothing of."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

BENCH = Path(__file__).parents[2] / "scripts/bench"
GOALS = {"rows": [{"name": "parse", "per_second": 30, "goal": 20, "ratio": 1.5}, {"name": "read", "ratio": None}]}
FIGURES = {"figures": {"rows": 12.0, "ratio_to_raw_table": 0.25}}


@pytest.fixture
def scripts(tmp_path: Path) -> Path:
    """A directory with the script and two benchmarks of different forms."""
    shutil.copy(BENCH, tmp_path / "bench")
    for name, document in (("goals", GOALS), ("figures", FIGURES)):
        (tmp_path / f"bench_{name}.py").write_text(f"print({json.dumps(document)!r})")
    return tmp_path


def run(scripts: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(scripts / "bench"), *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)


def test_all_benchmarks_are_run_and_their_ratios_printed(scripts: Path) -> None:
    ran = run(scripts)
    assert (ran.returncode, [line.split() for line in ran.stdout.splitlines()]) == (
        0,
        [["figures", "to", "raw", "table", "0.25"], ["goals", "parse", "to", "the", "goal", "of", "20", "1.50"]],
    )


def test_one_can_be_chosen_and_everything_printed_as_json(scripts: Path) -> None:
    assert json.loads(run(scripts, "goals", "--json").stdout) == {"measured": {"goals": GOALS}, "failed": {}}
    assert run(scripts, "--list").stdout == "figures\ngoals\n"
    assert run(scripts, "nonsense").returncode == 2


@pytest.mark.parametrize("program", ["raise SystemExit(3)", "print('no document')"])
def test_one_that_fails_is_named_and_the_others_run(scripts: Path, program: str) -> None:
    (scripts / "bench_a.py").write_text(program)
    ran = run(scripts)
    assert ran.returncode == 1
    assert "bench: a " in ran.stderr
    assert len(ran.stdout.splitlines()) == 2


def test_the_script_is_executable_and_finds_the_benchmarks_of_the_project() -> None:
    listed = subprocess.run([str(BENCH), "--list"], capture_output=True, text=True, timeout=30, check=True).stdout
    assert {"profiles", "store"} <= set(listed.split())
