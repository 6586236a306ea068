"""`bnw demo`: what it promises, and that it leaves nothing behind however it ends."""

from __future__ import annotations

import base64
import os
import re
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest
from commands import BNW, bnw, refused, variables

from bnw.cli.demo.search import search

STEPS = 13
ENDING_TIME = 20.0
"""Seconds that processes have to go away after a signal; a loaded machine needs some of them."""


class Demo:
    """A demo that is running, with its temporary files in a directory of its own."""

    def __init__(self, temporary: Path, *arguments: str) -> None:
        self.temporary = temporary
        temporary.mkdir(exist_ok=True)
        self.process = subprocess.Popen(
            [*BNW, "demo", *arguments],
            env=variables(TMPDIR=str(temporary)),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            # Ctrl-C on a terminal reaches all processes of the command's group.
            start_new_session=True,
        )
        self.notes: list[str] = []
        self.nodes: dict[str, int] = {}

    def run_until_step(self, number: int) -> None:
        assert self.process.stderr is not None
        while not (self.notes and self.notes[-1].startswith(f"{number:>2}. ")):
            line = self.process.stderr.readline()
            assert line, f"the demo ended before step {number}: {self.notes}"
            self.notes.append(line)
            if found := re.match(r" ?\d+\. (\w+) runs: process (\d+)", line):
                self.nodes[found[1]] = int(found[2])

    def end(self) -> tuple[int, str, str]:
        out, err = self.process.communicate(timeout=60)
        return self.process.returncode, out, "".join(self.notes) + err

    def left_running(self) -> list[list[str]]:
        found = []
        for process in psutil.process_iter(["cmdline", "status"]):
            words = process.info["cmdline"] or []
            if any(str(self.temporary) in word for word in words) and process.info["status"] != psutil.STATUS_ZOMBIE:
                found.append(words)
        return found

    def is_gone(self) -> bool:
        deadline = time.monotonic() + ENDING_TIME
        while self.left_running() and time.monotonic() < deadline:
            time.sleep(0.1)
        return not self.left_running()


@pytest.fixture
def place() -> Iterator[Path]:
    """A short path: a node that is killed could not take away its socket elsewhere."""
    with tempfile.TemporaryDirectory(prefix="bnw-test-") as name:
        yield Path(name)


@contextmanager
def demo(temporary: Path, *arguments: str) -> Iterator[Demo]:
    running = Demo(temporary, *arguments)
    try:
        yield running
    finally:
        running.process.kill()
        running.process.communicate()


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, object]]:
    """One run for programs, with its homes kept."""
    homes = tmp_path_factory.mktemp("demo") / "homes"
    ended = bnw("demo", "--json", "--keep", homes).succeeded()
    assert ended.err == ""
    return homes, ended.document


def test_the_document_holds_all_that_was_shown(kept: tuple[Path, dict[str, object]]) -> None:
    _, document = kept
    assert {name: type(value).__name__ for name, value in document.items()} == {
        "ok": "bool",
        "manifest_id": "str",
        "invocation_id": "str",
        "receipt_id": "str",
        "status": "str",
        "code": "NoneType",
        "output": "dict",
        "receipt_verified": "bool",
        "carrier_saw_plaintext": "bool",
        "searched_files": "int",
        "searched_bytes": "int",
        "seconds": "float",
    }
    assert (document["ok"], document["status"], document["receipt_verified"]) == (True, "completed", True)
    assert document["carrier_saw_plaintext"] is False
    assert document["output"] == {
        "symbol": "GOOG",
        "month": "2008-09",
        "close": 400.52,
        "currency": "USD",
        "source": "stocks.csv of vega_datasets 0.9.0",
    }
    for name in ("manifest_id", "invocation_id", "receipt_id"):
        assert re.fullmatch(r"[0-9a-f]{64}", str(document[name]))


def test_the_homes_are_kept_and_hold_what_was_claimed(kept: tuple[Path, dict[str, object]]) -> None:
    homes, document = kept
    assert sorted(path.name for path in homes.iterdir()) == ["carrier", "provider", "requester"]
    # Counted again by this test: the carrier holds no word of question or answer, in no file.
    words = (b'"GOOG"', b"2008-09", b"400.52")
    data = {path: path.read_bytes() for path in (homes / "carrier").rglob("*") if path.is_file()}
    assert len(data) == document["searched_files"]
    assert not [path for path, content in data.items() if any(word in content for word in words)]
    assert any(b"finance/lookup" in content for content in data.values())


