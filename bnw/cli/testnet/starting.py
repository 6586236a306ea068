"""One node process that outlives its starter: started so that it is in the state file before it is a node."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from bnw.cli.testnet.processes import Mark, mark_of
from bnw.cli.testnet.state import NetDirectory
from bnw.wire.errors import ExitStatus, LocalError

WAIT_FOR_A_WORD: Final = 'read -r word && exec "$@" < /dev/null'
"""What the shell does. Without the word, its input ends and so does it."""
MAX_READY: Final = 64 * 1024
MAX_TAIL: Final = 1000
"""Bytes of a log that are looked at for the last line."""


class Starting:
    """A node on its way."""

    def __init__(
        self,
        directory: NetDirectory,
        name: str,
        options: Sequence[str],
        record: Callable[[Mark], None],
        *,
        looks: int,
    ) -> None:
        """Start `bnw run` with `options` on the home of `name`. `record` makes the process known durably, before it
        becomes a node; it has `looks` looks to become ready. Raises `LocalError` (`node-not-started`).
        """
        self.name = name
        self._looks = looks
        self._log = directory.log(name)
        self._ready = directory.ready(name)
        self.home = directory.home(name)
        node = [sys.executable, "-m", "bnw.cli", "run", "--home", str(self.home.path), "--json", *options]
        try:
            with self._ready.open("wb") as out, self._log.open("ab") as errors:
                self.process = subprocess.Popen(
                    ["/bin/sh", "-c", WAIT_FOR_A_WORD, "bnw-testnet", *node],
                    stdin=subprocess.PIPE,
                    stdout=out,
                    stderr=errors,
                    cwd=self.home.path,
                    env={key: value for key, value in os.environ.items() if not key.startswith("BNW_")},
                    start_new_session=True,
                )
        except OSError as error:
            raise self._failed(error.strerror or str(error)) from error
        try:
            self._give_word(record)
        except BaseException:
            # The shell ends without its word. Whoever hears of the failure may count on it that it has.
            self.process.kill()
            self.process.wait()
            raise

    def _give_word(self, record: Callable[[Mark], None]) -> None:
        assert self.process.stdin is not None
        # A shell that has ended already is found by the first look.
        with suppress(BrokenPipeError), self.process.stdin as words:
            mark = mark_of(self.process.pid)
            if mark is None:
                raise self._failed(f"its process ended at once{self._last_line()}")
            record(mark)
            words.write(b"go\n")

    def look(self) -> dict[str, Any] | None:
        """What the node said when it was ready: identity and addresses; None while it is not.

        Raises `LocalError`: as the node said it, or `node-not-started`.
        """
        # Asked first: what a node that has ended since then wrote is all there.
        ended = self.process.poll() is not None
        said = self._document()
        if said is not None and "error" not in said and not ended:
            return said
        if said is not None and "error" in said:
            error = said["error"]
            raise LocalError(
                error["code"], error["message"], place=f"{self.name}: {error['place']}", cure=error["cure"]
            )
        if ended:
            raise self._failed(f"the node ended before it was ready{self._last_line()}")
        self._looks -= 1
        if self._looks < 0:
            raise self._failed(f"the node is not ready after all this time{self._last_line()}")
        return None

    def _document(self) -> dict[str, Any] | None:
        with self._ready.open("rb") as file:
            data = file.read(MAX_READY)
        with suppress(ValueError):
            value = json.loads(data)
            if isinstance(value, dict):
                return value
        return None

    def _last_line(self) -> str:
        lines = tail(self._log)
        return f": {lines[-1]}" if lines else ""

    def _failed(self, cause: str) -> LocalError:
        return LocalError(
            "node-not-started",
            cause,
            place=self.name,
            cure=f"its log, while it is there: {self._log}",
            exit_status=ExitStatus.UNREACHABLE,
        )


def tail(log: Path) -> list[str]:
    """The last lines of a log."""
    with suppress(OSError), log.open("rb") as file:
        file.seek(max(0, file.seek(0, os.SEEK_END) - MAX_TAIL))
        return file.read(MAX_TAIL).decode(errors="replace").strip().splitlines()
    return []
