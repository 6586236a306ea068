"""Whatever is wrong, a command ends with one clear line, the right exit status, and nothing lost."""

from __future__ import annotations

import socket
import sqlite3
from pathlib import Path

import pytest

from bnw.cli.node_process import NodeProcess
from bnw.node.home import Home
from bnw.node.opening import initialise_home
from tests.cli.terminal import Ended, bnw, command, environment

REFUSED, USAGE, UNREACHABLE, DEADLINE = 1, 2, 3, 4


def provide(node: NodeProcess, program: str, name: str = "test/echo") -> None:
    """Publish an opaque capability on `node` and answer its calls with a shell program, for anyone."""
    with node.client() as client:
        client.post_bytes("/v1/catalog", b"opaque", name=name)
        body = {"reference": name, "arguments": ["/bin/sh", "-c", program], "anyone": True, "detach": True}
        client.post("/v1/provide", body)


def invoke(node: NodeProcess, *options: str, data: str = "x", name: str = "test/echo") -> Ended:
    return bnw(node.home.path, "invoke", name, "--data", data, "--patience", "20s", *options)


class TestPathsAndFiles:
    def test_a_wrong_path_is_named(self, node: NodeProcess) -> None:
        ended = bnw(node.home.path, "publish", "test/echo", "/nowhere/descriptor.json")
        assert ended.status == USAGE
        assert "/nowhere/descriptor.json: No such file" in ended.complaint

    def test_unreadable_json_is_refused_and_nothing_is_published(self, node: NodeProcess, tmp_path: Path) -> None:
        file = tmp_path / "descriptor.json"
        file.write_text('{"profile": "bnw.capability-profile/1", ')
        ended = bnw(node.home.path, "publish", "test/echo", str(file))
        assert ended.status == USAGE
        assert f"{file}: not readable as JSON: " in ended.complaint
        assert "line 1 column 41" in ended.complaint
        assert bnw(node.home.path, "catalog", "--json").json == {"capabilities": []}

    def test_a_profile_that_breaks_its_rules_is_not_published(self, node: NodeProcess, tmp_path: Path) -> None:
        file = tmp_path / "descriptor.json"
        file.write_text('{"profile": "bnw.capability-profile/1", "name": ""}')
        ended = bnw(node.home.path, "publish", "test/echo", str(file))
        assert ended.status == REFUSED
        assert "not a valid bnw.capability-profile/1" in ended.complaint
        assert bnw(node.home.path, "catalog", "--json").json == {"capabilities": []}

    def test_an_output_file_is_never_written_over_by_accident(self, node: NodeProcess, tmp_path: Path) -> None:
        kept = tmp_path / "precious"
        kept.write_text("precious")
        source = tmp_path / "source"
        source.write_text("blob")
        id = bnw(node.home.path, "blob", "add", str(source), "--json").json["blobs"][0]["id"]
        ended = bnw(node.home.path, "blob", "get", id, "--output", str(kept))
        assert ended.status == USAGE
        assert f"{kept}: there is a file of this name already" in ended.complaint
        assert kept.read_text() == "precious"
        assert bnw(node.home.path, "blob", "get", id, "--output", str(kept), "--force").status == 0
        assert kept.read_text() == "blob"
        assert sorted(path.name for path in tmp_path.iterdir()) == ["home", "precious", "source"]

    @pytest.mark.parametrize(
        ("text", "complaint"),
        [
            ("peers = [", "not readable as TOML"),
            ('peer = ["/ip4/127.0.0.1/tcp/1"]', "did you mean 'peers'?"),
            ("listen = 4001", "listen must be a list of addresses"),
            ('network = "not a name"', "network"),
        ],
    )
    def test_a_configuration_that_cannot_be_meant_stops_the_node(self, home: Home, text: str, complaint: str) -> None:
        home.configuration.write_text(text)
        ended = bnw(home.path, "run")
        assert ended.status == USAGE
        assert complaint in ended.complaint
        assert str(home.configuration) in ended.complaint


