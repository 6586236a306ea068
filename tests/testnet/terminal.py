"""Runs `bnw testnet` as people do, and looks for what it leaves behind."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import psutil

from tests.cli.terminal import TIMEOUT, Ended, environment


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "bnw.cli", "testnet", *arguments]


def testnet(directory: Path, *arguments: str, cwd: Path | None = None) -> Ended:
    """Run one command on a testnet to its end."""
    done = subprocess.run(
        command(*arguments),
        capture_output=True,
        env=environment(BNW_TESTNET=str(directory)),
        cwd=cwd,
        timeout=TIMEOUT,
        check=False,
    )
    return Ended(done.returncode, done.stdout, done.stderr.decode())


testnet.__test__ = False  # type: ignore[attr-defined] # its name is the command's; pytest would take it for a test


def processes_in(directory: Path) -> list[psutil.Process]:
    """All processes of this machine that were started for something in `directory`."""
    found = []
    for process in psutil.process_iter():
        try:
            # What has ended and nobody has asked about yet, a zombie, has no command line any more.
            if any(str(directory) in word for word in process.cmdline()):
                found.append(process)
        except psutil.NoSuchProcess:
            continue
    return found
