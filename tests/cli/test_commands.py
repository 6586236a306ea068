"""What holds for every command: help with an example, `--json`, and a start without the network's libraries."""

from __future__ import annotations

import json
import subprocess
import sys

import click
import pytest

from bnw.cli.main import main
from bnw.cli.node_process import NodeProcess
from bnw.node.home import Home
from tests.cli.terminal import bnw, environment


def commands(group: click.Group, *path: str) -> list[tuple[str, click.Command]]:
    found: list[tuple[str, click.Command]] = []
    for name, command in sorted(group.commands.items()):
        if isinstance(command, click.Group):
            found += commands(command, *path, name)
        else:
            found.append((" ".join([*path, name]), command))
    return found


EVERY = commands(main)


@pytest.mark.parametrize(("name", "command"), EVERY, ids=[name for name, _ in EVERY])
def test_a_command_has_json_help_and_an_example(name: str, command: click.Command) -> None:
    options = {option for parameter in command.params for option in parameter.opts}
    assert "--json" in options
    assert command.help is not None
    assert f"bnw {name}" in command.help, "the help shows how it is used"
    assert all(
        parameter.help for parameter in command.params if isinstance(parameter, click.Option) and not parameter.hidden
    )


def test_the_commands_of_the_design_are_there() -> None:
    wanted = [
        "init",
        "run",
        "status",
        "peers",
        "id",
        "publish",
        "withdraw",
        "catalog",
        "catalog-inspect",
        "provide",
        "invoke",
        "demo",
    ]
    assert {*wanted, "blob add", "blob get"} <= {name for name, _ in EVERY}


@pytest.mark.parametrize("module", ["bnw.cli.main", "bnw.api.client"])
def test_starting_loads_neither_the_network_nor_an_event_loop(module: str) -> None:
    code = f"import {module}, sys; print(sorted({{name.partition('.')[0] for name in sys.modules}}))"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert "'bnw'" in out
    for heavy in ("libp2p", "trio", "multiaddr", "hypercorn", "starlette"):
        assert f"'{heavy}'" not in out


def test_a_command_beside_a_node_does_not_load_the_network(node: NodeProcess) -> None:
    code = (
        "import sys; from bnw.cli.main import main\n"
        f"main(['status', '--json', '--home', {str(node.home.path)!r}], standalone_mode=False)\n"
        "print(sorted({name.partition('.')[0] for name in sys.modules}), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment())
    assert json.loads(done.stdout)["identity"] == node.ready["identity"]
    # (httpx looks for an installed Trio by importing it.)
    for heavy in ("libp2p", "multiaddr", "hypercorn", "starlette"):
        assert f"'{heavy}'" not in done.stderr


@pytest.mark.parametrize("arguments", [["status"], ["peers"], ["id"], ["catalog"], ["catalog", "--mine"]])
def test_json_is_one_document_on_standard_output(node: NodeProcess, arguments: list[str]) -> None:
    ended = bnw(node.home.path, *arguments, "--json")
    assert ended.status == 0
    assert ended.json
    assert ended.err == ""


def test_status_and_peers_tell_people_the_same(node: NodeProcess, second: NodeProcess) -> None:
    status = bnw(second.home.path, "status")
    assert node.ready["peer"] in bnw(second.home.path, "peers").out.decode()
    assert b"1 connected" in status.out
    assert second.ready["identity"].encode() in status.out


def test_publishing_without_a_node_reaches_the_peers_before_the_command_ends(
    node: NodeProcess, second: NodeProcess
) -> None:
    home: Home = second.home
    second.process.stdin.close()  # type: ignore[union-attr]
    second.process.wait(20)
    source = home.path / "descriptor"
    source.write_bytes(b"opaque")
    ended = bnw(home.path, "publish", "test/late", str(source), "--json")
    assert ended.status == 0
    assert "starting one for this command" not in ended.err, "JSON is not mixed with notes"
    names = [entry["name"] for entry in bnw(node.home.path, "catalog", "--json").json["capabilities"]]
    assert names == ["test/late"]
    assert bnw(home.path, "withdraw", "test/late").status == 0
    assert bnw(node.home.path, "catalog", "--json").json == {"capabilities": []}


def test_a_provider_in_the_foreground_stops_with_its_command(node: NodeProcess) -> None:
    with node.client() as client:
        client.post_bytes("/v1/catalog", b"opaque", name="test/echo")
        command = [sys.executable, "-m", "bnw.cli", "provide", "test/echo", "--exec", "cat", "--json"]
        running = subprocess.Popen(
            [*command, "--home", str(node.home.path)], stdout=subprocess.PIPE, env=environment(PYTHONUNBUFFERED="1")
        )
        assert running.stdout is not None
        first = json.loads(running.stdout.readline())
        assert first["event"] == "providing"
        assert client.get("/v1/status")["providing"] == [first["capability"]]
        again = bnw(node.home.path, "provide", "test/echo", "--exec", "cat")
        assert again.status == 1
        assert "answers calls of the capability already" in again.complaint
        with client.lines("GET", "/v1/events") as events:
            assert next(events) == {"event": "listening"}
            running.terminate()
            running.communicate(timeout=20)
        for _ in range(200):
            if client.get("/v1/status")["providing"] == []:
                return
        pytest.fail("the node still provides what its command has left")
