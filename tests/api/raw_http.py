"""HTTP to the API as any program could speak it, without BNW's own client."""

from __future__ import annotations

import http.client
import json
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Answer:
    status: int
    body: bytes

    @property
    def error(self) -> dict[str, Any]:
        value = json.loads(self.body)
        assert list(value) == ["error"]
        error: dict[str, Any] = value["error"]
        return error


class Raw:
    def __init__(self, path: Path) -> None:
        self.path = path

    def connected(self) -> socket.socket:
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        connection.settimeout(20)
        connection.connect(str(self.path))
        return connection

    def ask(
        self, method: str, target: str, body: bytes | None = None, headers: Mapping[str, str] | None = None
    ) -> Answer:
        connection = http.client.HTTPConnection("node")
        connection.sock = self.connected()
        try:
            connection.request(method, target, body, dict(headers or {}))
            response = connection.getresponse()
            return Answer(response.status, response.read())
        finally:
            connection.close()

    def post(self, target: str, value: object) -> Answer:
        return self.ask("POST", target, json.dumps(value).encode(), {"Content-Type": "application/json"})
