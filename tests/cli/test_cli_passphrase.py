"""A passphrase protects the keys: asked for on a terminal, or given in a variable or a file."""

from __future__ import annotations

import os
import pty
import select
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

import pytest
from commands import BNW, bnw, refused, refused_by_node, variables

from bnw.identity.keystore import KdfCost, save_keystore
from bnw.node.environment import SystemEnvironment
from bnw.node.home import Home
from bnw.node.opening import initialise_home
from bnw.wire.limits import KIB

SECRET = "correct horse äöü"


@pytest.fixture(scope="module")
def protected(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home whose keys are under the passphrase, which is stretched as little as is allowed, to save time."""
    home = Home(tmp_path_factory.mktemp("protected") / "home")
    keystore = initialise_home(home)
    cost = KdfCost(passes=1, memory=64 * KIB)
    save_keystore(home.keystore, keystore, SystemEnvironment(), passphrase=SECRET, cost=cost)
    return home.path


@pytest.fixture(scope="module")
def secret_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("secret") / "passphrase"
    path.write_text(f"{SECRET}\n")
    return path


def on_a_terminal(arguments: Sequence[str], home: Path, answers: Sequence[str]) -> tuple[int, str]:
    """Run a command with a terminal of its own and answer each question; the status and all that it showed."""
    child, terminal = pty.fork()
    if child == 0:
        os.execve(BNW[0], [*BNW, *arguments], variables(home))
    shown, left, deadline = b"", list(answers), time.monotonic() + 60
    while time.monotonic() < deadline:
        if not select.select([terminal], [], [], 1)[0]:
            continue
        try:
            data = os.read(terminal, 4096)
        except OSError:
            break
        shown += data
        if left and shown.endswith(b": "):
            os.write(terminal, left.pop(0).encode() + b"\n")
    os.close(terminal)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), shown.decode()


def test_a_protected_keystore_cannot_be_opened_without_its_passphrase(protected: Path) -> None:
    keystore = protected / "keystore"
    error = refused("id", home=protected, status=2, code="passphrase-needed", place=keystore)
    assert "BNW_PASSPHRASE" in error["cure"]
    assert "--passphrase-file" in error["cure"]
    refused_by_node("run", home=protected, status=2, code="passphrase-needed", place=keystore)


def test_a_wrong_passphrase_is_refused_and_changes_nothing(protected: Path) -> None:
    keystore = protected / "keystore"
    before = keystore.read_bytes()
    refused("id", home=protected, status=1, code="passphrase-wrong", place=keystore, BNW_PASSPHRASE="wrong")
    refused_by_node("run", home=protected, status=1, code="passphrase-wrong", place=keystore, BNW_PASSPHRASE="wrong")
    assert keystore.read_bytes() == before


def test_a_variable_or_a_file_opens_it_for_every_command(protected: Path, secret_file: Path) -> None:
    by_variable = bnw("id", home=protected, BNW_PASSPHRASE=SECRET).succeeded().out
    by_file = bnw("id", "--passphrase-file", secret_file, home=protected).succeeded().out
    assert by_variable == by_file
    # With a node of its own, and the file going before the variable.
    arguments = ("catalog", "--passphrase-file", secret_file)
    assert bnw(*arguments, home=protected, BNW_PASSPHRASE="wrong").succeeded().out == "the catalog is empty\n"


def test_commands_beside_a_running_node_need_no_passphrase(protected: Path, secret_file: Path) -> None:
    node = subprocess.Popen(
        [*BNW, "run", "--passphrase-file", str(secret_file), "--while-stdin-is-open"],
        env=variables(protected),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    try:
        assert node.stdout is not None
        while not node.stdout.readline().startswith(b"ready"):
            pass
        bnw("catalog", home=protected).succeeded()
        bnw("id", home=protected).succeeded()
    finally:
        node.communicate(timeout=30)
    assert node.returncode == 0


@pytest.mark.parametrize(
    ("content", "says"), [(b"\n", "no passphrase in it"), (b"\xff", "not UTF-8"), (b"x" * 5000, "4,096 bytes")]
)
def test_a_file_without_a_usable_passphrase_is_named(
    protected: Path, tmp_path: Path, content: bytes, says: str
) -> None:
    path = tmp_path / "passphrase"
    path.write_bytes(content)
    code = "too-large" if "bytes" in says else "unreadable"
    refused("id", "--passphrase-file", path, home=protected, status=2, code=code, place=path, says=says)


def test_an_empty_variable_counts_as_none(tmp_path: Path) -> None:
    value = bnw("init", "--json", home=tmp_path / "new", BNW_PASSPHRASE="").succeeded().document
    assert value["protected"] is False


def test_protecting_without_a_terminal_needs_the_passphrase_from_elsewhere(tmp_path: Path) -> None:
    refused("init", "--protect", home=tmp_path / "new", status=2, code="passphrase-needed", place="--protect")
    assert not (tmp_path / "new").exists()


def test_init_asks_twice_on_the_terminal_and_run_once(tmp_path: Path) -> None:
    path = tmp_path / "home"
    status, shown = on_a_terminal(["init", "--protect"], path, [SECRET, "a slip", SECRET, SECRET])
    assert (status, SECRET in shown) == (0, False), shown
    assert "do not match" in shown
    assert "protected by the passphrase" in shown
    status, shown = on_a_terminal(["id"], path, [SECRET])
    assert (status, "did:key:z6Mk" in shown, SECRET in shown) == (0, True, False), shown
    assert bnw("id", home=path, BNW_PASSPHRASE=SECRET).succeeded().out.strip() in shown


def test_a_command_asks_for_the_node_that_it_starts(protected: Path) -> None:
    status, shown = on_a_terminal(["catalog"], protected, [SECRET])
    assert (status, "the catalog is empty" in shown) == (0, True), shown


def test_ctrl_c_at_the_question_ends_without_a_traceback(tmp_path: Path) -> None:
    status, shown = on_a_terminal(["init", "--protect"], tmp_path / "home", ["\x03"])
    assert (status, "bnw: interrupted" in shown, "Traceback" in shown) == (130, True, False), shown
    assert not (tmp_path / "home").exists()