class TestHomesAndKeys:
    def test_without_a_home_every_command_names_the_cure(self, tmp_path: Path) -> None:
        for arguments in (["status"], ["catalog"], ["id"], ["run"]):
            ended = bnw(tmp_path / "nothing", *arguments)
            assert ended.status == USAGE
            assert "`bnw init` makes one" in ended.complaint

    def test_status_without_a_node_says_how_to_start_one(self, home: Home) -> None:
        ended = bnw(home.path, "status", "--json")
        assert ended.status == UNREACHABLE
        assert ended.json["error"]["code"] == "no-node"
        assert "`bnw run`" in ended.json["error"]["cure"]

    def test_a_second_node_on_a_home_is_refused_and_the_first_goes_on(self, node: NodeProcess) -> None:
        ended = bnw(node.home.path, "run")
        assert ended.status == REFUSED
        assert f"another node runs on this home (process {node.ready['process']})" in ended.complaint
        assert bnw(node.home.path, "status", "--json").json["identity"] == node.ready["identity"]

    def test_init_touches_nothing_that_is_there(self, home: Home) -> None:
        before = home.keystore.read_bytes()
        ended = bnw(home.path, "init")
        assert ended.status == USAGE
        assert "it was not touched" in ended.complaint
        assert home.keystore.read_bytes() == before

    def test_a_keystore_that_others_can_read_is_not_used(self, home: Home) -> None:
        home.keystore.chmod(0o644)
        ended = bnw(home.path, "run")
        assert ended.status == REFUSED
        assert "others may access this file" in ended.complaint
        assert f"chmod 600 {home.keystore}" in ended.complaint

    def test_a_wrong_passphrase_is_told_from_a_right_one(self, tmp_path: Path) -> None:
        home = Home(tmp_path / "protected")
        assert bnw(home.path, "init", BNW_PASSPHRASE="correct horse").status == 0
        wrong = bnw(home.path, "id", BNW_PASSPHRASE="battery staple")
        assert wrong.status == REFUSED
        assert "the passphrase does not open the keystore" in wrong.complaint
        missing = bnw(home.path, "id")
        assert missing.status == USAGE
        assert "set BNW_PASSPHRASE" in missing.complaint
        word = tmp_path / "word"
        word.write_text("correct horse\n")
        assert bnw(home.path, "id", "--passphrase-file", str(word)).status == 0
        assert bnw(home.path, "catalog", BNW_PASSPHRASE="correct horse").status == 0

    def test_a_damaged_database_is_reported_and_left_as_it_is(self, home: Home) -> None:
        with NodeProcess.started(home) as process, process.client() as client:
            client.post_bytes("/v1/catalog", b"opaque", name="test/echo")
        database = home.store / "index.sqlite"
        size = database.stat().st_size
        with database.open("r+b") as file:
            file.write(b"not a database any more" * 10)
        before = database.read_bytes()
        ended = bnw(home.path, "run")
        assert ended.status == REFUSED
        assert str(database) in ended.complaint
        assert database.read_bytes() == before
        assert len(before) == size

    def test_a_port_in_use_is_named(self, home: Home) -> None:
        with socket.create_server(("127.0.0.1", 0)) as taken:
            port = taken.getsockname()[1]
            ended = bnw(home.path, "run", "--listen", f"/ip4/127.0.0.1/tcp/{port}")
        assert ended.status == REFUSED
        assert str(port) in ended.complaint

    @pytest.mark.parametrize("option", ["--listen", "--peer"])
    def test_an_address_that_is_none_is_refused(self, home: Home, option: str) -> None:
        ended = bnw(home.path, "run", option, "127.0.0.1:4001")
        assert ended.status != 0
        assert "127.0.0.1:4001" in ended.complaint


