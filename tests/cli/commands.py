"""Runs `bnw` in processes of its own and judges how it ended."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

BNW = (sys.executable, "-m", "bnw.cli")
_ID = re.compile(r"\b[0-9a-f]{64}\b")


@dataclass(frozen=True)
class Ended:
    """What a command left behind."""

    status: int
    out: str
    err: str

    @property
    def document(self) -> dict[str, Any]:
        """Standard output, which must be one JSON document and nothing else."""
        value: dict[str, Any] = json.loads(self.out)
        return value

    @property
    def complaints(self) -> list[str]:
        return [line for line in self.err.splitlines() if line.startswith("bnw: ")]

    def succeeded(self) -> Ended:
        assert (self.status, self.complaints) == (0, []), self
        assert "Traceback" not in self.err
        return self


def variables(home: Path | None = None, **others: str) -> dict[str, str]:
    """The environment of a command: this one without what is meant for another BNW."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("BNW_")}
    return {**kept, **({} if home is None else {"BNW_HOME": str(home)}), **others}


def bnw(*arguments: object, home: Path | None = None, timeout: float = 60, **others: str) -> Ended:
    """Run a command to its end. `others` are environment variables."""
    done = subprocess.run(
        [*BNW, *map(str, arguments)],
        env=variables(home, **others),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=timeout,
        check=False,
    )
    return Ended(done.returncode, done.stdout.decode(), done.stderr.decode())


def refused(
    *arguments: object,
    home: Path | None = None,
    status: int,
    code: str,
    place: object,
    says: str = "",
    **others: str,
) -> dict[str, Any]:
    """Run a command that must fail, for people and for programs; the error as JSON.

    Both forms must have the status, say the same, and name cause, place and cure: people get one line on standard error
    beside notes of progress, programs one document on standard output, and nobody a traceback.
    """
    with ThreadPoolExecutor() as pool:
        forms: Sequence[tuple[object, ...]] = [arguments, (*arguments, "--json")]
        text, document = pool.map(lambda form: bnw(*form, home=home, **others), forms)
    error = judged(document, status=status, code=code, place=place, says=says)
    assert (text.status, text.out) == (status, ""), text
    assert "Traceback" not in text.err, text
    line = f"bnw: {error['place']}: {error['message']} ({error['cure']})"
    assert [_ID.sub("<id>", each) for each in text.complaints] == [_ID.sub("<id>", line)]
    return error


def refused_by_node(
    *arguments: object, home: Path, status: int, code: str, place: object, says: str = "", **others: str
) -> dict[str, Any]:
    """The same for a command that starts a node: it costs a second, and two at a time would be in each other's way.

    So only the form for programs is run, which is where people's line comes from.
    """
    ended = bnw(*arguments, "--json", home=home, **others)
    return judged(ended, status=status, code=code, place=place, says=says)


def judged(document: Ended, *, status: int, code: str, place: object, says: str) -> dict[str, Any]:
    assert document.status == status, document
    assert "Traceback" not in document.err, document
    assert document.complaints == []
    error: dict[str, Any] = document.document["error"]
    assert sorted(error) == ["code", "cure", "message", "place"]
    assert error["code"] == code, error
    assert str(place) in (error["place"] or ""), error
    assert says in error["message"], error
    assert error["cure"], f"no cure: {error}"
    return error
