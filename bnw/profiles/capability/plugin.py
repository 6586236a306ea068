"""`bnw.capability-profile/1` as a profile plug-in."""

from __future__ import annotations

from collections.abc import Mapping

from bnw.profiles.capability.draft import DRAFT
from bnw.profiles.capability.parse import IDENTIFIER, CapabilityProfile, Payload, claims, parse
from bnw.profiles.contract import DescriptorLimits, Fact, LocatedError, Parsed, PayloadLimits, Summary
from bnw.profiles.payload_check import PayloadCheck
from bnw.profiles.starter import starter_document
from bnw.wire.content_id import ContentId, content_id_text


class CapabilityProfilePlugin:
    """See `bnw.profiles.contract.Profile`."""

    identifier = IDENTIFIER

    def __init__(self) -> None:
        self._check = PayloadCheck()

    def claims(self, document: bytes) -> bool:
        return claims(document)

    def parse(self, document: bytes, *, now_ms: int | None = None) -> Parsed[CapabilityProfile]:
        return parse(document)

    def links(self, value: CapabilityProfile) -> tuple[ContentId, ...]:
        """The schemas, each once."""
        schemas = (value.operation.input.schema, value.operation.output.schema)
        return tuple(dict.fromkeys(schema for schema in schemas if schema is not None))

    def limits(self, value: CapabilityProfile) -> DescriptorLimits:
        operation = value.operation
        return DescriptorLimits(operation.name, _limits(operation.input), _limits(operation.output))

    def summary(self, value: CapabilityProfile) -> Summary:
        operation = value.operation
        facts = [Fact("description", value.description), Fact("operation", operation.name)]
        for label, payload in (("input", operation.input), ("output", operation.output)):
            facts.append(Fact(f"{label} media types", payload.media_types))
            facts.append(Fact(f"{label} at most", f"{payload.max_bytes} bytes"))
            facts.append(Fact(f"{label} privacy", payload.privacy.value))
            facts.append(Fact(f"{label} schema", "none" if payload.schema is None else content_id_text(payload.schema)))
        return Summary(value.name, tuple(facts))

    def check_input(
        self, value: CapabilityProfile, schemas: Mapping[ContentId, bytes], media_type: str, data: bytes
    ) -> tuple[LocatedError, ...]:
        return self._check.faults(_limits(value.operation.input), schemas, media_type, data)

    def check_output(
        self, value: CapabilityProfile, schemas: Mapping[ContentId, bytes], media_type: str, data: bytes
    ) -> tuple[LocatedError, ...]:
        return self._check.faults(_limits(value.operation.output), schemas, media_type, data)

    def starter(self, value: CapabilityProfile, schemas: Mapping[ContentId, bytes]) -> bytes | None:
        schema = value.operation.input.schema
        if schema is None or schema not in schemas:
            return None
        document = starter_document(schemas[schema])
        return document if document is not None and len(document) <= value.operation.input.max_bytes else None

    def draft(self) -> str:
        return DRAFT


def _limits(payload: Payload) -> PayloadLimits:
    return PayloadLimits(payload.media_types, payload.max_bytes, payload.privacy.value, payload.schema)
