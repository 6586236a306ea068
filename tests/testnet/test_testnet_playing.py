"""A scenario file, played by real processes: the simulator's workload, its recorder, its expectations."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
from pathlib import Path

import pytest

from bnw.cli.testnet import plan
from bnw.cli.testnet.playing import play_for_real
from bnw.cli.testnet.possible import NOT_SEEN, possible_part
from bnw.cli.testnet.state import NetDirectory
from bnw.sim.metrics import METRICS
from bnw.sim.scenario import load_scenario, read_scenario
from bnw.wire.errors import LocalError
from tests.cli.terminal import environment
from tests.testnet.terminal import command, processes_in, testnet

TROUBLED = Path(__file__).with_name("troubled.toml")


def test_every_trouble_that_processes_can_have_is_had_and_repaired(directory: Path, tmp_path: Path) -> None:
    page = tmp_path / "out.html"
    ended = testnet(directory, str(TROUBLED), "--seed", "3", "--json", "--report", str(page))
    assert ended.status == 0, (ended.out, ended.err)
    value, metrics = ended.json, ended.json["metrics"]
    judged = {item["metric"]: item["met"] for item in value["expectations"]}
    assert [item["met"] for item in value["expectations"]] == [True, True, True, True, None]
    assert judged["traffic.redundancy"] is None, "real nodes do not show it, and nobody makes a number up"
    said = "\n".join(value["not_applied"])
    assert all(words in said for words in ("spam: left out", "late: a late node", "redundancy: not judged"))
    assert metrics["nodes.running"] == metrics["nodes.honest"] == 5
    assert metrics["delivery.objects"] == 6, "two by each carrier, and the provider's manifest and offer"
    assert metrics["delivery.first"] == 6 * 4, "each reached each of the others once"
    assert metrics["delivery.coverage"] == metrics["catalog.views"] == 1
    assert 0.01 <= metrics["delivery.p50"] < 10, "no faster than the link, whose clock is not the carriers'"
    assert metrics["heal.max"] > 0
    assert metrics["calls.wrong"] == metrics["calls.run_twice"] == metrics["fetch.wrong"] == 0
    assert metrics["traffic.bytes"] > 10_000
    text = page.read_text()
    assert "This was no simulation" in text
    assert "Not as in the file" in text and "[[adversary]] spam: left out" in text
    assert "All 4 expectations held. 1 could not be judged." in text
    # Every metric is either measured, or there is a reason why not.
    assert {*metrics, *NOT_SEEN} == set(METRICS)
    assert not set(metrics) & set(NOT_SEEN)
    assert processes_in(directory) == []
    assert not directory.exists()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_however_a_play_is_ended_nothing_is_left(directory: Path, number: signal.Signals) -> None:
    process = subprocess.Popen(
        command(str(TROUBLED)), stderr=subprocess.PIPE, env=environment(BNW_TESTNET=str(directory))
    )
    assert process.stderr is not None
    for line in process.stderr:
        if b"playing" in line:
            break
    assert len(processes_in(directory)) == 4, "all but the late one"
    process.send_signal(number)
    _, said = process.communicate(timeout=20)
    assert b"Traceback" not in said
    if number == signal.SIGKILL:
        # Nobody could clean up; the next command does.
        assert testnet(directory, "down").status == 0
    else:
        assert process.returncode == 130
    assert processes_in(directory) == []
    assert not directory.exists()


def test_a_bar_on_a_terminal_says_what_goes_on(directory: Path, tmp_path: Path) -> None:
    file = tmp_path / "pair.toml"
    file.write_text('title = "Pair"\nabout = "Two."\nduration = "2s"\n[[nodes]]\nrole = "a"\ncount = 2\n')
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        command(str(file)), stdout=subprocess.DEVNULL, stderr=theirs, env=environment(BNW_TESTNET=str(directory))
    )
    os.close(theirs)
    said = b""
    try:
        while data := os.read(ours, 4096):
            said += data
    except OSError:
        pass  # how Linux says that nobody holds the other end any more
    os.close(ours)
    assert process.wait() == 0
    for words in (b"Pair: starting 2 nodes", b"Pair: waiting until all are connected", b"Pair: playing 2 seconds"):
        assert words in said
    assert b"2 of 2" in said
    assert not directory.exists()


def test_a_bad_file_is_refused_before_anything_runs(directory: Path, tmp_path: Path) -> None:
    (tmp_path / "bad.toml").write_text(TROUBLED.read_text().replace("share = 0.4", "shar = 0.4"))
    ended = testnet(directory, str(tmp_path / "bad.toml"))
    assert ended.status == 2
    assert "unknown key 'shar' (did you mean 'share'?)" in ended.complaint
    assert not directory.exists()


def test_more_real_nodes_than_memory_are_refused(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plan, "available_memory", lambda: 400 * 1024**2)
    with pytest.raises(LocalError, match=r"troubled.toml: 5 nodes take 0\.4 GiB, 90 MiB each; 0\.4 GiB are available"):
        play_for_real(
            load_scenario(TROUBLED),
            1,
            NetDirectory(directory),
            place=TROUBLED.name,
            tell=lambda text: None,
            progress=lambda now, end: None,
        )
    assert not directory.exists()


def test_more_real_nodes_than_a_machine_can_run_are_refused(directory: Path, tmp_path: Path) -> None:
    file = tmp_path / "many.toml"
    file.write_text('title = "Many"\nabout = "Too many."\nduration = "2s"\n[[nodes]]\nrole = "a"\ncount = 501\n')
    ended = testnet(directory, str(file))
    assert ended.status == 2
    assert f"{file}: 501 nodes on one machine (at most 500 are possible; `bnw simulate` runs more)" in ended.complaint
    assert not directory.exists()


def test_everything_that_is_left_out_is_said() -> None:
    scenario = read_scenario(
        b"""
title = "All that cannot be"
about = "Everything."
duration = "60s"
network = {gossip_loss = 0.1, message_cost = 40, identity_records = "roles"}
nodes = [{role = "a", count = 10, clock_drift = 50, write_time = "10ms"}]
provide = [{by = "a", renew = "10s"}]
crash = [{role = "a", at = "5s", unsynced = "1s"}]
clock = [{role = "a", at = "5s", by = "1m"}]
partition = [{at = "5s", heal = "9s"}]
adversary = [{kind = "replay", count = 2}]
"""
    )
    possible, said = possible_part(scenario)
    assert (possible.adversary, possible.clock) == ((), ())
    assert len(said) == 10
    for words in ("replay", "clock of a process", "gossip_loss", "message_cost", "identity_records", "clock_drift"):
        assert any(words in line for line in said), words
    for words in ("write_time", "unsynced", "new connection", "renew"):
        assert any(words in line for line in said), words


def test_a_plain_scenario_leaves_nothing_out() -> None:
    assert possible_part(load_scenario(Path(__file__).with_name("twenty.toml")))[1] == []
