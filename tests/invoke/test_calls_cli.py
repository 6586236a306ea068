"""Calls from the command line between two real node processes: policy, delegation, progress, cancel, proof."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path

import pytest

from bnw.cli.node_process import NodeProcess
from bnw.node.configuration import Configuration
from bnw.node.home import Home
from bnw.node.opening import initialise_home

PROGRAM = """
import json, os, sys, time
with open(os.environ["BNW_PROGRESS"], "w", buffering=1) as progress:
    for step in range(3):
        print(json.dumps({"stage": "step", "fraction": step / 4, "note": f"number {step}"}), file=progress)
        time.sleep(0.3 if len(sys.argv) == 1 else 30)
sys.stdout.write(sys.stdin.read().upper())
"""
POLICY = """
[capability."test/upper"]
allow = "delegated"
"""


class World:
    def __init__(self, root: Path) -> None:
        self.root = root

    def bnw(self, *arguments: object, who: str = "requester", expect: int = 0) -> dict:
        done = self.start(*arguments, who=who)
        out, err = done.communicate(timeout=60)
        assert done.returncode == expect, (arguments, out.decode(), err.decode())
        return json.loads(out) if out.strip() else {}

    def start(self, *arguments: object, who: str = "requester") -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [sys.executable, "-m", "bnw.cli", *map(str, arguments), "--json"],
            env={**os.environ, "BNW_HOME": str(self.root / who)},
            cwd=self.root,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory):
    root = tmp_path_factory.mktemp("calls")
    (root / "program.py").write_text(PROGRAM)
    (root / "policy.toml").write_text(POLICY)
    (root / "descriptor").write_text("opaque")
    with ExitStack() as stack:
        addresses: tuple[str, ...] = ()
        for name in ("provider", "requester"):
            home = Home(root / name)
            initialise_home(home, configuration=Configuration(network="calls", peers=addresses))
            addresses = tuple(stack.enter_context(NodeProcess.started(home)).ready["addresses"])
        world = World(root)
        command = f"{sys.executable} program.py"
        for name, more in (("test/upper", ""), ("test/slow", " slow")):
            allow = ("--policy", "policy.toml") if not more else ("--allow", "anyone")
            world.bnw(
                "provide", "descriptor", "--name", name, "--exec", command + more, *allow, "--detach", who="provider"
            )
        yield world


def test_a_policy_decides_and_a_delegation_opens_it_until_it_is_revoked(world: World) -> None:
    me = world.bnw("id")["identity"]
    assert world.bnw("policy", "check", "policy.toml")["capabilities"]["test/upper"]["delegated"]
    verdict = world.bnw("policy", "test", "policy.toml", "test/upper", "--as", me, expect=1)
    assert verdict["code"] == "delegation-needed"
    refused = world.bnw("invoke", "test/upper", "--data", "hello", expect=1)
    assert (refused["status"], refused["code"]) == ("rejected", "not-allowed")

    granted = world.bnw("delegate", me, "--capability", "test/upper", "--for", "1h", who="provider")
    _until(lambda: world.bnw("delegation", "list")["delegations"])
    assert world.bnw("delegation", "explain", "test/upper")["code"] == "delegated"
    result = world.bnw("invoke", "test/upper", "--data", "hello")
    assert result["output"] is None or result["output"] == "HELLO"
    shown = world.bnw("invocation", "show", result["invocation_id"][:12])
    assert (shown["status"], shown["stage"]) == ("completed", "step")
    assert shown["delegations"] == [granted["delegation_id"]]

    world.bnw("invocation", "export", result["invocation_id"], "--output", "call.proof")
    proof = world.bnw("invocation", "verify", "call.proof", who="nobody")
    assert proof["authority"]["code"] == "delegated"
    data = bytearray((world.root / "call.proof").read_bytes())
    data[len(data) // 2] ^= 1
    (world.root / "bad.proof").write_bytes(data)
    world.bnw("invocation", "verify", "bad.proof", who="nobody", expect=1)

    world.bnw("revoke", granted["delegation_id"], who="provider")
    assert world.bnw("invoke", "test/upper", "--data", "hello", expect=1)["status"] == "rejected"


def test_a_policy_file_is_read_again_without_a_restart(world: World) -> None:
    path = world.root / "policy.toml"
    path.write_text('[capability."test/upper"]\nallow = "anyone"\n')
    time.sleep(0.7)  # longer than the period in which the file is looked at
    assert world.bnw("invoke", "test/upper", "--data", "hi")["status"] == "completed"
    path.write_text('[capability."test/upper"]\nalow = "anyone"\n')
    time.sleep(0.7)
    assert world.bnw("invoke", "test/upper", "--data", "hi")["status"] == "completed", "the last good one holds"
    error = world.bnw("policy", "check", "policy.toml", expect=2)["error"]
    assert error["code"] == "policy" and "allow" in error["cure"]


def test_a_killed_invoke_is_cancelled_and_waited_for_from_elsewhere(world: World) -> None:
    known = {call["invocation_id"] for call in world.bnw("invocation", "list")["invocations"]}
    invoke = world.start("invoke", "test/slow", "--data", "x", "--deadline", "60s")
    calls = _until(
        lambda: [
            call
            for call in world.bnw("invocation", "list")["invocations"]
            if call["invocation_id"] not in known and call["stage"]
        ]
    )
    invoke.send_signal(signal.SIGKILL)
    invoke.communicate()
    id = calls[0]["invocation_id"]
    world.bnw("invocation", "cancel", id)
    result = world.bnw("invocation", "wait", id, expect=1)
    assert (result["status"], result["code"]) == ("cancelled", "cancelled")


def _until(condition, seconds: float = 20):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        found = condition()
        if found:
            return found
        time.sleep(0.1)
    raise AssertionError("it never came")
