"""docs/architecture.md is true: its picture shows the layers of the import contract."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/architecture.md").read_text()


def layers_of_the_contract() -> list[frozenset[str]]:
    """From the top, the packages of each layer; `bnw.a | (bnw.b)` are two beside each other."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())
    (contract,) = [c for c in settings["tool"]["importlinter"]["contracts"] if c["type"] == "layers"]
    return [frozenset(re.findall(r"bnw\.([a-z0-9_]+)", layer)) for layer in contract["layers"]]


def layers_of_the_picture(page: str) -> list[frozenset[str]]:
    """From the top, the first word of each cell, row by row."""
    rows = [line.strip("│").split("│") for line in page.splitlines() if line.startswith("│")]
    return [frozenset(cell.split()[0] for cell in row) for row in rows]


def test_the_picture_has_the_layers_of_the_contract_in_its_order() -> None:
    assert layers_of_the_picture(PAGE) == layers_of_the_contract()


def test_a_picture_with_two_layers_exchanged_would_be_noticed() -> None:
    lines = PAGE.splitlines()
    store, objects = (
        next(i for i, line in enumerate(lines) if line.startswith(f"│ {n} ")) for n in ("store", "objects")
    )
    lines[store], lines[objects] = lines[objects], lines[store]
    assert layers_of_the_picture("\n".join(lines)) != layers_of_the_contract()


def test_every_package_is_in_the_picture() -> None:
    packages = {path.parent.name for path in (ROOT / "bnw").glob("*/__init__.py")}
    assert packages <= frozenset().union(*layers_of_the_picture(PAGE))
