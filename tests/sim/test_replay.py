"""`bnw simulate --replay`: a run beside the trace of another one, and where the two part."""

from __future__ import annotations

import json
import logging
from io import BytesIO
from pathlib import Path

import pytest
from click.testing import CliRunner

from bnw.cli.main import main
from bnw.sim.replay import CONTEXT, Difference, Replay

SMALL = """
title = "small"
about = "two nodes"
duration = "20s"
[[nodes]]
role = "node"
count = 2
[[publish]]
by = "node"
"""


def compared(expected: bytes, *found: bytes, is_whole: bool = True) -> Difference | None:
    replay = Replay(BytesIO(expected))
    for part in found:
        replay.write(part)
    replay.finish(is_whole=is_whole)
    return replay.difference


@pytest.mark.parametrize("found", [(b"a\nb\nc\n",), (b"a\nb", b"\nc\n"), (b"", b"a\n", b"b\nc", b"\n")])
def test_equal_traces_have_no_difference_however_they_are_cut(found: tuple[bytes, ...]) -> None:
    assert compared(b"a\nb\nc\n", *found) is None


def test_the_first_line_that_differs_is_told_with_what_was_before_it() -> None:
    lines = [b"%d" % number for number in range(20)]
    expected = b"\n".join(lines) + b"\n"
    difference = compared(expected, expected.replace(b"\n12\n", b"\ntwelve\n").replace(b"\n15\n", b"\nfifteen\n"))
    assert difference == Difference(13, tuple(str(number) for number in range(12 - CONTEXT, 12)), "12", "twelve")


def test_a_trace_that_ends_earlier_differs_in_the_line_after_its_end() -> None:
    assert compared(b"a\n", b"a\nb\n") == Difference(2, ("a",), None, "b")
    assert compared(b"a\nb\n", b"a\n") == Difference(2, ("a",), "b", None)


def test_a_run_that_was_stopped_early_need_not_reach_the_end() -> None:
    assert compared(b"a\nb\n", b"a\n", is_whole=False) is None


def simulate(*arguments: object) -> tuple[int, str]:
    ended = CliRunner().invoke(main, ["simulate", *map(str, arguments)])
    return ended.exit_code, ended.output


def test_the_command_finds_what_another_seed_changed_first(tmp_path: Path) -> None:
    scenario, trace = tmp_path / "small.toml", tmp_path / "trace"
    scenario.write_text(SMALL)
    assert simulate(scenario, "--seed", 1, "--trace", trace)[0] == 0
    status, out = simulate(scenario, "--seed", 1, "--replay", trace)
    assert (status, "the same as the trace in all" in out) == (0, True)
    status, out = simulate(scenario, "--seed", 1, "--replay", trace, "--until", "10s", "--json")
    assert (status, json.loads(out)["replay"]) == (0, None)
    status, out = simulate(scenario, "--seed", 2, "--replay", trace, "--json")
    difference = json.loads(out)["replay"]
    assert (status, difference["line"] > 1, difference["expected"] != difference["found"]) == (1, True, True)


def test_a_trace_that_cannot_be_read_is_said_before_anything_runs(tmp_path: Path) -> None:
    scenario = tmp_path / "small.toml"
    scenario.write_text(SMALL)
    status, out = simulate(scenario, "--replay", tmp_path / "nothing", "--json")
    assert (status, json.loads(out)["error"]["code"]) == (2, "unreadable")


def test_a_simulation_gives_logging_back_as_it_was(tmp_path: Path) -> None:
    scenario = tmp_path / "small.toml"
    scenario.write_text(SMALL)
    before = logging.root.manager.disable
    assert simulate(scenario)[0] == 0
    assert logging.root.manager.disable == before
