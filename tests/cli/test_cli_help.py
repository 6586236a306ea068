"""Every command has --help with an example and --json, is told in one line, and starts fast."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from click.testing import CliRunner
from commands import bnw, variables
from small_network import Network

from bnw import __version__
from bnw.cli.main import main

SLOW = ("libp2p", "multiaddr", "trio", "anyio", "httpx", "hypercorn", "starlette")
"""Libraries that take long to load; only a node needs them."""


def walk(command: click.Command, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    if isinstance(command, click.Group):
        yield path, command
        for name, child in command.commands.items():
            yield from () if child.hidden else walk(child, (*path, name))
    else:
        yield path, command


TREE = dict(walk(main))
COMMANDS = {path: command for path, command in TREE.items() if not isinstance(command, click.Group)}
all_commands = pytest.mark.parametrize("path", COMMANDS, ids=" ".join)


def test_the_walk_finds_the_commands_that_there_are() -> None:
    expected = {
        ("init",),
        ("run",),
        ("status",),
        ("publish",),
        ("invoke",),
        ("blob", "add"),
        ("blob", "get"),
        ("demo",),
    }
    assert expected <= set(COMMANDS)


@all_commands
def test_every_command_takes_json_and_a_home(path: tuple[str, ...]) -> None:
    options = {name for parameter in COMMANDS[path].params for name in parameter.opts}
    # A testnet has its own directory, with the homes of its nodes, and a simulation has none at all.
    homeless = path[0] in {"testnet", "simulate"}
    assert {"--json"} | (set() if homeless else {"--home", "--passphrase-file"}) <= options


@all_commands
def test_the_help_of_every_command_has_an_example_that_it_would_accept(path: tuple[str, ...]) -> None:
    shown = CliRunner().invoke(main, [*path, "--help"], standalone_mode=False)
    assert shown.exit_code == 0
    example = re.search(r"Examples?:\s+(bnw .+)$", shown.output, re.MULTILINE)
    assert example, shown.output
    words = shlex.split(re.split(" (?:&&|>) ", example[1])[0])
    if path == ("testnet", "play"):  # whose name is left out
        path = ("testnet",)
    assert tuple(words[1 : 1 + len(path)]) == path
    arguments = [word.replace("...", "0" * 60) if word == "0aa1..." else word for word in words[1 + len(path) :]]
    if "12D3KooW..." in example[1]:
        arguments = [word.replace("12D3KooW...", "12D3KooW" + "a" * 44) for word in arguments]
    with TREE[path].make_context(path[-1], arguments, resilient_parsing=False):
        pass


@all_commands
def test_every_option_says_what_it_is_for(path: tuple[str, ...]) -> None:
    for parameter in COMMANDS[path].params:
        if isinstance(parameter, click.Option) and not parameter.hidden:
            assert parameter.help, f"{' '.join(path)} {parameter.opts[0]}"


@pytest.mark.parametrize("path", [path for path, command in TREE.items() if isinstance(command, click.Group)])
def test_no_line_of_a_list_of_commands_is_cut_off(path: tuple[str, ...]) -> None:
    shown = CliRunner().invoke(main, [*path, "--help"], terminal_width=80, standalone_mode=False)
    listed = shown.output.partition("Commands:")[2]
    lines = [line for line in listed.splitlines() if line.strip()]
    assert lines
    assert not [line for line in lines if line.endswith("...")]
    # One line each: nothing wraps.
    group = TREE[path]
    assert isinstance(group, click.Group)
    assert len(lines) == len(group.commands)


def test_the_version_is_the_packages() -> None:
    assert bnw("--version").succeeded().out == f"bnw, version {__version__}\n"


@pytest.mark.parametrize(
    "arguments",
    [
        ("status",),
        ("peers",),
        ("id",),
        ("catalog",),
        ("catalog", "--mine"),
        ("catalog-inspect", "finance/lookup"),
        ("catalog-inspect", "finance/lookup", "--template"),
        ("blob", "add", __file__),
        ("publish", "from/the-test-of-help", "/dev/null"),
        ("withdraw", "from/the-test-of-help"),
    ],
    ids=" ".join,
)
def test_with_json_standard_output_is_one_document(network: Network, arguments: tuple[str, ...]) -> None:
    ended = bnw(*arguments, "--json", home=network.carrier.home.path).succeeded()
    assert isinstance(ended.document, dict)
    assert ended.err == ""
    text = bnw(*arguments, home=network.carrier.home.path)
    if arguments[0] != "withdraw":
        assert text.succeeded().out


def loaded_by(*arguments: str, home: Path) -> set[str]:
    """The top-level modules that a command has loaded when it ends."""
    script = (
        "import atexit, json, sys\n"
        "said = sys.stderr\n"
        "atexit.register(lambda: print(json.dumps(sorted({name.partition('.')[0] for name in sys.modules}"
        " | {name for name in sys.modules if name.startswith('bnw.')})), file=said))\n"
        "from bnw.cli.main import main\n"
        "main()\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, *arguments], env=variables(home), capture_output=True, timeout=60, check=False
    )
    assert done.returncode == 0, done
    found: list[str] = json.loads(done.stderr.splitlines()[-1])
    return set(found)


@pytest.mark.parametrize(
    "arguments",
    [
        ("status",),
        ("status", "--json"),
        ("peers",),
        ("id",),
        ("catalog",),
        ("catalog-inspect", "finance/lookup"),
        ("blob", "add", __file__),
        ("publish", "x", "/dev/null"),
        ("withdraw", "x"),
        ("provide", "echo", "--exec", "cat", "--detach", "--help"),
        ("invoke", "echo", "--data", "hello"),
        ("demo", "--help"),
        ("run", "--help"),
    ],
    ids=" ".join,
)
def test_a_command_beside_a_running_node_loads_nothing_that_is_slow(
    network: Network, arguments: tuple[str, ...]
) -> None:
    loaded = loaded_by(*arguments, home=network.requester.home.path)
    assert "bnw" in loaded
    assert loaded & set(SLOW) == set()
    assert not [name for name in loaded if name.startswith(("bnw.node.node", "bnw.transport", "bnw.store"))]


@pytest.mark.parametrize("arguments", [("init",), ("catalog",)], ids=" ".join)
def test_neither_does_a_command_that_makes_a_home_or_starts_a_node_load_the_network(
    tmp_path: Path, arguments: tuple[str, ...]
) -> None:
    home = tmp_path / "home"
    if arguments != ("init",):
        bnw("init", home=home).succeeded()
    assert loaded_by(*arguments, home=home) & {"libp2p", "multiaddr", "trio"} == set()


def test_the_client_of_the_api_loads_nothing_that_is_slow() -> None:
    script = "import sys, bnw.api.client, bnw.cli.node_process; print(*sorted(sys.modules))"
    done = subprocess.run([sys.executable, "-c", script], env=variables(), capture_output=True, text=True, check=True)
    assert {name.partition(".")[0] for name in done.stdout.split()} & set(SLOW) == set()
