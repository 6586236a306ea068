"""What is wrong with a command line is said before anything is started: what, where, and what to do."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from commands import BNW, bnw, refused, variables

from bnw.wire.limits import MAX_BLOB, MAX_DESCRIPTOR, MAX_PAYLOAD

ID = "0" * 64
PEER = "12D3KooWHAEBbhBpJb3krotjGLAwyKoudBP8XnJekUCVss1LvEUP"


@pytest.mark.parametrize(
    "arguments",
    [
        ("status",),
        ("id",),
        ("run",),
        ("catalog",),
        ("invoke", "finance/lookup", "--data", "x"),
        ("provide", "finance/lookup", "--exec", sys.executable, "--detach"),
        ("blob", "add", __file__),
    ],
    ids=lambda arguments: " ".join(arguments[:2]),
)
def test_without_a_home_every_command_says_how_to_make_one(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    error = refused(*arguments, home=tmp_path / "none", status=2, code="home-missing", place=tmp_path / "none")
    assert "`bnw init`" in error["cure"]
    assert not (tmp_path / "none").exists()


@pytest.mark.parametrize("command", ["status", "peers"])
def test_without_a_running_node_its_state_cannot_be_shown(home: Path, command: str) -> None:
    error = refused(command, home=home, status=3, code="no-node", place=home / "api.sock")
    assert "`bnw run`" in error["cure"]


@pytest.mark.parametrize(
    ("arguments", "path"),
    [
        (("publish", "a"), "none.json"),
        (("publish", "a", __file__, "--with"), "none.json"),
        (("blob", "add"), "none/none.json"),
        (("invoke", "a", "--input"), "."),
        (("id", "--passphrase-file"), "none"),
    ],
    ids=["publish", "with", "blob", "input", "passphrase"],
)
def test_a_wrong_path_is_named(home: Path, tmp_path: Path, arguments: tuple[str, ...], path: str) -> None:
    refused(*arguments, tmp_path / path, home=home, status=2, code="unreadable", place=tmp_path / path)


def test_a_file_that_may_not_be_read_is_named(home: Path, tmp_path: Path) -> None:
    if os.getuid() == 0:
        pytest.skip("root may read everything")
    path = tmp_path / "secret"
    path.touch(mode=0)
    refused("blob", "add", path, home=home, status=2, code="unreadable", place=path, says="Permission denied")


def test_a_home_that_may_not_be_entered_is_named(home: Path) -> None:
    if os.getuid() == 0:
        pytest.skip("root may enter everything")
    home.chmod(0)
    try:
        refused("status", home=home, status=2, code="home", place=home, says="Permission denied")
    finally:
        home.chmod(0o700)


@pytest.mark.parametrize("name", ["file", "file/below", "x" * 300], ids=["a file", "below a file", "too long"])
def test_a_home_that_cannot_be_made_is_named(tmp_path: Path, name: str) -> None:
    (tmp_path / "file").write_bytes(b"mine")
    error = refused("init", home=tmp_path / name, status=2, code="home", place=tmp_path / name)
    assert "--home" in error["cure"]
    assert (tmp_path / "file").read_bytes() == b"mine"


def test_a_home_too_long_for_the_system_is_named_by_all_commands(tmp_path: Path) -> None:
    refused("status", home=tmp_path / ("x" * 300), status=2, code="home", place=tmp_path, says="too long")


@pytest.mark.parametrize(
    ("command", "content", "where"),
    [
        ("publish", b'{"a": 1,\n "b": }', "line 2"),
        ("publish", b'"\xff"', "UTF-8"),
        ("provide", b"", "the document ends where a value is expected"),
        ("invoke", b'{"a": 1}{}', "line 1"),
    ],
    ids=["syntax", "encoding", "empty", "trailing"],
)
def test_unreadable_json_is_located(home: Path, tmp_path: Path, command: str, content: bytes, where: str) -> None:
    path = tmp_path / "broken.json"
    path.write_bytes(content)
    arguments = {
        "publish": ("publish", "a", path),
        "provide": ("provide", path, "--exec", sys.executable),
        "invoke": ("invoke", "a", "--input", path),
    }[command]
    refused(*arguments, home=home, status=2, code="json", place=path, says=where)


def test_json_given_on_the_command_line_is_checked_if_it_is_said_to_be_json(home: Path) -> None:
    arguments = ("invoke", "a", "--data", "{", "--media-type", "application/json")
    refused(*arguments, home=home, status=2, code="json", place="--data", says="line 1")


@pytest.mark.parametrize(
    ("command", "option", "address", "says"),
    [
        ("init", "--peer", "192.0.2.7:4001", "is not the address of a node"),
        ("init", "--listen", "/ip4/192.0.2.7/udp/4001", "is not the address of a node"),
        ("init", "--listen", "/ip4/192.0.2.256/tcp/4001", "holds no ip4 address"),
        ("run", "--listen", "/ip6/192.0.2.1/tcp/4001", "holds no ip6 address"),
        ("run", "--peer", "/dns/a b/tcp/4001", "holds no host name"),
        ("run", "--listen", "/ip4/192.0.2.7/tcp/65536", "has a port above 65,535"),
        ("run", "--peer", "x" * 300, "is not the address of a node"),
        ("run", "--peer", "/ip4/192.0.2.7/tcp/4001", "does not end in the id of the peer"),
        ("run", "--peer", "/ip4/192.0.2.7/tcp/4001/p2p/nobody", "does not end in a peer id"),
        ("run", "--listen", f"/ip4/192.0.2.7/tcp/4001/p2p/{PEER}", "goes on after the port"),
        ("run", "--listen", "/dns4/node.example/tcp/4001", "listening needs an IP address"),
        ("peers", "--connect", "/ip4/192.0.2.7/tcp/4001", "does not end in the id of the peer"),
    ],
)
def test_an_invalid_address_is_named_with_its_option(
    tmp_path: Path, home: Path, command: str, option: str, address: str, says: str
) -> None:
    where = tmp_path / "new" if command == "init" else home
    refused(command, option, address, home=where, status=2, code="address", place=option, says=says)
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize(
    "address",
    ["/ip4/127.0.0.1/tcp/0", "/ip6/::1/tcp/4001", f"/dns4/node.example/tcp/4001/p2p/{PEER}"],
    ids=["ip4", "ip6", "dns4"],
)
def test_a_valid_address_ends_up_in_the_configuration(tmp_path: Path, address: str) -> None:
    option = "--peer" if "/p2p/" in address else "--listen"
    bnw("init", option, address, home=tmp_path / "new").succeeded()
    assert f'["{address}"]' in (tmp_path / "new" / "config.toml").read_text()


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("listen = [", "not readable as TOML"),
        ('lisen = ["/ip4/127.0.0.1/tcp/0"]', "unknown setting 'lisen'"),
        ('listen = "/ip4/127.0.0.1/tcp/0"', "listen must be a list of addresses"),
        ('listen = ["nonsense"]', "listen: 'nonsense' is not the address of a node"),
        ('peers = ["/ip4/127.0.0.1/tcp/4001"]', "peers: '/ip4/127.0.0.1/tcp/4001' does not end in"),
        ('network = "Not A Name"', "'Not A Name' is not a valid network name"),
        ("network = 3", "network must be text"),
        ("clock_offset_ms = 1.5", "clock_offset_ms must be a whole number"),
        ("# " + "x" * 70_000, "more than 65,536 bytes"),
    ],
    ids=lambda value: value[:20],
)
def test_a_fault_in_the_configuration_is_named_and_the_file_left_alone(home: Path, text: str, says: str) -> None:
    path = home / "config.toml"
    path.write_text(text)
    refused("run", home=home, status=2, code="configuration", place=path, says=says)
    assert path.read_text() == text


def test_a_misspelt_setting_is_recognised(home: Path) -> None:
    (home / "config.toml").write_text("lisen = []")
    error = refused("run", home=home, status=2, code="configuration", place=home, says="lisen")
    assert error["cure"] == "did you mean 'listen'?"


def test_options_that_an_existing_configuration_would_override_are_not_ignored(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text('network = "mine"\n')
    where = tmp_path / "config.toml"
    refused("init", "--network", "other", home=tmp_path, status=2, code="configuration-exists", place=where)
    assert [path.name for path in tmp_path.iterdir()] == ["config.toml"]
    bnw("init", home=tmp_path).succeeded()
    assert where.read_text() == 'network = "mine"\n'


def test_init_touches_no_home_that_is_there(home: Path) -> None:
    before = {path: path.read_bytes() for path in home.iterdir()}
    refused("init", home=home, status=2, code="home-exists", place=home)
    assert {path: path.read_bytes() for path in home.iterdir()} == before


@pytest.mark.parametrize(
    ("arguments", "place"),
    [
        (("provide", "a", "--exec", sys.executable, "--allow", "bob"), "--allow"),
        (("invoke", "a", "--data", "x", "--provider", "did:web:example"), "--provider"),
    ],
)
def test_an_invalid_identity_is_named_with_its_option(home: Path, arguments: tuple[str, ...], place: str) -> None:
    error = refused(*arguments, home=home, status=2, code="did-key", place=place, says=arguments[-1])
    assert "did:key:z6Mk" in error["cure"]


@pytest.mark.parametrize(
    ("arguments", "place"),
    [
        (("publish", "Finance Lookup", sys.executable), "NAME"),
        (("withdraw", "Finance Lookup"), "NAME"),
        (("provide", "/etc/hostname", "--name", "a b", "--exec", sys.executable), "--name"),
        (("init", "--network", "Main"), "--network"),
    ],
)
def test_an_invalid_name_is_named_with_the_alphabet(home: Path, arguments: tuple[str, ...], place: str) -> None:
    error = refused(*arguments, home=home, status=2, code="name", place=place)
    assert "lowercase letters" in error["cure"]


@pytest.mark.parametrize("text", ["nothing", ID[:-1] + "A"])
def test_an_invalid_content_id_is_named(home: Path, text: str) -> None:
    refused("blob", "get", text, home=home, status=2, code="content-id", place="ID", says=text)


@pytest.mark.parametrize(
    ("command", "says"),
    [
        ("no-such-program --fast", "there is no such program"),
        ("/etc", "there is no such program"),
        ("cat 'unfinished", "No closing quotation"),
        ("", "there is no such program"),
    ],
)
def test_a_program_that_is_not_there_is_named(home: Path, command: str, says: str) -> None:
    arguments = ("provide", "a", "--exec", command)
    refused(*arguments, home=home, status=2, code="program", place=f"--exec {command!r}"[:12], says=says)


def test_a_variable_that_is_not_set_is_named(home: Path) -> None:
    arguments = ("provide", "a", "--exec", sys.executable, "--env", "NOT_SET_HERE")
    refused(*arguments, home=home, status=2, code="variable", place="--env NOT_SET_HERE")


@pytest.mark.parametrize(
    ("arguments", "limit"),
    [
        (("invoke", "a", "--input"), MAX_PAYLOAD),
        (("publish", "a"), MAX_DESCRIPTOR),
        (("blob", "add"), MAX_BLOB),
    ],
    ids=["input", "descriptor", "blob"],
)
def test_a_file_above_its_limit_is_named_with_the_limit(
    home: Path, tmp_path: Path, arguments: tuple[str, ...], limit: int
) -> None:
    path = tmp_path / "large"
    with path.open("wb") as file:
        file.truncate(limit + 1)
    refused(*arguments, path, home=home, status=2, code="too-large", place=path, says=f"{limit:,}")


@pytest.mark.parametrize("arguments", [("blob", "get", ID), ("invoke", "a", "--data", "x")], ids=["blob", "invoke"])
def test_an_existing_file_is_not_written_over(home: Path, tmp_path: Path, arguments: tuple[str, ...]) -> None:
    path = tmp_path / "mine"
    path.write_bytes(b"mine")
    link = tmp_path / "link"
    link.symlink_to("nowhere")
    for place in (path, link):
        error = refused(*arguments, "--output", place, home=home, status=2, code="exists", place=place)
        assert "--force" in error["cure"]
    assert path.read_bytes() == b"mine"


@pytest.mark.parametrize(
    ("arguments", "place", "says"),
    [
        (("nonsense",), "", "No such command 'nonsense'"),
        (("blob", "nonsense"), "blob", "No such command 'nonsense'"),
        (("blob", "add"), "blob add", "Missing argument 'FILES...'"),
        (("status", "--nonsense"), "status", "No such option"),
        (("run", "--log", "loud"), "run", "'loud' is not one of"),
        (("publish", "a", "b", "--provide", "me"), "publish", "'me' is not one of"),
        (("invoke", "a"), "invoke", "either --input or --data"),
        (("invoke", "a", "--data", "x", "--input", "y"), "invoke", "either --input or --data"),
        (("invoke", "a", "--data", "x", "--deadline", "0s"), "invoke", "'0s' is no duration"),
    ],
)
def test_wrong_usage_is_one_line_that_names_the_command(
    home: Path, arguments: tuple[str, ...], place: str, says: str
) -> None:
    text, document = bnw(*arguments, home=home), bnw(*arguments, "--json", home=home)
    assert (text.status, document.status) == (2, 2)
    error = document.document["error"]
    assert (error["code"], error["place"] or "") == ("usage", place)
    assert says in error["message"]
    assert error["cure"] == f"`{f'bnw {place}'.strip()} --help` shows how"
    assert len(text.err.splitlines()) == 1
    assert says in text.complaints[0]


def test_a_blob_cannot_be_printed_together_with_json(home: Path) -> None:
    ended = bnw("blob", "get", ID, "--json", home=home)
    assert ended.status == 2
    assert "--output" in ended.document["error"]["message"]


def test_with_no_command_at_all_the_help_is_shown() -> None:
    ended = bnw()
    assert (ended.status, ended.out) == (2, "")
    assert "bnw demo" in ended.err


def test_a_full_standard_output_is_reported_in_one_line(home: Path) -> None:
    if not Path("/dev/full").exists():
        pytest.skip("this system has no /dev/full")
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            [*BNW, "id"], env=variables(home), stdout=full, stderr=subprocess.PIPE, timeout=60, check=False
        )
    assert done.returncode == 1
    assert len(done.stderr.splitlines()) == 1
    assert b"No space left on device" in done.stderr


def test_a_reader_that_stops_reading_gets_no_traceback(home: Path) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(
        [*BNW, "id"], env=variables(home), stdout=writing, stderr=subprocess.PIPE, timeout=60, check=False
    )
    os.close(writing)
    assert (done.returncode, done.stderr) == (1, b"")


def test_a_fault_of_bnw_itself_is_one_line_with_a_way_to_the_traceback(home: Path, tmp_path: Path) -> None:
    broken = tmp_path / "broken"
    broken.mkdir()
    (broken / "sitecustomize.py").write_text(
        "import bnw.identity.keystore as k\n"
        "def broken(*args, **kwargs): raise KeyError('a\\nfault')\n"
        "k.load_keystore = k.is_protected = broken\n"
    )
    path = os.pathsep.join([str(broken), os.environ.get("PYTHONPATH", "")])
    error = bnw("id", "--json", home=home, PYTHONPATH=path).document["error"]
    assert (error["code"], "unforeseen KeyError" in error["message"]) == ("internal", True)
    text = bnw("id", home=home, PYTHONPATH=path)
    assert (text.status, len(text.err.splitlines())) == (1, 1)
    assert "Traceback" in bnw("id", home=home, PYTHONPATH=path, BNW_TRACEBACK="1").err
