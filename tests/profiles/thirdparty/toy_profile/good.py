"""A complete plug-in as another distribution would write one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from bnw.profiles.contract import (
    BaseProfile,
    DescriptorLimits,
    Fact,
    LocatedError,
    Parsed,
    PayloadLimits,
    Summary,
)


@dataclass(frozen=True)
class Toy:
    name: str
    schema: bytes | None


class Plugin(BaseProfile[Toy]):
    identifier = "toy/1"

    def claims(self, document: bytes) -> bool:
        return document.startswith(b"toy ")

    def parse(self, document: bytes, *, now_ms: int | None = None) -> Parsed[Toy]:
        words = document.decode("ascii", "replace").split()
        if len(words) != 3:
            return Parsed(None, (LocatedError("", "toy-words", f"{len(words)} words, not 3", "write toy NAME SCHEMA"),))
        return Parsed(Toy(words[1], None if words[2] == "-" else bytes.fromhex(words[2])))

    def links(self, value: Toy) -> Any:
        return () if value.schema is None else (value.schema,)

    def limits(self, value: Toy) -> DescriptorLimits:
        payload = PayloadLimits(("text/plain",), 100, "public")
        return DescriptorLimits("toy/run", payload, payload)

    def summary(self, value: Toy) -> Summary:
        return Summary(value.name, (Fact("kind", "toy"), Fact("parts", ("a", "b"))))

    def check_input(self, value: Toy, schemas: Any, media_type: str, data: bytes) -> tuple[LocatedError, ...]:
        if value.schema is not None and value.schema not in schemas:
            return (LocatedError("", "toy-schema", "no schema"),)
        return () if data == b"please" else (LocatedError("/0", "toy-manners", "say please"),)

    def starter(self, value: Toy, schemas: Any) -> bytes:
        return b"please"

    def draft(self) -> str:
        return "// a toy\ntoy name -\n"
