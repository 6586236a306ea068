"""The finance lookup that the demo publishes, from the installed package or from a source tree."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

import bnw
from bnw.wire.errors import LocalError

NAME = "finance/lookup"
QUESTION = b'{"symbol": "GOOG", "month": "2008-09"}'
"""Another one than the schema's example, which is public."""
DESCRIPTOR = "lookup.profile.json"
SCHEMAS = ("input.schema.json", "output.schema.json")
PROGRAM = "lookup.py"


@dataclass(frozen=True, slots=True)
class Example:
    directory: Path

    @property
    def descriptor(self) -> Path:
        return self.directory / DESCRIPTOR

    @property
    def schemas(self) -> tuple[Path, ...]:
        return tuple(self.directory / name for name in SCHEMAS)

    @property
    def arguments(self) -> list[str]:
        return [sys.executable, str(self.directory / PROGRAM)]


def find_example() -> Example:
    """Raises `LocalError` (`example-missing`)."""
    package = Path(bnw.__file__).parent
    for directory in (package / "examples" / "finance", package.parent / "docs" / "examples" / "finance"):
        if (directory / DESCRIPTOR).is_file():
            return Example(directory.resolve())
    raise LocalError(
        "example-missing",
        "the finance example is not there",
        place=str(package),
        cure="install BNW again, or run from a whole source tree",
    )
