"""The rules between layers hold because breaking one fails the test run: each is broken here once, in a copy."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


@pytest.fixture(scope="module")
def pristine(tmp_path_factory: pytest.TempPathFactory) -> Path:
    tree = tmp_path_factory.mktemp("tree")
    shutil.copytree(ROOT / "bnw", tree / "bnw", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", tree)
    return tree


@pytest.fixture
def tree(pristine: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(pristine, tmp_path / "copy"))


def run(tree: Path, *command: str) -> subprocess.CompletedProcess[str]:
    variables = {**os.environ, "PYTHONPATH": str(tree), "COLUMNS": "200"}
    return subprocess.run(command, cwd=tree, env=variables, capture_output=True, text=True, check=False)


def layers(tree: Path) -> subprocess.CompletedProcess[str]:
    return run(tree, str(Path(sys.executable).with_name("lint-imports")), "--no-cache")


def lint(tree: Path) -> subprocess.CompletedProcess[str]:
    return run(tree, sys.executable, "-m", "ruff", "check", "--no-cache", "bnw")


def plant(tree: Path, module: str, line: str) -> None:
    path = tree / module
    path.write_text(f"{path.read_text()}\n\ndef _planted() -> object:\n    {line}\n")


def test_the_tree_as_it_is_keeps_every_rule(tree: Path) -> None:
    assert layers(tree).returncode == 0
    assert lint(tree).returncode == 0


@pytest.mark.parametrize(
    ("module", "line", "contract"),
    [
        ("bnw/objects/rules.py", "import bnw.profiles.service as planted; return planted", "descriptor profile"),
        ("bnw/node/node.py", "import bnw.profiles.service as planted; return planted", "descriptor profile"),
        ("bnw/gossip/catalog_gossip.py", "import libp2p; return libp2p", "Only bnw.transport imports libp2p"),
        ("bnw/cli/node.py", "import libp2p; return libp2p", "Only bnw.transport imports libp2p"),
        ("bnw/invoke/provider.py", "import trio; return trio", "import trio"),
        ("bnw/cli/running.py", "import trio; return trio", "import trio"),
        ("bnw/store/sqlite.py", "import bnw.node.node as planted; return planted", "downwards only"),
        ("bnw/profiles/service.py", "import bnw.store.memory as planted; return planted", "knows nothing of the node"),
        ("bnw/api/client.py", "import bnw.node.opening as planted; return planted", "loads neither the network"),
    ],
)
def test_an_import_against_the_layers_fails_the_run(tree: Path, module: str, line: str, contract: str) -> None:
    plant(tree, module, line)
    result = layers(tree)
    assert result.returncode != 0
    broken = [text for text in result.stdout.splitlines() if text.endswith("BROKEN")]
    assert any(contract in text for text in broken), result.stdout


@pytest.mark.parametrize(
    "line",
    [
        "import time; return time.time()",
        "import random; return random.random()",
        "import secrets; return secrets.token_bytes(8)",
        "import os; return os.urandom(8)",
        "import datetime; return datetime.datetime.now()",
    ],
)
def test_the_clock_and_randomness_are_banned_outside_the_environment(tree: Path, line: str) -> None:
    plant(tree, "bnw/invoke/provider.py", line)
    result = lint(tree)
    assert result.returncode != 0
    assert "TID251" in result.stdout
