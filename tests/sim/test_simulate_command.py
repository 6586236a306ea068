"""`bnw simulate` as people and scripts use it: sweeps, comparisons, a bar while it runs, and how it ends."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import sys
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path
from typing import Any

import psutil
import pytest

from bnw.sim.compare import compare_results, read_result
from bnw.sim.scenario import load_scenario

ROOT = Path(__file__).parent.parent.parent
SMALL = """
title = "Small"
about = "A ring of three in which one publishes."
duration = "12s"
[network]
topology = "ring"
[[nodes]]
role = "carrier"
count = 2
[[nodes]]
role = "publisher"
count = 1
[[publish]]
by = "publisher"
[[expect]]
metric = "delivery.p50"
at_most = 0.1
"""
LONG = SMALL.replace('"12s"', '"10h"')


@pytest.fixture
def small(tmp_path: Path) -> Path:
    file = tmp_path / "small.toml"
    file.write_text(SMALL)
    return file


def command(*words: object) -> list[str]:
    return [sys.executable, "-m", "bnw.cli", "simulate", *map(str, words)]


def simulate(*words: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command(*words), capture_output=True, text=True, timeout=120, check=False)


def test_a_sweep_gives_one_table_and_one_picture(small: Path, tmp_path: Path) -> None:
    page = tmp_path / "sweep.html"
    ended = simulate(small, "--sweep", "network.latency=1ms,0.2s", "--seeds", 2, "--report", page)
    assert ended.returncode == 1, "with 200 ms, half take longer than 100"
    lines = ended.stdout.splitlines()
    assert lines[0].split() == ["network.latency", "1ms", "0.2s"]
    assert ["failed", "seeds", "none", "1,", "2"] in [line.split() for line in lines]
    assert "medians of 2 seeds" in lines[-1]
    assert ended.stderr.count("\n") == 4, "one line a run"
    text = page.read_text()
    assert text.count("<svg") == 1 and "In 2 of 4 runs an expectation did not hold." in text


def test_seeds_alone_are_a_sweep_too(small: Path) -> None:
    ended = simulate(small, "--seeds", 2, "--json")
    assert ended.returncode == 0, ended.stderr
    value = json.loads(ended.stdout)
    assert (value["key"], value["seeds"], len(value["rows"])) == (None, [1, 2], 1)


def test_a_comparison_shows_what_changed_from_the_first_to_the_second(small: Path, tmp_path: Path) -> None:
    before, after = tmp_path / "before.json", tmp_path / "after.json"
    before.write_text(simulate(small, "--json").stdout)
    value = json.loads(before.read_text())
    value["metrics"]["delivery.p50"] = 5.0
    value["expectations"][0]["met"] = False
    value["trace_hash"] = "00" * 32
    value["versions"]["trio"] = "99"
    after.write_text(json.dumps(value))
    worse = simulate("--compare", before, after)
    assert worse.returncode == 1, "an expectation fails now that did not"
    row = next(line.split() for line in worse.stdout.splitlines() if line.startswith("delivery.p50"))
    assert row[1:3] == [f"{read_result(before)['metrics']['delivery.p50']:g}", "5"]
    assert "FAILED now, not before: delivery.p50, at most 0.1" in worse.stdout
    assert "note: trio: " in worse.stdout and "99 after" in worse.stdout
    better = simulate("--compare", after, before)
    assert better.returncode == 0, "what failed before and does not now is no reason to fail"
    same = simulate("--compare", before, before)
    assert (same.returncode, same.stdout.strip()) == (0, "the traces are the same")


@pytest.mark.parametrize(
    "words",
    [
        ["--sweep", "network.latency=1ms", "--trace", "x"],
        ["--seeds", "2", "--seed", "1"],
        ["--shrink", "--report", "x"],
        ["--compare", "x", "--until", "1s"],
    ],
)
def test_options_that_mean_nothing_together_are_refused(small: Path, words: list[str]) -> None:
    ended = simulate(small, *words)
    assert ended.returncode == 2
    assert f"{words[0]} does nothing with {words[-2]}" in ended.stderr


def test_a_report_that_cannot_be_written_is_said_before_anything_runs(tmp_path: Path) -> None:
    (tmp_path / "long.toml").write_text(LONG)
    for place in (tmp_path / "none" / "out.html", tmp_path):
        ended = simulate(tmp_path / "long.toml", "--report", place)
        assert ended.returncode == 2
        assert ended.stderr.startswith(f"bnw: {place}: ") and ended.stderr.count("\n") == 1


@pytest.mark.parametrize("to_all", [True, False], ids=["Ctrl-C", "SIGTERM"])
def test_an_interrupted_sweep_leaves_no_process(tmp_path: Path, to_all: bool) -> None:
    (tmp_path / "long.toml").write_text(LONG)
    process = subprocess.Popen(
        command(tmp_path / "long.toml", "--seeds", "4"), stderr=subprocess.PIPE, start_new_session=True
    )
    parent = psutil.Process(process.pid)
    while not any("spawn_main" in command_line(child) for child in parent.children(recursive=True)):
        assert process.poll() is None
    children = parent.children(recursive=True)
    if to_all:
        os.killpg(process.pid, signal.SIGINT)
    else:
        process.terminate()
    _, said = process.communicate(timeout=30)
    assert process.returncode == (130 if to_all else 128 + signal.SIGTERM)
    assert b"Traceback" not in said, said
    _, alive = psutil.wait_procs(children, timeout=10)
    assert alive == []


def command_line(process: psutil.Process) -> str:
    try:
        return " ".join(process.cmdline())
    except psutil.Error:  # it has just ended
        return ""


def test_a_bar_on_a_terminal_shows_virtual_and_real_time(small: Path) -> None:
    ours, theirs = pty.openpty()
    process = subprocess.Popen(command(small), stdout=subprocess.DEVNULL, stderr=theirs)
    os.close(theirs)
    said = b""
    try:
        while data := os.read(ours, 4096):
            said += data
    except OSError:
        pass  # how Linux says that nobody holds the other end any more
    os.close(ours)
    assert process.wait() == 0
    assert b"Small" in said
    assert b"12 s virtual" in said and b"real" in said


def test_a_shrunk_scenario_is_printed_and_can_be_played(small: Path, tmp_path: Path) -> None:
    small.write_text(SMALL.replace("at_most = 0.1", "at_most = 0.000001"))
    value = json.loads(simulate(small, "--shrink", "--json").stdout)
    smaller = tmp_path / "smaller.toml"
    smaller.write_text(value["toml"])
    assert load_scenario(smaller).honest == 2
    assert simulate(smaller).returncode == 1


def script(name: str) -> Any:
    loader = SourceFileLoader(name.replace("-", "_"), str(ROOT / "scripts" / name))
    spec = spec_from_loader(loader.name, loader)
    assert spec is not None
    module = module_from_spec(spec)
    loader.exec_module(module)
    return module


def test_the_last_releases_figures_are_results_of_the_librarys_scenarios() -> None:
    files = sorted((ROOT / "simulations" / "figures").glob("*.json"))
    assert len(files) >= 2
    for file in files:
        assert compare_results(read_result(file), read_result(file))["changed"] == []
        assert read_result(file)["scenario"] == load_scenario(ROOT / "simulations" / f"{file.stem}.toml").title


def test_changed_figures_are_shown_and_only_another_format_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    figures = script("figures")
    value = json.loads((ROOT / "simulations" / "figures" / "smoke.json").read_text())
    value["metrics"]["delivery.p50"] *= 2
    value["trace_hash"] = "00" * 32
    monkeypatch.setattr(figures, "FIGURES", tmp_path)
    monkeypatch.setattr(
        figures, "figures_of", lambda name: {**value, "metrics": {**value["metrics"], "delivery.p50": 1}}
    )
    monkeypatch.setattr(sys, "argv", ["figures"])
    (tmp_path / "smoke.json").write_text(json.dumps({**value, "trace_hash": "11" * 32}))
    assert figures.main() == 0
    assert "delivery.p50" in capsys.readouterr().out
    (tmp_path / "smoke.json").write_text(json.dumps({**value, "trace_format": "bnw-trace/0"}))
    assert figures.main() == 1
    assert "FAILED: the format was bnw-simulation/1, bnw-trace/0" in capsys.readouterr().out


def test_the_factor_that_the_document_states_is_the_one_that_is_measured_against() -> None:
    page = " ".join((ROOT / "docs" / "simulation.md").read_text().split())
    assert f"the median of delivery is **within a factor of {script('compare-with-real').FACTOR:g}**" in page
