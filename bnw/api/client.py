"""The command line's end of the local API. Imports neither libp2p nor the node, which would cost a second.

Errors come back as they were raised: `LocalError` or `RemoteError` with code, place, cure and exit status.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import httpx

from bnw.api.socket_file import check_directory
from bnw.wire.errors import BnwError, ExitStatus, LocalError, RemoteError

BASE = "http://node"
CONNECT_TIMEOUT = 5.0
Json = dict[str, Any]


def no_node(path: Path, cause: str) -> LocalError:
    return LocalError(
        "no-node",
        f"no node answers: {cause}",
        place=str(path),
        cure="start one with `bnw run`",
        exit_status=ExitStatus.UNREACHABLE,
    )


class ApiClient:
    """Talks to the node that serves `path`. Every method raises `LocalError` (`no-node`) when none does."""

    def __init__(self, path: Path) -> None:
        if not path.exists():
            raise no_node(path, "there is no socket")
        check_directory(path.parent)
        self._path = path
        # What a node does may take as long as a call's deadline; the node itself bounds it.
        timeout = httpx.Timeout(None, connect=CONNECT_TIMEOUT)
        self._http = httpx.Client(
            transport=httpx.HTTPTransport(uds=str(path)), base_url=BASE, timeout=timeout, trust_env=False
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        self._http.close()

    def get(self, path: str, **parameters: str | int | bool | None) -> Json:
        return self._json("GET", path, params=_present(parameters))

    def post(self, path: str, body: Mapping[str, Any] | None = None) -> Json:
        return self._json("POST", path, json=dict(body or {}))

    def post_bytes(self, path: str, data: bytes, **parameters: str | int | bool | None) -> Json:
        return self._json("POST", path, content=data, params=_present(parameters))

    def get_bytes(self, path: str) -> bytes:
        with self._reaching():
            response = self._http.get(path)
        if response.status_code != httpx.codes.OK:
            raise _error_of(response.content)
        return response.content

    @contextmanager
    def lines(
        self,
        method: str,
        path: str,
        *,
        body: Mapping[str, Any] | None = None,
        data: bytes | None = None,
        **parameters: str | int | bool | None,
    ) -> Iterator[Iterator[Json]]:
        """A streamed answer, one value at a time; an error in it is raised. Leaving early ends the work behind it."""
        content: dict[str, Any] = {} if body is None else {"json": dict(body)}
        if data is not None:
            content["content"] = data
        with self._reaching(), self._http.stream(method, path, params=_present(parameters), **content) as response:
            if response.status_code != httpx.codes.OK:
                raise _error_of(response.read())
            yield self._values(response)

    def _values(self, response: httpx.Response) -> Iterator[Json]:
        for line in response.iter_lines():
            value = json.loads(line)
            if value.get("event") == "error":
                raise _error(value["error"])
            yield value

    def _json(self, method: str, path: str, **options: Any) -> Json:
        with self._reaching():
            response = self._http.request(method, path, **options)
        if response.status_code != httpx.codes.OK:
            raise _error_of(response.content)
        value: Json = response.json()
        return value

    @contextmanager
    def _reaching(self) -> Iterator[None]:
        try:
            yield
        except httpx.ConnectError as error:
            raise no_node(self._path, str(error)) from error
        except (httpx.RemoteProtocolError, httpx.ReadError, httpx.WriteError) as error:
            raise no_node(self._path, "it ended before it had answered") from error


def _present(parameters: Mapping[str, str | int | bool | None]) -> dict[str, str]:
    """Without what was not given; flags as the API reads them."""
    named = {name: value for name, value in parameters.items() if value is not None}
    return {name: str(value).lower() if isinstance(value, bool) else str(value) for name, value in named.items()}


def _error_of(content: bytes) -> BnwError:
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
