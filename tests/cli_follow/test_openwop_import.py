"""`bnw openwop import`: a live host's document gains a signature and a content id. From a real HTTP server."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from places import MakePlace, Place

from bnw.cli.openwop import MAX_REDIRECTS
from bnw.profiles.openwop import fetch
from bnw.wire.content_id import content_id

SAMPLE = Path(__file__).parents[1] / "profiles/samples/openwop-host.json"
DOCUMENT = SAMPLE.read_bytes()
MIB = 1024 * 1024


class Host(BaseHTTPRequestHandler):
    """Answers by the first part of the path, as hosts in all conditions do."""

    release = threading.Event()
    document = DOCUMENT
    asked: list[str] = []  # noqa: RUF012 - one list for all requests is meant

    def do_GET(self) -> None:
        self.asked.append(self.path)
        match self.path.removesuffix("/.well-known/openwop"):
            case "/moved":
                self.answer(b"", status=302, Location="/.well-known/openwop")
            case "/circle":
                self.answer(b"", status=307, Location=self.path)
            case "/large":
                self.answer(b" " * (MIB + 1))
            case "/page":
                self.answer(b"<h1>Welcome</h1>", content_type="text/html; charset=utf-8")
            case "/slow":
                self.release.wait(20)
            case "/broken":
                self.answer(DOCUMENT[:-20])
            case "/page-as-json":
                self.answer(b"<h1>Welcome</h1>")
            case "/other":
                self.answer(b'{"name": "some other API"}')
            case "/invalid":
                self.answer(DOCUMENT.replace(b'"supportedEnvelopes"', b'"supportedEnvelops"'))
            case _:
                self.answer(self.document)

    def answer(self, body: bytes, *, status: int = 200, content_type: str = "application/json", **headers: str) -> None:
        self.send_response(status)
        for name, value in {"Content-Type": content_type, **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *arguments: object) -> None:
        pass


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Host) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        Host.release.set()
        server.shutdown()
        thread.join()


@pytest.fixture(scope="module")
def place(make_place: MakePlace) -> Iterator[Place]:
    place = make_place("importer")
    with place.node():
        yield place


def test_a_live_hosts_document_is_published_and_inspected_with_its_blocks(place: Place, url: str) -> None:
    ran = place.run("openwop", "import", url, "--allow-private", "--json")
    assert ran.status == 0, ran.err
    name = f"openwop/127.0.0.1-{url.rpartition(':')[2]}"
    assert (ran.json["name"], ran.json["descriptor"]) == (name, content_id(DOCUMENT).hex())
    assert ran.json["warnings"] == []
    seen = place.run("catalog-inspect", name, "--json").json
    assert (seen["manifest_id"], seen["descriptor_bytes"]) == (ran.json["manifest_id"], len(DOCUMENT))
    assert seen["profile"]["identifier"] == "openwop.capabilities"
    assert seen["profile"]["facts"]["blocks"] == list(json.loads(DOCUMENT))
    for_people = place.run("catalog-inspect", name).out
    for block in json.loads(DOCUMENT):
        assert block in for_people
    again = place.run("openwop", "import", url, "--allow-private", "--json").json
    assert again["manifest_id"] == ran.json["manifest_id"], "importing the same again changes nothing"


def test_a_changed_document_becomes_the_next_version(place: Place, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    options = ("openwop", "import", f"{url}/base/", "--allow-private", "--json")
    first = place.run(*options).json
    assert first["name"].endswith("/base")
    monkeypatch.setattr(Host, "document", DOCUMENT + b"\n")
    second = place.run(*options).json
    assert (second["name"], second["descriptor"]) == (first["name"], content_id(DOCUMENT + b"\n").hex())
    assert second["manifest_id"] != first["manifest_id"]


def test_a_file_and_standard_input_are_imported_too(place: Place) -> None:
    said = place.run("openwop", "import", str(SAMPLE)).out
    assert said.splitlines()[0].split() == ["published", "openwop/openwop-host"]
    assert "blocks" in said
    named = place.run("openwop", "import", "-", "--name", "my/host", "--json", data=DOCUMENT).json
    assert (named["name"], named["descriptor"]) == ("my/host", content_id(DOCUMENT).hex())


@pytest.mark.parametrize(
    ("path", "options", "status", "code"),
    [
        ("/moved", [], 1, "http-redirect"),
        ("/circle", ["--redirects", "5"], 1, "http-redirect"),
        ("/large", [], 1, "http-too-large"),
        ("/page", [], 1, "http-content-type"),
        ("/slow", ["--timeout", "300ms"], 4, "http-deadline"),
        ("/broken", [], 1, "invalid-document"),
        ("/page-as-json", [], 1, "invalid-document"),
        ("/other", [], 1, "invalid-document"),
        ("/invalid", [], 1, "invalid-document"),
    ],
)
def test_what_cannot_be_imported_ends_with_its_code_and_publishes_nothing(
    place: Place, url: str, path: str, options: list[str], status: int, code: str
) -> None:
    before = place.run("catalog", "--json").json
    began = time.monotonic()
    ran = place.run("openwop", "import", url + path, "--allow-private", *options, "--json")
    assert (ran.status, ran.code) == (status, code)
    assert time.monotonic() - began < 10
    assert place.run("catalog", "--json").json == before


def test_a_redirect_is_followed_when_allowed(place: Place, url: str) -> None:
    assert place.run("openwop", "import", f"{url}/moved", "--allow-private", "--redirects", "1").status == 0


def test_private_addresses_and_other_schemes_are_refused(place: Place, url: str) -> None:
    refused = place.run("openwop", "import", url, "--json")
    assert (refused.status, refused.code) == (1, "private-address")
    scheme = place.run("openwop", "import", "ftp://host.example", "--json")
    assert (scheme.status, scheme.code) == (2, "url")
    nobody = place.run("openwop", "import", "http://127.0.0.1:1", "--allow-private", "--json")
    assert (nobody.status, nobody.code) == (3, "http-unreachable")
    missing = place.run("openwop", "import", "host.example", "--json")
    assert (missing.status, missing.code) == (2, "unreadable")
    assert "https://" in missing.json["error"]["cure"]


def test_a_name_that_cannot_be_published_is_refused_before_anything_is_fetched(place: Place, url: str) -> None:
    asked = len(Host.asked)
    for options in (["-"], [url, "--name", "Not A Name"], [f"{url}/{'long/' * 20}"]):
        ran = place.run("openwop", "import", *options, "--allow-private", "--json", data=DOCUMENT)
        assert (ran.status, ran.code) == (2, "name")
    assert len(Host.asked) == asked


def test_the_faults_of_an_invalid_document_are_all_listed_with_their_places(place: Place, url: str) -> None:
    ran = place.run("openwop", "import", f"{url}/invalid", "--allow-private")
    assert ran.status == 1
    assert "/supportedEnvelopes" in ran.out
    assert "nothing was published" in ran.err
    listed = place.run("openwop", "import", f"{url}/invalid", "--allow-private", "--json").json["errors"]
    assert "/supportedEnvelopes" in [error["pointer"] for error in listed]
    broken = place.run("openwop", "import", f"{url}/broken", "--allow-private", "--json").json["errors"]
    assert broken[0]["code"].startswith("json-")


def test_the_option_allows_as_many_redirects_as_fetching_does() -> None:
    assert MAX_REDIRECTS == fetch.MAX_REDIRECTS
