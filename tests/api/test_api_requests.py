"""What the API refuses: with a status, a located error as JSON, and without harm to the node."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from raw_http import Answer, Raw

from bnw.api.client import ApiClient
from bnw.api.requests import MAX_JSON_BODY
from bnw.cli.node_process import NodeProcess
from bnw.wire.errors import BnwError, ExitStatus, LocalError
from bnw.wire.limits import MAX_BLOB, MAX_DESCRIPTOR, MAX_PAYLOAD_IN_MEMORY

PROVIDE = {"reference": "a", "arguments": ["/bin/cat"], "detach": True}
ID = "0" * 64


def refusal(answer: Answer, status: int, code: str, place: str | None, says: str = "") -> None:
    assert answer.status == status, answer
    error = answer.error
    assert sorted(error) == ["blame", "code", "cure", "exit_status", "message", "place"]
    assert (error["code"], error["place"]) == (code, place), error
    assert says in error["message"], error


@pytest.mark.parametrize(
    ("body", "says"),
    [
        (b"", "is not JSON"),
        (b"{", "is not JSON"),
        (b"[" * 100_000, "is not JSON"),
        (b"\xff", "is not JSON"),
        (b"[]", "is not a JSON object"),
        (b'"text"', "is not a JSON object"),
        (b"null", "is not a JSON object"),
    ],
    ids=["empty", "cut off", "deep", "bytes", "array", "text", "null"],
)
@pytest.mark.parametrize("target", ["/v1/connect", "/v1/provide"])
def test_a_body_that_is_no_json_object_is_refused(raw: Raw, target: str, body: bytes, says: str) -> None:
    refusal(raw.ask("POST", target, body), 400, "request", "the request's body", says)


@pytest.mark.parametrize(
    ("target", "limit"),
    [
        ("/v1/connect", MAX_JSON_BODY),
        ("/v1/catalog?name=a", MAX_DESCRIPTOR),
        ("/v1/blobs", MAX_BLOB),
        ("/v1/invoke?reference=a", MAX_PAYLOAD_IN_MEMORY),
    ],
)
def test_a_body_above_its_limit_is_refused_with_the_limit(raw: Raw, target: str, limit: int) -> None:
    answer = raw.ask("POST", target, bytes(limit + 1))
    refusal(answer, 400, "too-large", "the request's body", f"{limit:,}")


def test_a_body_of_just_its_limit_is_taken(raw: Raw) -> None:
    answer = raw.ask("POST", "/v1/blobs", bytes(MAX_BLOB))
    assert json.loads(answer.body)["size"] == MAX_BLOB
    body = json.dumps({"address": "x"}).encode()
    refusal(raw.ask("POST", "/v1/connect", body.ljust(MAX_JSON_BODY)), 400, "address", "x")


@pytest.mark.parametrize(
    ("method", "target", "body", "place"),
    [
        ("POST", "/v1/connect", {}, "address"),
        ("POST", "/v1/connect", {"address": 1}, "address"),
        ("POST", "/v1/connect", {"address": None}, "address"),
        ("POST", "/v1/catalog", None, "name"),
        ("POST", "/v1/catalog/withdraw", {}, "name"),
        ("GET", "/v1/catalog?mine=perhaps", None, "mine"),
        ("GET", "/v1/catalog/inspect", None, "reference"),
        ("GET", "/v1/catalog/inspect?reference=a&patience_ms=0", None, "patience_ms"),
        ("GET", "/v1/catalog/inspect?reference=a&patience_ms=-1", None, "patience_ms"),
        ("GET", "/v1/catalog/inspect?reference=a&patience_ms=1e3", None, "patience_ms"),
        ("GET", "/v1/catalog/inspect?reference=a&patience_ms=3600001", None, "patience_ms"),
        ("GET", f"/v1/catalog/inspect?reference=a&patience_ms={'9' * 4000}", None, "patience_ms"),
        ("GET", "/v1/catalog/inspect?reference=a&patience_ms=%D9%A1", None, "patience_ms"),
        ("POST", "/v1/invoke", None, "reference"),
        ("POST", "/v1/invoke?reference=a&deadline_ms=soon", None, "deadline_ms"),
        ("POST", "/v1/invoke?reference=a&public=2", None, "public"),
        ("POST", "/v1/provide", {}, "reference"),
        ("POST", "/v1/provide", {**PROVIDE, "arguments": []}, "arguments"),
        ("POST", "/v1/provide", {**PROVIDE, "arguments": "cat"}, "arguments"),
        ("POST", "/v1/provide", {**PROVIDE, "arguments": ["cat", 1]}, "arguments"),
        ("POST", "/v1/provide", {**PROVIDE, "arguments": ["cat"] * 257}, "arguments"),
        ("POST", "/v1/provide", {**PROVIDE, "arguments": ["a\0b"]}, "arguments"),
        ("POST", "/v1/provide", {**PROVIDE, "arguments": ["\ud800"]}, "arguments"),
        ("POST", "/v1/provide", {**PROVIDE, "environment": []}, "environment"),
        ("POST", "/v1/provide", {**PROVIDE, "environment": {"A": 1}}, "environment.A"),
        ("POST", "/v1/provide", {**PROVIDE, "environment": {"A": "\0"}}, "environment.A"),
        ("POST", "/v1/provide", {**PROVIDE, "environment": {"A=B": ""}}, "environment"),
        ("POST", "/v1/provide", {**PROVIDE, "environment": {"": ""}}, "environment"),
        ("POST", "/v1/provide", {**PROVIDE, "environment": {str(n): "" for n in range(257)}}, "environment"),
        ("POST", "/v1/provide", {**PROVIDE, "directory": 1}, "directory"),
        ("POST", "/v1/provide", {**PROVIDE, "directory": "/\0"}, "directory"),
        ("POST", "/v1/provide", {**PROVIDE, "anyone": "yes"}, "anyone"),
        ("POST", "/v1/provide", {**PROVIDE, "idempotent": []}, "idempotent"),
        ("POST", "/v1/provide", {**PROVIDE, "listed": "x"}, "listed"),
        ("POST", "/v1/provide", {**PROVIDE, "reference": None}, "reference"),
        ("POST", "/v1/provide/stop", {}, "capability"),
    ],
)
def test_a_missing_or_wrong_parameter_is_named(raw: Raw, method: str, target: str, body: object, place: str) -> None:
    answer = raw.ask(method, target) if body is None else raw.post(target, body)
    refusal(answer, 400, "request", place)
    assert answer.error["exit_status"] == ExitStatus.USAGE


@pytest.mark.parametrize(
    ("method", "target", "body", "code", "place"),
    [
        ("POST", "/v1/connect", {"address": "nonsense"}, "address", "nonsense"),
        ("POST", "/v1/catalog?name=A+B", None, "name", "name"),
        ("POST", "/v1/catalog?name=%FF", None, "name", "name"),
        ("POST", "/v1/catalog/withdraw", {"name": "\ud800"}, "name", "name"),
        ("POST", "/v1/catalog/withdraw", {"name": "A" * 100_000}, "name", "name"),
        ("GET", f"/v1/catalog/inspect?reference={'Z' * 64}", None, "content-id", "reference"),
        ("GET", "/v1/catalog/inspect?reference=did:key:z6Mk/a", None, "did-key", "reference"),
        ("POST", "/v1/provide", {**PROVIDE, "listed": ["bob"]}, "did-key", "listed"),
        ("POST", "/v1/provide", {**PROVIDE, "reference": "Z" * 64}, "content-id", "reference"),
        ("POST", "/v1/provide/stop", {"capability": "Z"}, "content-id", "capability"),
        ("POST", "/v1/invoke?reference=did:key:z6Mk/a", None, "did-key", "reference"),
        ("POST", "/v1/invoke?reference=a&provider=bob", None, "did-key", "provider"),
        ("GET", "/v1/blobs/nonsense", None, "content-id", "the blob's id"),
        ("GET", "/v1/blobs/%00%FF", None, "content-id", "the blob's id"),
    ],
)
def test_a_parameter_of_the_wrong_form_keeps_the_code_of_its_rule(
    raw: Raw, method: str, target: str, body: object, code: str, place: str
) -> None:
    answer = raw.ask(method, target) if body is None else raw.post(target, body)
    refusal(answer, 400, code, place)


@pytest.mark.parametrize(
    ("method", "target", "status"),
    [("GET", "/", 404), ("GET", "/v2/status", 404), ("POST", "/v1/status", 405), ("DELETE", "/v1/blobs", 405)],
)
def test_an_unknown_request_is_named(raw: Raw, method: str, target: str, status: int) -> None:
    refusal(raw.ask(method, target), status, "route", f"{method} {target}")


@pytest.mark.parametrize(
    "head",
    [
        b"nonsense\r\n\r\n",
        b"GET /v1/status HTTP/1.1\r\n\r\n",
        b"POST /v1/blobs HTTP/1.1\r\nHost: x\r\nContent-Length: -5\r\n\r\n",
        b"POST /v1/blobs HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"GET /\xff HTTP/1.1\r\nHost: x\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: x\r\n" + b"X: " + b"y" * 40_000,
    ],
    ids=["no http", "no host", "length", "chunks", "path", "endless header"],
)
def test_what_is_no_http_is_refused(raw: Raw, head: bytes) -> None:
    with raw.connected() as connection:
        connection.sendall(head)
        assert connection.recv(100).startswith(b"HTTP/1.1 4")


def test_a_client_that_goes_away_in_the_middle_of_a_body_changes_nothing(raw: Raw, node: NodeProcess) -> None:
    before = node.client().get("/v1/status")
    for target in ("/v1/blobs", "/v1/catalog?name=half", "/v1/connect"):
        with raw.connected() as connection:
            head = f"POST {target} HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n"
            connection.sendall(head.encode() + b"half of it")
    after = node.client().get("/v1/status")
    assert {**after, "unreachable": None} == {**before, "unreachable": None}


def test_a_text_from_elsewhere_cannot_break_the_answer(raw: Raw) -> None:
    answer = raw.post("/v1/connect", {"address": "\x1b[2J\udc80\u2028 evil"})
    assert answer.status == 400
    assert answer.body.isascii()
    assert answer.error["place"] == "\x1b[2J\udc80\u2028 evil"


@pytest.mark.parametrize(
    ("ask", "code", "exit_status"),
    [
        (lambda client: client.get("/v1/catalog/inspect", reference="no/such", patience_ms=1), "unknown-capability", 1),
        (lambda client: client.get_bytes(f"/v1/blobs/{ID}"), "blob-not-found", 3),
        (lambda client: client.get_bytes("/v1/blobs/nonsense"), "content-id", 2),
        (lambda client: client.post("/v1/catalog/withdraw", {"name": "no/such"}), "unknown-capability", 1),
        (lambda client: client.post_bytes("/v1/blobs", bytes(MAX_BLOB + 1)), "too-large", 2),
        (lambda client: client.get("/v1/nonsense"), "route", 2),
    ],
    ids=["refused", "unreachable", "form", "withdraw", "size", "route"],
)
def test_the_client_raises_what_the_node_raised(
    node: NodeProcess, ask: Callable[[ApiClient], object], code: str, exit_status: int
) -> None:
    with pytest.raises(BnwError) as caught:
        ask(node.client())
    assert (caught.value.code, int(caught.value.exit_status)) == (code, exit_status)
    assert caught.value.place
    assert caught.value.cause


def test_a_refusal_at_the_head_of_a_request_reaches_a_client_that_still_sends(node: NodeProcess) -> None:
    """The node answers without having read the body, and closes."""
    for _ in range(20):
        client = node.client()
        with (
            pytest.raises(LocalError, match="does not hold an Ed25519 key"),
            client.lines("POST", "/v1/invoke", data=bytes(4_000_000), reference="did:key:z6Mk/a"),
        ):
            pytest.fail("it was taken")
