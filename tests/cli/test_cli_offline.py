"""Mail for those who are away: `bnw demo --offline`, `bnw mailbox`, `bnw inbox` and `bnw invoke --detach`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from commands import bnw, refused, refused_by_node

from bnw.cli.demo.search import search
from bnw.cli.node_process import NodeProcess
from bnw.node.configuration import Configuration
from bnw.node.home import Home
from bnw.node.opening import initialise_home

SECRET = b"nobody but the recipient reads this"


class Place(NamedTuple):
    box: NodeProcess
    sender: Path
    owner: Path
    owner_id: str


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    root = tmp_path_factory.mktemp("offline")
    for name in ("box", "sender", "owner"):
        initialise_home(Home(root / name), configuration=Configuration(network="offline"))
    with NodeProcess.started(Home(root / "box")) as box:
        [address, *_] = box.ready["addresses"]
        owner = str(bnw("id", "--json", home=root / "owner").succeeded().document["identity"])
        bnw("mailbox", "allow", owner, "--bytes", "1MiB", home=root / "box").succeeded()
        for name in ("sender", "owner"):
            bnw("mailbox", "use", address, home=root / name).succeeded()
        bnw("inbox", "list", home=root / "owner").succeeded()  # so that its record is known
        yield Place(box, root / "sender", root / "owner", owner)


def test_the_offline_demo_completes_and_the_mailbox_has_seen_nothing() -> None:
    document = bnw("demo", "--offline", "--json").succeeded().document
    assert (document["ok"], document["status"], document["carrier_saw_plaintext"]) == (True, "completed", False)
    assert document["output"]["close"] == 400.52
    assert document["receipt_verified"] is True


def test_a_file_reaches_somebody_who_is_away_and_its_mailbox_reads_nothing_of_it(place: Place, tmp_path: Path) -> None:
    file = tmp_path / "a telling name.txt"
    file.write_bytes(SECRET)
    [sent] = (
        bnw("inbox", "send", file, "--to", place.owner_id, "--json", home=place.sender).succeeded().document["sent"]
    )
    assert sent["held_by"] == [place.box.ready["peer"]]
    held = bnw("mailbox", "status", "--json", home=place.box.home.path).succeeded().document["inboxes"]
    assert [(inbox["identity"], inbox["objects"]) for inbox in held] == [(place.owner_id, 1)]
    found = search(place.box.home.path, [SECRET, b"a telling name", b"text/plain"])
    assert found.found == ()
    with NodeProcess.started(Home(place.owner)) as owner:
        until_collected(place)
        [message] = owner.client().get("/v1/inbox")["messages"]
        assert (message["name"], message["bytes"], message["id"]) == (file.name, len(SECRET), sent["id"])
        (tmp_path / "in").mkdir()
        opened = bnw("inbox", "open", sent["id"][:12], "--into", tmp_path / "in", "--json", home=place.owner)
        assert Path(str(opened.succeeded().document["file"])).read_bytes() == SECRET
        exists = {"status": 2, "code": "exists", "place": tmp_path / "in" / file.name}
        refused("inbox", "open", sent["id"], "--into", tmp_path / "in", home=place.owner, **exists)
        bnw("inbox", "ack", sent["id"], home=place.owner).succeeded()
        assert "no messages" in bnw("inbox", "list", home=place.owner).succeeded().out


def until_collected(place: Place) -> None:
    import time

    for _ in range(300):
        if all(inbox["objects"] == 0 for inbox in place.box.client().get("/v1/mailbox")["inboxes"]):
            return
        time.sleep(0.1)
    pytest.fail("nobody collected the mail within 30 s")


def test_a_full_mailbox_tells_the_sender_why_and_the_sender_keeps_nothing_of_it(place: Place, tmp_path: Path) -> None:
    large = tmp_path / "large"
    large.write_bytes(bytes(3_000_000))
    refused_by_node(
        *("inbox", "send", large, "--to", place.owner_id),
        home=place.sender,
        status=3,
        code="mail-not-taken",
        place=place.owner_id,
        says="holds as much for the recipient as it may",
    )
    blobs = [path for path in (place.sender / "store").rglob("*") if path.stat().st_size > 1_000_000]
    assert blobs == []


def test_what_the_mailbox_accepted_survives_kill_9(place: Place, tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(SECRET)
    root = tmp_path / "killed"
    initialise_home(Home(root), configuration=Configuration(network="offline"))
    with NodeProcess.started(Home(root)) as box:
        [address, *_] = box.ready["addresses"]
        bnw("mailbox", "allow", place.owner_id, home=root).succeeded()
        bnw("mailbox", "use", address, home=place.owner).succeeded()
        bnw("inbox", "list", home=place.owner).succeeded()
        bnw("peers", home=root).succeeded()
        sent = bnw("inbox", "send", file, "--to", place.owner_id, "--json", home=place.sender)
        assert box.ready["peer"] in sent.succeeded().document["sent"][0]["held_by"]
        box.process.kill()
        box.process.wait()
    bnw("mailbox", "drop", address, home=place.owner).succeeded()
    with NodeProcess.started(Home(root)) as again:
        [inbox] = again.client().get("/v1/mailbox")["inboxes"]
        assert inbox["objects"] == 1


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("mailbox", "deny", "did:key:z6MkhaXgBZDvotDkL5257faiztiGiC2QtKLGpbnnEGta2doK"), "not-served"),
        (
            ("mailbox", "drop", "/ip4/192.0.2.7/tcp/4001/p2p/12D3KooWDpJ7As7BWAwRMfu1VU2WCqNjvq387JEYKDBj4kx6nXTN"),
            "not-used",
        ),
        (("inbox", "open", "abcd"), "unknown-message"),
        (("inbox", "ack", "abcd"), "unknown-message"),
    ],
)
def test_what_cannot_be_done_is_said_with_its_cure(place: Place, arguments: tuple[str, ...], code: str) -> None:
    refused(*arguments, home=place.box.home.path, status=2, code=code, place=arguments[2])
