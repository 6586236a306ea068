"""`bnw demo`, the first thing a newcomer runs: real processes, and none left however it ends."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from bnw.cli.demo import scene
from bnw.cli.demo.example import Example, find_example
from bnw.cli.demo.search import search
from tests.cli.terminal import environment

GONE = 15.0
"""Seconds within which every process of an interrupted demo must have ended."""


def demo(*options: str, cwd: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "bnw.cli", "demo", *options]
    return subprocess.run(
        command, capture_output=True, text=True, timeout=90, env=environment(**variables), cwd=cwd, check=False
    )


def test_the_main_job_completes_and_the_carrier_reads_nothing(tmp_path: Path) -> None:
    ended = demo("--json", "--keep", str(tmp_path / "homes"), cwd=Path(__file__).parent)
    value = json.loads(ended.stdout)
    assert ended.returncode == 0
    assert value["ok"] is True
    assert value["status"] == "completed"
    assert value["receipt_verified"] is True
    assert value["carrier_saw_plaintext"] is False
    assert (value["output"]["symbol"], value["output"]["month"], value["output"]["close"]) == (
        "GOOG",
        "2008-09",
        400.52,
    )
    assert value["seconds"] > 0
    assert len(value["manifest_id"]) == len(value["invocation_id"]) == 64
    assert sorted(path.name for path in (tmp_path / "homes").iterdir()) == ["carrier", "provider", "requester"]
    # The provider's home does hold what it was asked, in a database or a file: the manifest of the call at least.
    carrier, provider = tmp_path / "homes" / "carrier", tmp_path / "homes" / "provider"
    invocation = bytes.fromhex(value["invocation_id"])
    assert search(provider, [invocation]).found
    assert not search(carrier, [b'"2008-09"', b"400.52", invocation]).found


def test_it_tells_a_person_each_step_and_the_price(tmp_path: Path) -> None:
    ended = demo(cwd=Path(__file__).parent, TMPDIR=str(tmp_path))
    assert ended.returncode == 0
    assert "GOOG closed at 400.52 USD in 2008-09" in ended.stdout
    assert "neither question nor answer" in ended.stdout
    for words in ("carrier runs", "provider published", "requester asks", "answered: completed"):
        assert words in ended.stderr
    assert list(tmp_path.iterdir()) == [], "its homes are gone"


def test_a_directory_in_use_is_not_touched(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("mine")
    ended = demo("--keep", str(tmp_path), cwd=Path(__file__).parent)
    assert ended.returncode == 2
    assert "is not empty" in ended.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]


@contextmanager
def running_demo(tmp_path: Path, until: str) -> Iterator[tuple[subprocess.Popen[str], list[psutil.Process]]]:
    """A demo that has just said `until`, and the processes that it has started."""
    process = subprocess.Popen(
        [sys.executable, "-m", "bnw.cli", "demo"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        env=environment(TMPDIR=str(tmp_path)),
    )
    try:
        assert process.stderr is not None
        for line in process.stderr:
            if until in line:
                break
        else:
            pytest.fail(f"the demo never said {until!r}")
        yield process, psutil.Process(process.pid).children(recursive=True)
    finally:
        process.kill()
        process.communicate()


@pytest.mark.parametrize("until", ["carrier runs", "requester runs", "requester asks"])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_however_it_is_ended_no_process_is_left(tmp_path: Path, until: str, number: signal.Signals) -> None:
    with running_demo(tmp_path, until) as (process, children):
        assert children
        process.send_signal(number)
        _, alive = psutil.wait_procs([psutil.Process(process.pid), *children], timeout=GONE)
        assert alive == []
    if number != signal.SIGKILL:
        assert list(tmp_path.iterdir()) == [], "its homes are gone"


def test_a_failing_step_leaves_no_process(tmp_path: Path) -> None:
    broken = Example(tmp_path / "no example here")
    told: list[str] = []
    before = set(psutil.Process().children(recursive=True))
    with pytest.raises(FileNotFoundError):
        scene.play(tmp_path / "homes", broken, told.append)
    assert [line for line in told if "requester runs" in line]
    assert set(psutil.Process().children(recursive=True)) == before


def test_the_search_finds_a_secret_in_every_form_it_could_take(tmp_path: Path) -> None:
    import base64

    secret = b'{"symbol": "GOOG", "month": "2008-09"}'
    forms = [secret, secret.hex().encode(), *(base64.b64encode(b"x" * shift + secret + b"tail") for shift in range(3))]
    for number, form in enumerate(forms):
        (tmp_path / str(number)).write_bytes(b"before " + form + b" after")
    (tmp_path / "innocent").write_bytes(b"nothing to see")
    result = search(tmp_path, [secret])
    assert [path.name for path in result.found] == ["0", "1", "2", "3", "4"]
    assert result.files == 6


def test_the_example_is_found_in_a_source_tree() -> None:
    assert find_example().descriptor.is_file()
