"""What came from a peer and is printed: exactly as it is into a pipe or file, and harmless on a terminal."""

from __future__ import annotations

import os
import sys
import tty
from collections.abc import Callable
from pathlib import Path

import pytest

from bnw.cli.files import print_bytes

Printed = Callable[[bytes], bytes]


@pytest.fixture
def on_terminal(monkeypatch: pytest.MonkeyPatch) -> Printed:
    def printed(data: bytes) -> bytes:
        ours, theirs = os.openpty()
        tty.setraw(theirs)  # or the line discipline would change what is written
        with os.fdopen(theirs, "w", encoding="utf-8") as terminal:
            monkeypatch.setattr(sys, "stdout", terminal)
            print_bytes(data)
            monkeypatch.undo()
            try:
                return os.read(ours, 4096)
            finally:
                os.close(ours)

    return printed


@pytest.mark.parametrize(
    ("data", "shown"),
    [
        (b"one\n\ttwo\n", b"one\n\ttwo\n"),
        (b"no end of line", b"no end of line\n"),
        ("Zürich, 漢字".encode(), "Zürich, 漢字\n".encode()),
        (b"\x1b]0;title\x07", b"\\x1b]0;title\\x07\n"),
        (b"\x9b31m".decode("latin-1").encode(), b"\\x9b31m\n"),
        (b"hidden\rshown", b"hidden\\rshown\n"),
        ("\u202etxt.exe".encode(), b"\\u202etxt.exe\n"),
        (b"\xff\xfe", b"\\xff\\xfe\n"),
    ],
    ids=["lines", "no end of line", "letters", "title", "8-bit command", "carriage return", "direction", "no text"],
)
def test_a_terminal_shows_text_and_obeys_none_of_it(on_terminal: Printed, data: bytes, shown: bytes) -> None:
    assert on_terminal(data) == shown


def test_a_file_gets_the_very_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = bytes(range(256))
    with (tmp_path / "out").open("w") as file:
        monkeypatch.setattr(sys, "stdout", file)
        print_bytes(data)
        monkeypatch.undo()
    assert (tmp_path / "out").read_bytes() == data
