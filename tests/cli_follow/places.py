"""Homes, nodes in processes of their own, and the `bnw` command beside them."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, NamedTuple

from bnw.cli.node_process import NodeProcess
from bnw.node.home import Home


class Ran(NamedTuple):
    """What came of one command."""

    status: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)

    @property
    def code(self) -> str:
        """Of the error that `--json` shows."""
        code: str = self.json["error"]["code"]
        return code


class Place(NamedTuple):
    """A home, and commands on it."""

    home: Home

    def run(self, *arguments: str, data: bytes = b"") -> Ran:
        command = [sys.executable, "-m", "bnw.cli", *arguments, "--home", str(self.home.path)]
        result = subprocess.run(command, input=data, capture_output=True, timeout=60, check=False)
        return Ran(result.returncode, result.stdout.decode(), result.stderr.decode())

    def node(self) -> AbstractContextManager[NodeProcess]:
        return NodeProcess.started(self.home)


MakePlace = Callable[..., Place]


def example(name: str) -> str:
    """A file of the finance example."""
    return str(Path(__file__).parents[2] / "docs/examples/finance" / name)