class TestCalls:
    def test_an_unknown_capability(self, node: NodeProcess) -> None:
        ended = bnw(node.home.path, "invoke", "no/such", "--data", "x", "--patience", "100ms")
        assert ended.status == REFUSED
        assert "no/such: no such capability" in ended.complaint

    def test_a_provider_that_is_gone(self, node: NodeProcess, second: NodeProcess) -> None:
        provide(node, "cat")
        assert invoke(second).out == b"x"
        node.process.kill()
        node.process.wait()
        ended = invoke(second, "--patience", "1s", "--json")
        assert ended.status == UNREACHABLE
        assert ended.json["error"]["code"] in {"unreachable", "no-offer"}

    def test_a_program_that_exits_3(self, node: NodeProcess, second: NodeProcess) -> None:
        provide(node, "echo went wrong >&2; exit 3")
        ended = invoke(second, "--json")
        assert ended.status == REFUSED
        assert (ended.json["status"], ended.json["code"]) == ("failed", "program-exit")
        assert "status 3" in ended.json["problem"]["title"]
        assert ended.json["problem"]["detail"].strip() == "went wrong"
        assert ended.json["receipt_verified"] is True

    def test_a_program_that_prints_too_much(self, node: NodeProcess, second: NodeProcess) -> None:
        provide(node, "head -c 17000000 /dev/zero")
        ended = invoke(second, "--json")
        assert ended.status == REFUSED
        assert (ended.json["status"], ended.json["code"]) == ("failed", "output-too-large")

    def test_a_deadline_that_passes(self, node: NodeProcess, second: NodeProcess) -> None:
        provide(node, "sleep 60")
        ended = invoke(second, "--deadline", "1s")
        assert ended.status == DEADLINE

    def test_nobody_may_call_unless_allowed(self, node: NodeProcess, second: NodeProcess) -> None:
        with node.client() as client:
            client.post_bytes("/v1/catalog", b"opaque", name="test/echo")
            client.post("/v1/provide", {"reference": "test/echo", "arguments": ["/bin/cat"], "detach": True})
        ended = invoke(second, "--json")
        assert ended.status == REFUSED
        assert (ended.json["status"], ended.json["code"]) == ("rejected", "not-allowed")

    def test_a_program_that_does_not_exist(self, node: NodeProcess) -> None:
        ended = bnw(node.home.path, "provide", "test/echo", "--exec", "no-such-program --flag")
        assert ended.status == USAGE
        assert "no-such-program" in ended.complaint

    def test_an_identity_that_is_none(self, node: NodeProcess) -> None:
        with node.client() as client:
            client.post_bytes("/v1/catalog", b"opaque", name="test/echo")
        ended = bnw(node.home.path, "provide", "test/echo", "--exec", "cat", "--allow", "everybody")
        assert ended.status == USAGE
        assert "everybody" in ended.complaint or "did:key" in ended.complaint

    def test_a_blob_that_nobody_has(self, node: NodeProcess) -> None:
        ended = bnw(node.home.path, "blob", "get", "00" * 32)
        assert ended.status != 0
        assert "00" * 32 in ended.complaint

    def test_a_node_calls_no_capability_of_its_own(self, node: NodeProcess) -> None:
        provide(node, "cat")
        ended = invoke(node)
        assert ended.status == REFUSED
        assert "bnw init --home" in ended.complaint


def test_a_full_disk_is_reported_and_loses_nothing(home: Home, tmp_path: Path) -> None:
    """The node may write 1 MiB to any file; a real `ENOSPC` is tried in tests/store, on a file system of its own."""
    import resource
    import subprocess

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))

    small, large = tmp_path / "small", tmp_path / "large"
    small.write_bytes(b"kept")
    large.write_bytes(bytes(3 << 20))
    running = subprocess.Popen(
        command(home.path, "run", "--json"),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        env=environment(PYTHONUNBUFFERED="1"),
        preexec_fn=limit,
    )
    try:
        assert running.stdout is not None
        while (line := running.stdout.readline()) and line.strip() != b"}":
            pass
        id = bnw(home.path, "blob", "add", str(small), "--json").json["blobs"][0]["id"]
        ended = bnw(home.path, "blob", "add", str(large))
        assert ended.status == REFUSED
        assert "full" in ended.complaint or "too large" in ended.complaint.lower()
        assert bnw(home.path, "blob", "get", id).out == b"kept"
    finally:
        running.terminate()
        running.wait(20)
    assert bnw(home.path, "blob", "get", id).out == b"kept"
    assert not [path for path in home.store.rglob("*") if path.is_file() and path.stat().st_size > 2 << 20]


def test_a_database_from_the_future_is_left_alone(home: Home) -> None:
    initialised = home.store / "index.sqlite"
    with NodeProcess.started(home):
        pass
    with sqlite3.connect(initialised) as database:
        database.execute("PRAGMA user_version = 999")
    ended = bnw(home.path, "run")
    assert ended.status == REFUSED
    assert "999" in ended.complaint


def test_homes_are_never_shared_by_accident(tmp_path: Path) -> None:
    first, other = Home(tmp_path / "a"), Home(tmp_path / "b")
    initialise_home(first)
    initialise_home(other)
    assert bnw(first.path, "id").out != bnw(other.path, "id").out
