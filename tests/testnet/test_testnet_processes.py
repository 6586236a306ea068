"""A process is known by its id and the moment it started; nobody else's is ever signalled."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace

import psutil
import pytest

from bnw.cli.testnet import processes
from bnw.cli.testnet.processes import Mark, is_alive, is_paused, mark_of, send, wait_until_ended


@pytest.fixture
def sleeper() -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(["sleep", "60"])
    yield process
    process.kill()
    process.wait()


def marked(process: subprocess.Popen[bytes]) -> Mark:
    mark = mark_of(process.pid)
    assert mark is not None
    return mark


def test_a_living_process_is_alive_and_an_ended_one_is_not(sleeper: subprocess.Popen[bytes]) -> None:
    mark = marked(sleeper)
    assert is_alive(mark)
    sleeper.kill()
    # Nobody has asked how it ended yet, so the system still keeps its id.
    assert wait_until_ended([mark], 5) == []
    assert mark_of(sleeper.pid) is None
    sleeper.wait()
    assert not is_alive(mark)


def test_a_process_that_got_the_id_of_an_older_one_is_a_stranger(sleeper: subprocess.Popen[bytes]) -> None:
    older = replace(marked(sleeper), started="another boot/1")
    assert not is_alive(older)
    assert not send(older, signal.SIGKILL)
    processes.kill(older)
    assert sleeper.poll() is None
    assert is_alive(marked(sleeper))
    assert not is_paused(marked(sleeper))


def test_two_processes_have_different_marks(sleeper: subprocess.Popen[bytes]) -> None:
    assert marked(sleeper) != mark_of(os.getpid())


def test_a_process_without_an_id_is_not_there() -> None:
    process = subprocess.Popen(["true"])
    process.wait()
    assert mark_of(process.pid) is None
    assert not send(Mark(process.pid, "never"), signal.SIGTERM)


def test_one_that_is_held_is_alive_and_paused(sleeper: subprocess.Popen[bytes]) -> None:
    mark = marked(sleeper)
    assert send(mark, signal.SIGSTOP)
    os.waitid(os.P_PID, sleeper.pid, os.WSTOPPED | os.WNOWAIT)
    assert is_alive(mark)
    assert is_paused(mark)
    send(mark, signal.SIGCONT)


def test_killing_ends_what_the_process_started_even_in_a_session_of_its_own() -> None:
    code = "import subprocess, time; print(subprocess.Popen(['sleep', '60'], start_new_session=True).pid, flush=True)"
    parent = subprocess.Popen([sys.executable, "-c", f"{code}; time.sleep(60)"], stdout=subprocess.PIPE)
    assert parent.stdout is not None
    child = psutil.Process(int(parent.stdout.readline()))
    family = processes.kill(marked(parent))
    assert [member.id for member in family] == [parent.pid, child.pid]
    assert wait_until_ended(family, 5) == []
    parent.communicate()


@pytest.mark.skipif(not processes.BOOT_ID.exists(), reason="the other way is the only one here")
def test_without_proc_the_same_is_known_from_ps(
    sleeper: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(processes, "BOOT_ID", processes.PROC / "none")
    mark = marked(sleeper)
    assert is_alive(mark)
    assert not is_alive(replace(mark, started="Thu Jan 1 00:00:00 1970"))
    assert send(mark, signal.SIGKILL)
    assert wait_until_ended([mark], 5) == []
