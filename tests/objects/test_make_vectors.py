"""`scripts/make-vectors` makes the same files each time, and says what differs when they are others."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "scripts/make-vectors"


def make_vectors(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, str(SCRIPT), *arguments], capture_output=True, text=True, check=False)


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    return Path(shutil.copytree(ROOT / "proto/vectors", tmp_path / "vectors"))


def test_the_files_in_the_tree_are_those_that_the_tree_makes() -> None:
    result = make_vectors("--check")
    assert result.returncode == 0, result.stderr


def test_writing_them_gives_the_same_bytes(tmp_path: Path) -> None:
    result = make_vectors("--directory", str(tmp_path / "new"))
    assert result.returncode == 0, result.stderr
    made = {path.name: path.read_bytes() for path in (tmp_path / "new").iterdir()}
    assert made == {path.name: path.read_bytes() for path in (ROOT / "proto/vectors").iterdir()}


def test_a_difference_a_missing_file_and_one_too_many_are_named(copy: Path) -> None:
    changed = copy / "rules.json"
    changed.write_text(changed.read_text().replace('"superseded"', '"replaces"', 1))
    (copy / "frames.json").unlink()
    (copy / "extra.json").write_text("{}")
    before = {path.name: path.read_bytes() for path in copy.iterdir()}
    result = make_vectors("--check", "--directory", str(copy))
    assert result.returncode == 1
    assert 'has "outcome": "replaces" where "outcome": "superseded" is made' in result.stderr
    assert "rules.json: line " in result.stderr
    assert "frames.json: the file is missing" in result.stderr
    assert "extra.json: no vectors of this name are made" in result.stderr
    assert "run scripts/make-vectors" in result.stderr
    assert before == {path.name: path.read_bytes() for path in copy.iterdir()}, "a check changes nothing"


def test_it_can_be_run_as_it_is() -> None:
    assert SCRIPT.stat().st_mode & 0o111
    assert SCRIPT.read_text().startswith("#!/usr/bin/env python3\n")
