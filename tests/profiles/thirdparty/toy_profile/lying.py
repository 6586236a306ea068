"""A plug-in whose answers have the wrong form."""

from __future__ import annotations

from typing import Any

from bnw.profiles.contract import BaseProfile, DescriptorLimits, Parsed, PayloadLimits, Summary


class Plugin(BaseProfile[str]):
    identifier = "lying/1"

    def claims(self, document: bytes) -> bool:
        return document.startswith(b"lying ")

    def parse(self, document: bytes, *, now_ms: int | None = None) -> Any:
        return Parsed(document.decode().split()[1])

    def links(self, value: str) -> Any:
        return {"link": (b"short",), "links": (b"\x01" * 32,) * 100_000, "none": None}.get(value, ())

    def limits(self, value: str) -> Any:
        payload = PayloadLimits(("text/plain",), 10, "public")
        wrong = {
            "size": PayloadLimits(("text/plain",), -1, "public"),
            "privacy": PayloadLimits(("text/plain",), 1, "open"),
            "types": PayloadLimits((), 1, "public"),
        }
        if value == "limits":
            return "plenty"
        return DescriptorLimits("Run!" if value == "operation" else "run", wrong.get(value, payload), payload)

    def summary(self, value: str) -> Any:
        return {"title": Summary(5), "long": Summary("x" * 10**7)}.get(value, Summary("fine"))  # type: ignore[arg-type]  # lying about the type is its purpose

    def check_input(self, value: str, schemas: Any, media_type: str, data: bytes) -> Any:
        return "wrong"

    def starter(self, value: str, schemas: Any) -> Any:
        return 5
