"""`bnw follow` and `bnw unfollow`, as a user types them, between processes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from places import MakePlace, Place, example

from bnw.identity.keys import did_key
from bnw.identity.keystore import load_keystore

NAME = "finance/lookup"


def publish(place: Place) -> str:
    schemas = [word for side in ("input", "output") for word in ("--with", example(f"{side}.schema.json"))]
    published = place.run("publish", NAME, example("lookup.profile.json"), *schemas, "--json")
    assert published.status == 0, published.err
    manifest: str = published.json["manifest_id"]
    return manifest


def test_a_third_process_gets_all_from_a_follower_while_the_publisher_is_stopped(make_place: MakePlace) -> None:
    publisher = make_place("stopped")
    with publisher.node() as running:
        manifest = publish(publisher)
        follower = make_place("first-follower", running.ready["addresses"])
        with follower.node() as following:
            followed = follower.run("follow", NAME, "--patience", "20s", "--json")
            assert followed.status == 0, followed.err
            [capability] = followed.json["capabilities"]
            assert (capability["state"], capability["whole_manifest_id"]) == ("whole", manifest)
            assert len(capability["blobs"]) == 3
            running.process.kill()  # without a farewell
            running.process.wait()
            # No node runs on the third home: the command runs one for its own duration.
            seen = make_place("third", following.ready["addresses"]).run("catalog-inspect", NAME, "--json")
            assert seen.status == 0, seen.err
            assert (seen.json["manifest_id"], seen.json["missing"], len(seen.json["linked"])) == (manifest, [], 2)
            assert set(seen.json["input_template"]) == {"symbol", "month"}


class Pair(NamedTuple):
    publisher: Place
    follower: Place


@pytest.fixture(scope="module")
def pair(make_place: MakePlace, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    """Two running nodes; one has published the finance example and an opaque descriptor."""
    publisher = make_place("publisher")
    opaque = tmp_path_factory.mktemp("opaque") / "opaque.bin"
    opaque.write_bytes(bytes(range(256)))
    with publisher.node() as running:
        publish(publisher)
        assert publisher.run("publish", "opaque", str(opaque)).status == 0
        follower = make_place("follower", running.ready["addresses"])
        with follower.node():
            yield Pair(publisher, follower)


def identity(place: Place) -> str:
    return did_key(load_keystore(place.home.keystore).signing_key.identity)


def test_follow_list_and_unfollow_say_what_they_did(pair: Pair) -> None:
    _, follower = pair
    publisher = identity(pair.publisher)
    assert follower.run("follow").out == "nothing is followed\n"
    said = follower.run("follow", NAME, "--patience", "20s").out
    assert said == f"following {NAME} of {publisher}\nall here          {NAME}, 3 blobs\n"
    assert follower.run("follow", publisher, "--patience", "20s").status == 0
    heading, *rows = follower.run("follow").out.splitlines()
    assert heading.split() == ["NAME", "CONTENT", "BLOBS", "PUBLISHER"]
    assert [row.split() for row in rows] == [
        [NAME, "all", "here", "3", publisher],
        ["opaque", "all", "here", "1", publisher],
        [NAME, "all", "here", "3", publisher],
    ]
    listed = follower.run("follow", "--json").json["follows"]
    assert [(entry["name"], len(entry["capabilities"])) for entry in listed] == [(None, 2), (NAME, 1)]
    assert follower.run("unfollow", NAME).out == f"no longer following {NAME} of {publisher}\n"
    assert follower.run("unfollow", publisher).out == f"no longer following all of {publisher}\n"
    assert follower.run("follow").out == "nothing is followed\n"


def test_an_opaque_descriptor_is_followed_and_inspected_as_opaque(pair: Pair) -> None:
    followed = pair.follower.run("follow", "opaque", "--patience", "20s", "--json").json
    assert [entry["state"] for entry in followed["capabilities"]] == ["whole"]
    seen = pair.follower.run("catalog-inspect", "opaque")
    assert "opaque: 256 bytes in no format known here" in seen.out
    assert pair.follower.run("catalog-inspect", "opaque", "--json").json["profile"] is None
    assert pair.follower.run("unfollow", "opaque").status == 0


def test_what_cannot_be_followed_or_unfollowed_is_an_error_with_its_code(pair: Pair) -> None:
    publisher, follower = pair
    unknown = follower.run("follow", "no/such", "--patience", "100ms", "--json")
    assert (unknown.status, unknown.code) == (1, "unknown-capability")
    assert (own := publisher.run("follow", NAME, "--json")).status == 1
    assert own.code == "own-capability"
    broken = follower.run("follow", "did:key:zzz", "--json")
    assert (broken.status, broken.code) == (2, "did-key")
    absent = follower.run("unfollow", NAME, "--json")
    assert (absent.status, absent.code) == (1, "not-followed")
    assert "`bnw follow` lists" in follower.run("unfollow", NAME).err


def test_without_a_home_it_is_wrong_usage(tmp_path: Path) -> None:
    from bnw.node.home import Home

    assert Place(Home(tmp_path / "none")).run("follow", NAME).status == 2
