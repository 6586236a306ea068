"""Calls with files of more than 16 MiB from the command line, between two real nodes, which are killed."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, TypeVar

import pytest
from commands import bnw, variables

from bnw.cli.node_process import NodeProcess
from bnw.node.configuration import Configuration
from bnw.node.home import Home
from bnw.node.opening import initialise_home
from bnw.wire.limits import MIB

T = TypeVar("T")

SIZE = 24 * MIB + 7
# Says that it has begun, waits to be let on, and copies.
PROGRAM = """
import os, pathlib, shutil, sys, time
root = pathlib.Path(sys.argv[1])
with (root / "begun").open("a") as file:
    print(os.getpid(), os.environ["BNW_INPUT_FILE"], file=file)
while not (root / "open").exists():
    time.sleep(0.02)
shutil.copyfileobj(sys.stdin.buffer, sys.stdout.buffer)
"""
POLICY = """
[capability."test/copy"]
allow = "anyone"
max_input_bytes = 67108864
max_output_bytes = 67108864
"""


class Net:
    """Two homes and the nodes on them. The provider comes back at the address that it had."""

    def __init__(self, root: Path, stack: ExitStack) -> None:
        self.root = root
        self._stack = stack
        self.nodes: dict[str, NodeProcess] = {}
        for name in ("provider", "requester"):
            peers = tuple(self.nodes["provider"].ready["addresses"]) if self.nodes else ()
            initialise_home(Home(root / name), configuration=Configuration(network="large", peers=peers))
            self.start(name)

    def start(self, name: str) -> None:
        listen = (
            ("--listen", self.nodes[name].ready["addresses"][0].partition("/p2p/")[0]) if name in self.nodes else ()
        )
        self.nodes[name] = self._stack.enter_context(NodeProcess.started(Home(self.root / name), listen))

    def kill(self, name: str) -> None:
        self.nodes[name].process.send_signal(signal.SIGKILL)
        self.nodes[name].process.wait()

    def provide(self) -> None:
        self.bnw(
            "provide",
            self.root / "descriptor",
            "--name",
            "test/copy",
            "--exec",
            f"{sys.executable} {self.root / 'program.py'} {self.root}",
            "--policy",
            self.root / "policy.toml",
            "--idempotent",
            "--detach",
            who="provider",
        )

    def bnw(self, *arguments: object, who: str = "requester") -> dict[str, Any]:
        return bnw(*arguments, "--json", home=self.root / who, timeout=120).succeeded().document

    def chunk_bytes(self, who: str) -> int:
        blobs = self.bnw("blob", "list", who=who)["blobs"]
        return sum(blob["size"] for blob in blobs)


@pytest.fixture
def net(tmp_path: Path) -> Iterator[Net]:
    (tmp_path / "program.py").write_text(PROGRAM)
    (tmp_path / "policy.toml").write_text(POLICY)
    (tmp_path / "descriptor").write_text("opaque")
    (tmp_path / "question").write_bytes(hashlib.shake_128(b"question").digest(SIZE))
    with ExitStack() as stack:
        net = Net(tmp_path, stack)
        net.provide()
        yield net


def until(condition: Callable[[], T], seconds: float = 30) -> T:
    end = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < end
        time.sleep(0.05)
    return found


def test_a_large_file_goes_there_and_comes_back(net: Net) -> None:
    (net.root / "open").touch()
    before = net.chunk_bytes("requester")
    answer = net.root / "answer"
    result = net.bnw(
        "invoke", "test/copy", "--input", net.root / "question", "--output", answer, "--max-output", "32MiB"
    )
    assert (result["status"], result["output"], result["output_bytes"]) == ("completed", None, SIZE)
    assert result["output_file"] == str(answer)
    assert answer.read_bytes() == (net.root / "question").read_bytes()
    assert answer.stat().st_mode & 0o077 == (net.root / "question").stat().st_mode & 0o077
    assert not list((net.root / "provider" / "running").iterdir())
    assert net.chunk_bytes("requester") - before < MIB, "the input has served its purpose, the output is in its file"

    # Without --output the bytes are standard output, and stay in the store.
    id = result["invocation_id"]
    piped = subprocess.run(
        [sys.executable, "-m", "bnw.cli", "invocation", "wait", id, "--max-output", "32MiB"],
        env=variables(net.root / "requester"),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=60,
        check=True,
    )
    assert piped.stdout == answer.read_bytes()


def test_an_output_that_is_larger_than_expected_is_refused_with_a_cure_that_works(net: Net) -> None:
    (net.root / "open").touch()
    ended = bnw("invoke", "test/copy", "--input", net.root / "question", "--json", home=net.root / "requester")
    error = json.loads(ended.out)["error"]
    assert error["code"] == "too-large" and "--max-output" in error["cure"]
    [call] = net.bnw("invocation", "list")["invocations"]
    answer = net.root / "answer"
    net.bnw("invocation", "wait", call["invocation_id"], "--max-output", "32MiB", "--output", answer)
    assert answer.stat().st_size == SIZE


def test_both_sides_killed_in_the_middle_the_call_is_taken_up_and_no_plaintext_stays(net: Net) -> None:
    asked = net.bnw("invoke", "test/copy", "--input", net.root / "question", "--deadline", "5m", "--detach")
    begun = net.root / "begun"
    until(lambda: begun.exists() and begun.read_text().endswith("\n"))
    pid, plaintext = begun.read_text().split()
    assert Path(plaintext).stat().st_size == SIZE
    assert Path(plaintext).parent.stat().st_mode & 0o077 == 0

    net.kill("provider")
    net.kill("requester")
    os.kill(int(pid), signal.SIGKILL)
    os.truncate(begun, 0)
    net.start("provider")
    assert not Path(plaintext).exists(), "what a crash leaves goes at the next start"
    net.provide()
    net.start("requester")
    until(lambda: begun.read_text().endswith("\n"))
    (net.root / "open").touch()
    answer = net.root / "answer"
    result = net.bnw("invocation", "wait", asked["invocation_id"], "--max-output", "32MiB", "--output", answer)
    assert result["status"] == "completed"
    assert answer.read_bytes() == (net.root / "question").read_bytes()
