"""Runs the real command line, and judges how it ended."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

TIMEOUT = 60.0


@dataclass(frozen=True)
class Ended:
    status: int
    out: bytes
    err: str

    @property
    def json(self) -> dict[str, Any]:
        """Standard output, which must be one JSON document."""
        value = json.loads(self.out)
        assert isinstance(value, dict)
        return value

    @property
    def complaint(self) -> str:
        """The one line that says what was wrong."""
        assert "Traceback" not in self.err, self.err
        lines = [line for line in self.err.splitlines() if line.startswith("bnw: ")]
        assert len(lines) == 1, self.err
        return lines[0]


def command(home: Path, *arguments: str) -> list[str]:
    return [sys.executable, "-m", "bnw.cli", *arguments, "--home", str(home)]


def environment(**changes: str) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("BNW_")}
    return {**kept, "COLUMNS": "200", **changes}


def bnw(home: Path, *arguments: str, stdin: bytes = b"", cwd: Path | None = None, **variables: str) -> Ended:
    """Run one command to its end."""
    done = subprocess.run(
        command(home, *arguments),
        input=stdin,
        capture_output=True,
        env=environment(**variables),
        cwd=cwd,
        timeout=TIMEOUT,
        check=False,
    )
    return Ended(done.returncode, done.stdout, done.stderr.decode())
