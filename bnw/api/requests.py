"""Reading requests and streaming answers: bounds on bodies, parameters with errors that name them, lines of JSON."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TypeVar

import anyio
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from bnw.api.render import encode_json, error_json
from bnw.identity.keys import IdentityId, parse_did_key
from bnw.invoke.requester import OnStep
from bnw.transport.tasks import background_tasks
from bnw.wire.content_id import CONTENT_ID_SIZE, ContentId, parse_content_id
from bnw.wire.errors import BnwError, ExitStatus, InvalidError, LocalError, RemoteError
from bnw.wire.limits import KIB

MAX_JSON_BODY = 256 * KIB
MAX_STEPS_WAITING = 1024
BODY = "the request's body"
JSON_TYPE = "application/json"
LINES_TYPE = "application/x-ndjson"

T = TypeVar("T")
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


async def answer_http_error(request: Request, error: Exception) -> Response:
    """The same for what Starlette itself refuses: an unknown path, or a method that a path does not have."""
    assert isinstance(error, HTTPException)
    place = f"{request.method} {request.url.path}"
    cure = "this node's version of BNW may be another than the command's; `bnw --version` tells"
    refusal = LocalError("route", "the node has no such request", place=place, cure=cure, exit_status=ExitStatus.USAGE)
    return answer(error_json(refusal), error.status_code)


async def answer_fault(request: Request, error: Exception) -> Response:
    """The same for a fault of ours, whose traceback goes to the node's log."""
    return answer(error_json(fault(request.url.path)), 500)


def fault(path: str) -> LocalError:
    cure = "the node's log says why (`bnw run` prints it); please report it"
    return LocalError("internal", "the node failed to answer", place=path, cure=cure)


async def read_body(request: Request, limit: int) -> bytes:
    """The body, of at most `limit` bytes. Raises `LocalError` (`too-large`, `request`)."""
    body = bytearray()
    try:
        async for piece in request.stream():
            body += piece
            if len(body) > limit:
                raise LocalError("too-large", f"more than {limit:,} bytes", place=BODY, exit_status=ExitStatus.USAGE)
    except ClientDisconnect:
        raise bad_request("it ended before it was complete", BODY) from None
    return bytes(body)


async def read_json_body(request: Request) -> dict[str, Any]:
    """A JSON object. Raises `LocalError` (`request`, `too-large`)."""
    body = await read_body(request, MAX_JSON_BODY)
    try:
        value = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise bad_request("it is not JSON", BODY) from error
    if not isinstance(value, dict):
        raise bad_request("it is not a JSON object", BODY)
    return value


def bad_request(cause: str, place: str | None = None) -> LocalError:
    return LocalError("request", cause, place=place, exit_status=ExitStatus.USAGE)


def text_of(values: Mapping[str, Any], name: str, default: str | None = None) -> str:
    """A text parameter. Raises `LocalError` (`request`) if it is missing and has no default, or is no text."""
    value = values.get(name, default)
    if not isinstance(value, str):
        raise bad_request("a text is needed", name)
    return value


def reference_of(values: Mapping[str, Any]) -> str:
    """The parameter `reference`: a capability's name, manifest id, or `<did:key>/<name>`. Raises `LocalError`."""
    text = text_of(values, "reference")
    if len(text) == 2 * CONTENT_ID_SIZE and "/" not in text:
        content_id_of(text, "reference")
    elif text.startswith("did:key:"):
        identity_of(text.partition("/")[0], "reference")
    return text


def system_text_of(values: Mapping[str, Any], name: str, within: str = "", *, default: str | None = None) -> str:
    """A text parameter that the operating system must take: a path, or a variable's value."""
    place = f"{within}{name}"
    return system_text(text_of({place: values[name]} if name in values else {}, place, default), place)


def system_text(text: str, place: str) -> str:
    """`text` if the operating system can take it. Raises `LocalError` (`request`)."""
    try:
        data = os.fsencode(text)
    except UnicodeEncodeError:
        raise bad_request("a text that is valid Unicode is needed", place) from None
    if b"\0" in data:
        raise bad_request("a text without NUL characters is needed", place)
    return text


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
    return _number_of(values, name, default, most, "milliseconds")


def bytes_of(values: Mapping[str, Any], name: str, default: int, *, most: int) -> int:
    return _number_of(values, name, default, most, "bytes")


def _number_of(values: Mapping[str, Any], name: str, default: int, most: int, unit: str) -> int:
    text = str(values.get(name, default))
    if not text.isascii() or not text.isdecimal() or not 0 < int(text[:18]) <= most:
        raise bad_request(f"a number of {unit} from 1 to {most:,} is needed", name)
    return int(text)


def identity_of(text: str, place: str) -> IdentityId:
    with blamed_on(place):
        return parse_did_key(text)


def content_id_of(text: str, place: str) -> ContentId:
    with blamed_on(place):
        return parse_content_id(text)


@contextmanager
def blamed_on(place: str) -> Iterator[None]:
    """What is invalid in the body is the caller's fault, at `place`."""
    try:
        yield
    except InvalidError as error:
        raise error.at(place) from error


async def with_steps(emit: Emit, work: Callable[[OnStep], Awaitable[T]]) -> T:
    """Do `work` and emit a line for each step that it tells of.

    To a reader that does not read, steps beyond `MAX_STEPS_WAITING` are not told; the work goes on.
    """
    steps, told = anyio.create_memory_object_stream[Mapping[str, str]](MAX_STEPS_WAITING)
    results: list[T] = []

    def on_step(step: str, details: Mapping[str, str]) -> None:
        with contextlib.suppress(anyio.WouldBlock):
            steps.send_nowait({"event": "step", "step": step, **details})

    async def run() -> None:
        with steps:
            results.append(await work(on_step))

    async with background_tasks() as tasks, told:
        tasks.start_soon(run)
        async for step in told:
            await emit(step)
    return results[0]


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
            except Exception:
                await emit({"event": "error", **error_json(fault(scope["path"]))})
                raise
            await send({"type": "http.response.body", "body": b"", "more_body": False})


async def _cancel_when_gone(receive: Receive, scope: anyio.CancelScope) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
    scope.cancel()
