"""The commands `bnw testnet …`."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from bnw.cli.testnet.desk import Desk, testnet_command
from bnw.cli.testnet.file_command import play_file
from bnw.wire.errors import ExitStatus, LocalError

if TYPE_CHECKING:
    from bnw.cli.testnet.net import Net

TOPOLOGIES: Final = {"ring": "ring", "random": "random-regular", "full": "full"}
"""What each is called in scenario files."""


class FileOrCommand(click.Group):
    """`bnw testnet up` is a command; `bnw testnet smoke.toml` runs a scenario file."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        word = args[0]
        if word in self.commands:
            return super().resolve_command(ctx, args)
        if not word.startswith("-") and not Path(word).exists() and Path(word).name == word and "." not in word:
            known = ", ".join(self.list_commands(ctx))
            raise click.UsageError(f"{word!r} is neither a file nor one of the commands {known}.", ctx)
        return play_file.name, play_file, args


@click.group(cls=FileOrCommand, context_settings={"ignore_unknown_options": True}, subcommand_metavar="COMMAND | FILE")
def testnet() -> None:
    """Play with a network of real nodes on this machine.

    \b
    bnw testnet up --nodes 5
    bnw testnet status
    bnw testnet exec node-0 -- publish finance/lookup lookup.profile.json
    bnw testnet exec node-3 -- catalog
    bnw testnet kill node-2
    bnw testnet down

    \b
    With a scenario file (docs/simulation.md) instead of a command,
    plays the scenario with real nodes, and removes them:
    bnw testnet simulations/smoke.toml --report out.html
    """


@testnet.command()
@click.option("--nodes", "count", type=int, required=True, help="How many; each takes about 90 MiB of memory.")
@click.option(
    "--topology",
    type=click.Choice(list(TOPOLOGIES)),
    default="random",
    show_default=True,
    help="Who is connected with whom; random: four neighbours each.",
)
@testnet_command
def up(desk: Desk, count: int, topology: str) -> None:
    """Start nodes that run until `bnw testnet down`.

    \b
    Example: bnw testnet up --nodes 5 --topology ring
    """
    from bnw.cli.testnet.net import Net
    from bnw.cli.testnet.plan import check_count, neighbours_of

    check_count(count, topology)
    neighbours = neighbours_of(TOPOLOGIES[topology], count)
    with (
        Net.new(desk.directory, topology, neighbours, tell=desk.session.note) as net,
        click.progressbar(
            length=count, label=f"starting {count} nodes", file=sys.stderr, hidden=desk.session.as_json
        ) as bar,
    ):
        net.start(neighbours, started=lambda name: bar.update(1))
        net.set_up()
    from bnw.cli.testnet.showing import overview, overview_lines

    value = overview(desk.directory, net.state)
    desk.session.show(value, lambda: overview_lines(value))
    desk.session.note("`bnw testnet exec node-0 -- catalog` runs a command on a node, `bnw testnet down` ends them all")


@testnet.command()
@testnet_command
def status(desk: Desk) -> None:
    """Show the nodes: which run, with how many peers, what they know.

    \b
    Example: bnw testnet status --json
    """
    from bnw.cli.testnet.showing import overview, overview_lines

    value = overview(desk.directory, desk.directory.require())
    desk.session.show(value, lambda: overview_lines(value))


@testnet.command(
    name="exec",
    context_settings={"ignore_unknown_options": True},
    options_metavar="[OPTIONS]",
    short_help="Run a bnw command on a node's home.",
)
@click.argument("node")
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED)
@testnet_command
def exec_(desk: Desk, node: str, command: tuple[str, ...]) -> None:
    """Run a bnw COMMAND on the home of NODE, a name or a number. Ends as the command does.

    \b
    Example: bnw testnet exec node-2 -- catalog
    """
    from bnw.cli.testnet.net import find_node

    name = find_node(desk.directory.require(), node).name
    words = list(command)
    if desk.session.as_json and "--json" not in words:
        words.insert(words.index("--") if "--" in words else len(words), "--json")
    home = str(desk.directory.home(name).path)
    sys.stdout.flush()
    os.execve(  # noqa: S606 - the command takes the place of this one: its input, output and status are its own
        sys.executable, [sys.executable, "-m", "bnw.cli", *words], {**os.environ, "BNW_HOME": home}
    )


@testnet.command(short_help="End a node at once, as a crash would.")
@click.argument("node")
@testnet_command
def kill(desk: Desk, node: str) -> None:
    """End NODE at once, as a crash would (SIGKILL), with the programs that it runs.

    \b
    Example: bnw testnet kill node-2
    """
    from bnw.cli.testnet.net import Net

    with Net.existing(desk.directory) as net:
        name = _running(net, node)
        net.kill([name])
    desk.session.show({"node": name, "state": "killed"}, lambda: [f"{name} killed"])


@testnet.command()
@click.argument("node")
@testnet_command
def stop(desk: Desk, node: str) -> None:
    """Let NODE end as Ctrl-C would: it takes its offers back first.

    \b
    Example: bnw testnet stop node-2
    """
    from bnw.cli.testnet.net import Net

    with Net.existing(desk.directory) as net:
        name = _running(net, node)
        net.stop([name])
    desk.session.show({"node": name, "state": "stopped"}, lambda: [f"{name} stopped"])


@testnet.command(short_help="Start a node again after it was stopped or killed.")
@click.argument("node")
@testnet_command
def start(desk: Desk, node: str) -> None:
    """Start NODE again after it was stopped or killed, with the home that it had.

    \b
    Example: bnw testnet start node-2
    """
    from bnw.cli.testnet.net import Net
    from bnw.cli.testnet.processes import is_alive

    with Net.existing(desk.directory) as net:
        state = net.node(node)
        if is_alive(state.process):
            raise LocalError("node-running", "this node runs already", place=state.name)
        net.start([state.name])
    value = {"node": state.name, "state": "running", "address": state.address}
    desk.session.show(value, lambda: [f"{state.name} runs at {state.address}"])


@testnet.command()
@testnet_command
def down(desk: Desk) -> None:
    """End all nodes and remove their homes.

    \b
    Example: bnw testnet down
    """
    from bnw.cli.testnet.net import Net

    with Net.existing(desk.directory) as net:
        count = len(net.state.nodes)
        desk.session.note(f"ending {count} nodes")
        net.remove()
        desk.directory.remove_itself()
    value = {"nodes": count, "directory": str(desk.directory.path)}
    desk.session.show(value, lambda: [f"{count} nodes ended and removed"])


def _running(net: Net, node: str) -> str:
    """The name of a node that runs. Raises `LocalError` (`unknown-node`, `node-not-running`)."""
    from bnw.cli.testnet.processes import is_alive

    state = net.node(node)
    if not is_alive(state.process):
        raise LocalError(
            "node-not-running",
            "this node does not run",
            place=state.name,
            cure=f"`bnw testnet start {state.name}` starts it",
            exit_status=ExitStatus.UNREACHABLE,
        )
    return state.name


testnet.add_command(play_file)
