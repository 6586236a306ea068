"""Fetching a live host's document: from a real HTTP server, with every bound met once."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from bnw.profiles.openwop.fetch import document_url, fetch_capabilities, is_public
from bnw.profiles.openwop.plugin import OpenWopPlugin
from bnw.wire.errors import BnwError, ExitStatus

pytestmark = pytest.mark.anyio

DOCUMENT = (Path(__file__).parent / "samples/openwop-host.json").read_bytes()
WELL_KNOWN = "/.well-known/openwop"


class Handler(BaseHTTPRequestHandler):
    """Answers by the first part of the path."""

    requests: list[tuple[str, str | None]] = []  # noqa: RUF012 - reset by the fixture
    release = threading.Event()

    def do_GET(self) -> None:
        self.requests.append((self.path, self.headers.get("Accept-Encoding")))
        kind = self.path.removesuffix(WELL_KNOWN)
        if kind == "/hop":
            self.answer(302, {"Location": WELL_KNOWN})
        elif kind == "/loop":
            self.answer(307, {"Location": self.path})
        elif kind == "/file":
            self.answer(301, {"Location": "file:///etc/passwd"})
        elif kind == "/missing":
            self.answer(404, {}, b"no")
        elif kind == "/page":
            self.answer(200, {"Content-Type": "text/html; charset=utf-8"}, b"<p>")
        elif kind == "/vendor":
            self.answer(200, {"Content-Type": "application/vnd.host+json;v=1"}, DOCUMENT)
        elif kind == "/untyped":
            self.answer(200, {}, DOCUMENT)
        elif kind == "/gzip":
            self.answer(200, {"Content-Encoding": "gzip"}, b"\x1f\x8b")
        elif kind == "/announced":
            self.answer(200, {"Content-Length": str(10**12)})
        elif kind == "/endless":
            self.send_response(200)
            self.end_headers()
            while not self.release.is_set():
                try:
                    self.wfile.write(b" " * 65536)
                except OSError:
                    return
        elif kind == "/silent":
            self.release.wait(20)
        else:
            self.answer(200, {"Content-Type": "application/json"}, DOCUMENT)

    def answer(self, status: int, headers: dict[str, str], body: bytes = b"") -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *arguments: object) -> None:
        pass


@pytest.fixture
def url() -> Iterator[str]:
    Handler.requests.clear()
    Handler.release.clear()
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        Handler.release.set()
        server.shutdown()
        thread.join()


async def fault(url: str, **options: object) -> tuple[str, ExitStatus]:
    with pytest.raises(BnwError) as caught:
        await fetch_capabilities(url, **options)  # type: ignore[arg-type]  # options of several types
    return caught.value.code, caught.value.exit_status


async def test_the_document_of_a_live_host_is_fetched_and_valid(url: str) -> None:
    data = await fetch_capabilities(url, allow_private=True)
    assert data == DOCUMENT
    assert OpenWopPlugin().parse(data).errors == ()
    assert Handler.requests == [(WELL_KNOWN, "identity")]


async def test_a_private_address_is_refused_unless_allowed_and_never_contacted(url: str) -> None:
    assert await fault(url) == ("private-address", ExitStatus.REFUSED)
    assert await fault(url.replace("127.0.0.1", "localhost")) == ("private-address", ExitStatus.REFUSED)
    assert await fault(url.replace("127.0.0.1", "2130706433")) == ("private-address", ExitStatus.REFUSED)
    assert Handler.requests == []


async def test_a_redirect_is_refused_unless_allowed(url: str) -> None:
    assert await fault(f"{url}/hop", allow_private=True) == ("http-redirect", ExitStatus.REFUSED)
    assert len(Handler.requests) == 1
    assert await fetch_capabilities(f"{url}/hop", allow_private=True, redirects=1) == DOCUMENT


async def test_redirects_are_counted_and_stay_with_http(url: str) -> None:
    assert await fault(f"{url}/loop", allow_private=True, redirects=99) == ("http-redirect", ExitStatus.REFUSED)
    assert len(Handler.requests) == 6
    assert await fault(f"{url}/file", allow_private=True, redirects=1) == ("http-redirect", ExitStatus.REFUSED)


async def test_size_is_bounded_whether_announced_or_not(url: str) -> None:
    assert await fault(f"{url}/announced", allow_private=True) == ("http-too-large", ExitStatus.REFUSED)
    assert await fault(f"{url}/endless", allow_private=True) == ("http-too-large", ExitStatus.REFUSED)
    assert await fault(url, allow_private=True, max_bytes=len(DOCUMENT) - 1) == ("http-too-large", ExitStatus.REFUSED)
    assert await fetch_capabilities(url, allow_private=True, max_bytes=len(DOCUMENT)) == DOCUMENT


async def test_time_is_bounded(url: str) -> None:
    assert await fault(f"{url}/silent", allow_private=True, timeout=0.2) == ("http-deadline", ExitStatus.DEADLINE)


async def test_what_says_that_it_is_no_json_is_refused(url: str) -> None:
    assert await fault(f"{url}/page", allow_private=True) == ("http-content-type", ExitStatus.REFUSED)
    assert await fetch_capabilities(f"{url}/vendor", allow_private=True) == DOCUMENT
    assert await fetch_capabilities(f"{url}/untyped", allow_private=True) == DOCUMENT


async def test_other_answers_are_errors_with_their_codes(url: str) -> None:
    assert await fault(f"{url}/missing", allow_private=True) == ("http-status", ExitStatus.REFUSED)
    assert await fault(f"{url}/gzip", allow_private=True) == ("http-encoding", ExitStatus.REFUSED)
    assert await fault("http://127.0.0.1:1", allow_private=True) == ("http-unreachable", ExitStatus.UNREACHABLE)
    tls = url.replace("http:", "https:")
    assert await fault(tls, allow_private=True) == ("http-unreachable", ExitStatus.UNREACHABLE)


@pytest.mark.parametrize(
    ("url", "target"),
    [
        ("https://host.example", "https://host.example/.well-known/openwop"),
        ("https://host.example/", "https://host.example/.well-known/openwop"),
        ("http://host.example:8080/base/", "http://host.example:8080/base/.well-known/openwop"),
        ("https://host.example/.well-known/openwop", "https://host.example/.well-known/openwop"),
        ("https://host.example/.well-known/openwop?x=1#part", "https://host.example/.well-known/openwop?x=1"),
    ],
)
async def test_a_base_url_leads_to_the_document(url: str, target: str) -> None:
    assert document_url(url) == target


@pytest.mark.parametrize(
    "url",
    ["", "host.example", "ftp://host.example", "file:///etc/passwd", "https://", "https://user:pw@host.example",
     "https://host.example:99999", "https://ho st.example", "https://hóst.example", "http://[::1", "https://h/\n" ],
)  # fmt: skip
async def test_what_is_no_plain_http_url_is_refused(url: str) -> None:
    assert await fault(url) == ("url", ExitStatus.USAGE)


@pytest.mark.parametrize("address", ["8.8.8.8", "2606:4700::1", "::ffff:8.8.8.8", "64:ff9b::808:808"])
async def test_public_addresses(address: str) -> None:
    assert is_public(address)


@pytest.mark.parametrize(
    "address",
    ["127.0.0.1", "10.0.0.1", "172.16.0.1", "192.168.1.1", "169.254.169.254", "100.64.0.1", "0.0.0.0", "224.0.0.1",
     "255.255.255.255", "::", "::1", "fe80::1", "fe80::1%eth0", "fc00::1", "ff02::1", "::ffff:10.0.0.1",
     "64:ff9b::a00:1", "2002:a00:1::", "2001:0:4136:e378:8000:63bf:f5ff:fffe"],
)  # fmt: skip
async def test_addresses_that_only_this_network_can_reach(address: str) -> None:
    assert not is_public(address)


async def test_the_sample_is_what_the_server_serves() -> None:
    assert json.loads(DOCUMENT)["protocolVersion"] == "1.4"
