"""An error is the same on both sides of the API, whatever it is."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.applications import Starlette
from starlette.requests import Request

from bnw.api.client import error_of
from bnw.api.render import encode_json, error_json
from bnw.api.requests import HTTP_STATUS, answer_error, answer_fault
from bnw.api.server import application
from bnw.wire.errors import BnwError, ExitStatus, InvalidError, LocalError, RemoteError

texts = st.text(st.characters(codec=None))


@given(
    kind=st.sampled_from([LocalError, RemoteError]),
    code=texts,
    cause=texts,
    place=st.none() | texts,
    cure=st.none() | texts,
    exit_status=st.sampled_from([status for status in ExitStatus if status]),
)
def test_code_cause_place_cure_blame_and_exit_status_survive_the_crossing(
    kind: type[BnwError], code: str, cause: str, place: str | None, cure: str | None, exit_status: ExitStatus
) -> None:
    error = kind(code, cause, place=place, cure=cure, exit_status=exit_status)
    line = encode_json(error_json(error))
    assert line.isascii()
    assert line.count(b"\n") == 1
    found = error_of(line)
    assert type(found) is kind
    assert (found.code, found.cause, found.place, found.cure) == (code, cause, place, cure)
    assert found.exit_status is exit_status
    assert str(found) == str(error)


def test_an_error_that_nobody_was_blamed_for_reaches_the_caller_as_the_callers() -> None:
    found = error_of(encode_json(error_json(InvalidError("name", "is no name"))))
    assert type(found) is LocalError


@pytest.mark.parametrize(
    "content",
    [b"", b"Internal Server Error", b"[]", b"null", b'{"error": null}', b'{"error": {}}', b'{"error": {"code": "x"}}'],
)
def test_an_answer_that_is_no_error_of_bnw_becomes_one(content: bytes) -> None:
    found = error_of(content)
    assert (type(found), found.code) == (LocalError, "api")
    assert found.place
    assert found.cure


def test_an_exit_status_of_a_newer_node_is_a_refusal() -> None:
    value = error_json(LocalError("new", "something new"))
    value["error"]["exit_status"] = 99
    assert error_of(json.dumps(value).encode()).exit_status == ExitStatus.REFUSED


def test_every_way_to_fail_has_its_http_status() -> None:
    assert set(HTTP_STATUS) == {status for status in ExitStatus if status}


@pytest.mark.anyio
async def test_a_fault_of_ours_is_answered_without_its_details() -> None:
    request = Request(
        {
            "type": "http",
            "method": "GET",
            "path": "/v1/status",
            "headers": [],
            "query_string": b"",
            "server": ("node", 80),
            "scheme": "http",
        }
    )
    answer = await answer_fault(request, KeyError("secret"))
    assert answer.status_code == 500
    found = error_of(bytes(answer.body))
    assert (found.code, found.place) == ("internal", "/v1/status")
    assert "secret" not in bytes(answer.body).decode()


@pytest.mark.anyio
async def test_a_peer_that_is_to_blame_is_a_bad_gateway() -> None:
    request = Request({"type": "http"})
    answer = await answer_error(request, RemoteError("wrong-bytes", "sent other bytes"))
    assert answer.status_code == 502
    answer = await answer_error(request, RemoteError("unreachable", "is away", exit_status=ExitStatus.UNREACHABLE))
    assert answer.status_code == 503


def test_the_application_handles_every_exception() -> None:
    app = application(None)  # type: ignore[arg-type]  # no request is made of it
    assert isinstance(app, Starlette)
    assert {BnwError, Exception} <= set(app.exception_handlers)
