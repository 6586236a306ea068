"""The command line's end of the local API. Imports neither libp2p nor the node, which would cost a second.

Errors come back as they were raised: `LocalError` or `RemoteError` with code, place, cure and exit status.
"""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager, suppress
from http.client import HTTPConnection, HTTPException, HTTPResponse
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from urllib.parse import quote, urlencode

from bnw.api.socket_file import check_directory
from bnw.wire.errors import BnwError, ExitStatus, LocalError, RemoteError

CONNECT_TIMEOUT = 5.0
"""Seconds. What a node does then may take as long as a call's deadline; the node itself bounds it."""
PIECE = 1024 * 1024
JSON_TYPE = "application/json"
BYTES_TYPE = "application/octet-stream"
Json = dict[str, Any]
Parameter = str | int | bool | None


def no_node(path: Path, cause: str) -> LocalError:
    return LocalError(
        "no-node",
        f"no node answers: {cause}",
        place=str(path),
        cure="start one with `bnw run`",
        exit_status=ExitStatus.UNREACHABLE,
    )


class ApiClient:
    """Talks to the node that serves `path`. Every method raises `LocalError` (`no-node`) when none does.

    Each request has a connection of its own, so a client may be used from several threads.
    """

    def __init__(self, path: Path) -> None:
        if not path.exists():
            raise no_node(path, "there is no socket")
        check_directory(path.parent)
        self._path = path

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Nothing: no connection outlives its request."""

    def get(self, path: str, **parameters: Parameter) -> Json:
        return self._json("GET", path, parameters=parameters)

    def post(self, path: str, body: Mapping[str, Any] | None = None) -> Json:
        return self._json("POST", path, body=body or {})

    def post_bytes(self, path: str, data: bytes, **parameters: Parameter) -> Json:
        return self._json("POST", path, data=data, parameters=parameters)

    def get_bytes(self, path: str) -> bytes:
        with self._request("GET", path) as response, self._reaching():
            return response.read()

    def pieces(self, path: str, size: int) -> Iterator[bytes]:
        """An answer of `size` bytes, a piece at a time.

        Raises `RemoteError` (`output-damaged`) at its end if it is shorter: the node ends one early in which it finds
        something else than was declared.
        """
        come = 0
        with self._request("GET", path) as response, self._reaching():
            while data := response.read(PIECE):
                come += len(data)
                yield data
        if come != size:
            raise RemoteError(
                "output-damaged",
                f"{come:,} bytes came where {size:,} were declared, or the node ended",
                place=path,
                cure="the node's log says which (`bnw run` prints it)",
            )

    @contextmanager
    def lines(
        self,
        method: str,
        path: str,
        *,
        body: Mapping[str, Any] | None = None,
        data: bytes | None = None,
        **parameters: Parameter,
    ) -> Iterator[Iterator[Json]]:
        """A streamed answer, one value at a time; an error in it is raised. Leaving early ends the work behind it.

        The values end early, without an error, if the node does.
        """
        with self._request(method, path, body=body, data=data, parameters=parameters) as response:
            yield self._values(response)

    def _values(self, response: HTTPResponse) -> Iterator[Json]:
        with self._reaching():
            while (line := response.readline()).endswith(b"\n"):
                value = json.loads(line)
                if value.get("event") == "error":
                    raise _error(value["error"])
                yield value

    def _json(self, method: str, path: str, **options: Any) -> Json:
        with self._request(method, path, **options) as response, self._reaching():
            value: Json = json.loads(response.read())
        return value

    @contextmanager
    def _request(
        self,
        method: str,
        path: str,
        *,
        body: Mapping[str, Any] | None = None,
        data: bytes | None = None,
        parameters: Mapping[str, Parameter] | None = None,
    ) -> Iterator[HTTPResponse]:
        """A successful answer, still to be read; any other is raised."""
        content, kind = (data, BYTES_TYPE) if body is None else (json.dumps(dict(body)).encode(), JSON_TYPE)
        # What is not text in the caller's locale travels as the bytes that it is.
        query = urlencode(_present(parameters or {}), errors="surrogateescape")
        target = f"{quote(path)}?{query}" if query else quote(path)
        headers = {"Connection": "close"} if content is None else {"Connection": "close", "Content-Type": kind}
        with ExitStack() as stack:
            with self._reaching():
                connection = stack.enter_context(closing(_UnixConnection(self._path)))
                # A node that refuses a request at its head does not read its body, and has answered all the same.
                with suppress(BrokenPipeError, ConnectionResetError):
                    connection.request(method, target, content, headers)
                response = stack.enter_context(connection.getresponse())
                if response.status != 200:
                    raise error_of(response.read())
            yield response

    @contextmanager
    def _reaching(self) -> Iterator[None]:
        try:
            yield
        except (FileNotFoundError, ConnectionRefusedError, TimeoutError) as error:
            raise no_node(self._path, error.strerror or str(error)) from error
        except (HTTPException, ConnectionError) as error:
            raise no_node(self._path, "it ended before it had answered") from error


class _UnixConnection(HTTPConnection):
    """HTTP over a Unix socket. The standard library's client starts several times as fast as any other."""

    def __init__(self, path: Path) -> None:
        super().__init__("node")
        self._socket_path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(CONNECT_TIMEOUT)
        self.sock.connect(str(self._socket_path))
        self.sock.settimeout(None)


def _present(parameters: Mapping[str, Parameter]) -> dict[str, str]:
    """Without what was not given; flags as the API reads them."""
    named = {name: value for name, value in parameters.items() if value is not None}
    return {name: str(value).lower() if isinstance(value, bool) else str(value) for name, value in named.items()}


def error_of(content: bytes) -> BnwError:
    try:
        return _error(json.loads(content)["error"])
    except (ValueError, KeyError, TypeError):
        return LocalError(
            "api", "the node failed to answer", place="local API", cure="its log says why (`bnw run` prints it)"
        )


def _error(value: Json) -> BnwError:
    kind = RemoteError if value["blame"] == "remote" else LocalError
    return kind(
        value["code"],
        value["message"],
        place=value["place"],
        cure=value["cure"],
        exit_status=ExitStatus(value["exit_status"]),
    )
