"""Reading requests and streaming answers: bounds on bodies, parameters with errors that name them, lines of JSON."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import anyio
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from bnw.api.render import encode_json, error_json
from bnw.identity.keys import IdentityId, parse_did_key
from bnw.transport.tasks import background_tasks
from bnw.wire.content_id import ContentId, parse_content_id
from bnw.wire.errors import BnwError, ExitStatus, InvalidError, LocalError, RemoteError
from bnw.wire.limits import KIB

MAX_JSON_BODY = 256 * KIB
JSON_TYPE = "application/json"
LINES_TYPE = "application/x-ndjson"

Emit = Callable[[Mapping[str, Any]], Awaitable[None]]

HTTP_STATUS = {
    ExitStatus.REFUSED: 409,
    ExitStatus.USAGE: 400,
    ExitStatus.UNREACHABLE: 503,
    ExitStatus.DEADLINE: 504,
}


def answer(value: Mapping[str, Any], status: int = 200) -> Response:
    return Response(encode_json(value), status, media_type=JSON_TYPE)


async def answer_error(request: Request, error: Exception) -> Response:
    """The exception handler of the application for `BnwError`."""
    assert isinstance(error, BnwError)
    status = 502 if isinstance(error, RemoteError) and error.exit_status == ExitStatus.REFUSED else None
    return answer(error_json(error), status or HTTP_STATUS[error.exit_status])


async def read_body(request: Request, limit: int) -> bytes:
    """The body, of at most `limit` bytes. Raises `LocalError` (`too-large`)."""
    body = bytearray()
    async for piece in request.stream():
        body += piece
        if len(body) > limit:
            raise LocalError("too-large", f"more than {limit:,} bytes", exit_status=ExitStatus.USAGE)
    return bytes(body)


async def read_json_body(request: Request) -> dict[str, Any]:
    """A JSON object. Raises `LocalError` (`request`, `too-large`)."""
    body = await read_body(request, MAX_JSON_BODY)
    try:
        value = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise bad_request("the body is not JSON") from error
    if not isinstance(value, dict):
        raise bad_request("the body is not a JSON object")
    return value


def bad_request(cause: str, place: str | None = None) -> LocalError:
    return LocalError("request", cause, place=place, exit_status=ExitStatus.USAGE)


def text_of(values: Mapping[str, Any], name: str, default: str | None = None) -> str:
    """A text parameter. Raises `LocalError` (`request`) if it is missing and has no default, or is no text."""
    value = values.get(name, default)
    if not isinstance(value, str):
        raise bad_request("a text is needed", name)
    return value


def flag_of(values: Mapping[str, Any], name: str) -> bool:
    value = values.get(name, False)
    if value in (True, "true", "1"):
        return True
    if value in (False, "false", "0"):
        return False
    raise bad_request("true or false is needed", name)


def texts_of(values: Mapping[str, Any], name: str, *, most: int) -> list[str]:
    value = values.get(name, [])
    if not isinstance(value, list) or len(value) > most or not all(isinstance(item, str) for item in value):
        raise bad_request(f"a list of at most {most} texts is needed", name)
    return value


def milliseconds_of(values: Mapping[str, Any], name: str, default: int, *, most: int) -> int:
    text = str(values.get(name, default))
    if not text.isascii() or not text.isdecimal() or not 0 < int(text[:18]) <= most:
        raise bad_request(f"a number of milliseconds from 1 to {most:,} is needed", name)
    return int(text)


def identity_of(text: str, place: str) -> IdentityId:
    try:
        return parse_did_key(text)
    except InvalidError as error:
        raise error.at(place) from None


def content_id_of(text: str, place: str) -> ContentId:
    try:
        return parse_content_id(text)
    except InvalidError as error:
        raise error.at(place) from None


class LineStream(Response):
    """Answers with a line of JSON for each value that `produce` emits, and cancels it when the reader goes away.

    An error ends the stream with a line of its own, since the status has been sent by then. The request's body must
    have been read before.
    """

    media_type = LINES_TYPE

    def __init__(self, produce: Callable[[Emit], Awaitable[None]]) -> None:
        super().__init__()
        del self.headers["content-length"]
        self._produce = produce

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        one_at_a_time = anyio.Lock()

        async def emit(value: Mapping[str, Any]) -> None:
            async with one_at_a_time:
                await send({"type": "http.response.body", "body": encode_json(value), "more_body": True})

        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        async with background_tasks() as tasks:
            tasks.start_soon(_cancel_when_gone, receive, tasks.cancel_scope)
            try:
                await self._produce(emit)
            except BnwError as error:
                await emit({"event": "error", **error_json(error)})
            await send({"type": "http.response.body", "body": b"", "more_body": False})


async def _cancel_when_gone(receive: Receive, scope: anyio.CancelScope) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
    scope.cancel()