def test_a_directory_that_is_in_use_is_not_written_into(kept: tuple[Path, dict[str, object]], tmp_path: Path) -> None:
    homes, _ = kept
    refused("demo", "--keep", homes, status=2, code="keep", place=homes, says="is not empty")
    (tmp_path / "file").touch()
    refused("demo", "--keep", tmp_path / "file", status=2, code="keep", place=tmp_path / "file")


def test_the_search_finds_what_leaks_in_every_form(tmp_path: Path) -> None:
    secret = b'{"symbol": "GOOG", "month": "2008-09"}'
    forms: list[Callable[[bytes], bytes]] = [bytes, lambda s: s.hex().encode(), lambda s: s.hex().upper().encode()]
    forms += [lambda s, n=n: base64.b64encode(b"x" * n + s + b"yy") for n in range(3)]
    for number, form in enumerate(forms):
        (tmp_path / str(number)).write_bytes(b"before" + form(secret) + b"after")
    (tmp_path / "innocent").write_bytes(b"GOOG 2008-09")
    assert len(search(tmp_path, [secret]).found) == len(forms)
    assert search(tmp_path, [b"nowhere"]).found == ()


def test_a_person_sees_every_step_and_an_end(place: Path) -> None:
    with demo(place / "tmp") as running:
        status, out, err = running.end()
        assert status == 0, (out, err)
        assert [line[:3] for line in err.splitlines()] == [f"{number:>2}." for number in range(1, STEPS + 1)]
        assert "GOOG closed at 400.52 USD in 2008-09" in out
        assert "neither question nor answer" in out
        assert running.left_running() == []
        assert list(running.temporary.iterdir()) == []


INTERRUPTIONS = [(signal.SIGINT, 1, 1), (signal.SIGINT, 10, 1), (signal.SIGTERM, 4, 1), (signal.SIGINT, 3, 3)]
"""Which signal, after which step, and how often: impatient people press Ctrl-C again."""


def test_ctrl_c_and_sigterm_at_any_moment_leave_nothing_behind(place: Path) -> None:
    def interrupt(case: tuple[signal.Signals, int, int]) -> None:
        number, step, times = case
        with demo(place / f"{number.name}-{step}") as running:
            running.run_until_step(step)
            for _ in range(times):
                os.killpg(running.process.pid, number)
                time.sleep(0.05)
            status, out, err = running.end()
            assert status == (130 if number == signal.SIGINT else 143), (case, err)
            assert "Traceback" not in err, case
            if status == 130:
                assert err.splitlines()[-1] == "bnw: interrupted", case
                assert out == ""
            assert running.is_gone(), (case, running.left_running())
            assert list(running.temporary.iterdir()) == [], case

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(interrupt, INTERRUPTIONS))


def test_ctrl_c_before_anything_was_said_leaves_nothing_behind(place: Path) -> None:
    def interrupt(delay: float) -> None:
        with demo(place / str(delay)) as running:
            # Time is what this is about: during the start there is nothing to wait for.
            time.sleep(delay)
            os.killpg(running.process.pid, signal.SIGINT)
            running.end()
            assert running.is_gone(), (delay, running.left_running())
            assert list(running.temporary.iterdir()) == [], delay

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(interrupt, [0.0, 0.2, 0.5]))


def test_kill_9_leaves_no_process_behind(place: Path) -> None:
    def kill(step: int) -> None:
        with demo(place / str(step)) as running:
            running.run_until_step(step)
            running.process.kill()
            running.process.wait()
            assert running.is_gone(), (step, running.left_running())

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(kill, [1, 10]))


def test_a_step_that_fails_is_one_line_and_leaves_nothing_behind(place: Path) -> None:
    with demo(place / "tmp") as running:
        running.run_until_step(5)
        psutil.Process(running.nodes["provider"]).kill()
        status, out, err = running.end()
        complaints = [line for line in err.splitlines() if line.startswith("bnw: ")]
        assert (status, len(complaints), out) == (3, 1, ""), err
        assert "Traceback" not in err
        assert running.is_gone(), running.left_running()
        assert list(running.temporary.iterdir()) == []
