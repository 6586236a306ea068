"""All pages under docs/: what they name in this tree is there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = sorted((ROOT / "docs").rglob("*.md"))
PATH = re.compile(r"`((?:bnw|docs|tests|scripts|proto)/[a-z][\w./-]*)`")
MODULE = re.compile(r"`(bnw(?:\.[a-z0-9_]+)+)`")


def named_in(text: str) -> set[str]:
    """Paths from the root that `text` names; a module counts without its suffix."""
    return set(PATH.findall(text)) | {module.replace(".", "/") for module in MODULE.findall(text)}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT / "docs")))
def test_the_files_and_modules_that_a_page_names_exist(page: Path) -> None:
    missing = [
        name
        for name in sorted(named_in(page.read_text()))
        if not (ROOT / name).exists() and not (ROOT / f"{name}.py").exists()
    ]
    assert missing == []


def test_a_name_of_what_does_not_exist_would_be_noticed() -> None:
    assert named_in("see `bnw/wire/nothing.py` and `bnw.wire.nothing`, not `bnw/1`") == {
        "bnw/wire/nothing.py",
        "bnw/wire/nothing",
    }
