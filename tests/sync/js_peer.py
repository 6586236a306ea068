"""An independent implementation of Negentropy, the npm package @nostr-dev-kit/sync, running under Node.

Its own varints hold 32 bits only, so items for it need timestamps below 2^31: seconds, not milliseconds.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

SOURCE = Path(__file__).parent / "js"
OLDEST_NODE = 20
INSTALL_SECONDS = 120


class Unavailable(Exception):
    """Why the implementation cannot run here."""


def install(cache: Path) -> Path:
    """The directory with the package and its driver, installed under `cache` once per version of the lock file."""
    _check_programs()
    files = sorted(path for path in SOURCE.rglob("*") if path.is_file())
    digest = hashlib.sha256(b"".join(path.read_bytes() for path in files)).hexdigest()[:16]
    ready = cache / f"negentropy-{digest}"
    if ready.exists():
        return ready
    making = cache / f"making-{digest}"
    shutil.rmtree(making, ignore_errors=True)
    shutil.copytree(SOURCE, making)
    command = ["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"]
    try:
        done = subprocess.run(command, cwd=making, capture_output=True, text=True, timeout=INSTALL_SECONDS, check=False)
    except subprocess.TimeoutExpired:
        raise Unavailable(f"`npm ci` in tests/sync/js took more than {INSTALL_SECONDS} s") from None
    if done.returncode != 0:
        raise Unavailable(f"`npm ci` in tests/sync/js failed: {done.stderr.strip()[-300:]}")
    making.rename(ready)
    return ready


def _check_programs() -> None:
    for program in ("node", "npm"):
        if shutil.which(program) is None:
            raise Unavailable(f"there is no `{program}`; install Node.js {OLDEST_NODE} or newer with npm")
    version = subprocess.run(["node", "--version"], capture_output=True, text=True, check=True).stdout.strip()
    if int(version.removeprefix("v").split(".")[0]) < OLDEST_NODE:
        raise Unavailable(f"Node.js {version} is older than {OLDEST_NODE}")


class JsPeer:
    """One side of a reconciliation."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def start(self) -> bytes:
        return bytes.fromhex(self._ask("start")["message"])

    def answer(self, message: bytes) -> bytes:
        return bytes.fromhex(self._ask(f"answer {message.hex()}")["message"])

    def take(self, answer: bytes) -> tuple[bytes | None, list[bytes], list[bytes]]:
        """The next message or None, and what the peer has and needs."""
        made = self._ask(f"take {answer.hex()}")
        message = None if made["message"] is None else bytes.fromhex(made["message"])
        return message, [bytes.fromhex(id) for id in made["have"]], [bytes.fromhex(id) for id in made["need"]]

    def _ask(self, request: str) -> dict:
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(request + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            assert self._process.stderr is not None
            raise AssertionError(f"the JavaScript side ended: {self._process.stderr.read()[-500:]}")
        return json.loads(line)


@contextmanager
def js_peer(installed: Path, directory: Path, items: Iterable[tuple[int, bytes]]) -> Iterator[JsPeer]:
    """A running peer that holds `items`; `directory` is for its files."""
    path = directory / "items"
    path.write_text("".join(f"{timestamp} {id.hex()}\n" for timestamp, id in items))
    command = ["node", str(installed / "peer.mjs"), str(path)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            yield JsPeer(process)
        finally:
            process.kill()
