"""A node in a process of its own that cannot outlive its starter.

The child holds the reading end of a pipe as its standard input and stops when that ends, which it does even if the
starter is killed. It says on standard output that it is ready, or why it is not.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Self

from bnw.wire.errors import ExitStatus, LocalError

if TYPE_CHECKING:
    from bnw.api.client import ApiClient
    from bnw.node.home import Home

STOPPING_TIME = 10.0
"""Seconds that a node has to take back its offers and close before it is killed."""
MAX_READY = 64 * 1024
"""Bytes."""


class NodeProcess:
    """See the module docstring. `ready` is what the node said: identity, peer and addresses."""

    def __init__(self, home: Home, process: subprocess.Popen[bytes], ready: Mapping[str, Any]) -> None:
        self.home = home
        self.process = process
        self.ready = ready

    @classmethod
    @contextmanager
    def started(cls, home: Home, options: Sequence[str] = (), *, passphrase: str | None = None) -> Iterator[Self]:
        """Run `bnw run` with `options` on `home` while the body runs. Raises `LocalError` as the node said it."""
        variables = {name: value for name, value in os.environ.items() if name != "BNW_PASSPHRASE"}
        if passphrase is not None:
            variables["BNW_PASSPHRASE"] = passphrase
        arguments = ["run", "--home", str(home.path), "--while-stdin-is-open", "--json", *options]
        process = subprocess.Popen(
            [sys.executable, "-m", "bnw.cli", *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=variables,
            # Ctrl-C is for the command; it ends the node by closing the pipe, after its own work is undone.
            start_new_session=True,
        )
        try:
            yield cls(home, process, _wait_until_ready(process, home))
        finally:
            stop(process)

    def client(self) -> ApiClient:
        from bnw.api.client import ApiClient

        return ApiClient(self.home.socket)


def _wait_until_ready(process: subprocess.Popen[bytes], home: Home) -> Mapping[str, Any]:
    said = _first_document(process)
    if said is None:
        raise LocalError(
            "node-not-started",
            "the node ended before it was ready",
            place=str(home.path),
            cure="`bnw run` shows why",
            exit_status=ExitStatus.UNREACHABLE,
        )
    if "error" in said:
        error, status = said["error"], process.wait()
        raise LocalError(
            error["code"],
            error["message"],
            place=error["place"],
            cure=error["cure"],
            exit_status=ExitStatus(status) if status in set(ExitStatus) else ExitStatus.REFUSED,
        )
    return said


def _first_document(process: subprocess.Popen[bytes]) -> dict[str, Any] | None:
    """The JSON document that the node prints first, over as many lines as it likes; None if it prints none."""
    assert process.stdout is not None
    text = b""
    while len(text) < MAX_READY and (line := process.stdout.readline(MAX_READY)):
        text += line
        try:
            said: dict[str, Any] = json.loads(text)
        except ValueError:
            continue
        return said
    return None


def stop(process: subprocess.Popen[bytes]) -> None:
    """Let the node close; kill it if it does not."""
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        process.stdin.close()
        process.wait(STOPPING_TIME)
    except subprocess.TimeoutExpired:
        pass
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
