"""Two ways to put a question to a plug-in: in this process, or to a worker. Failures are `PluginFailure` in both."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol, TypeVar

from bnw.profiles.contract import Description, LocatedError, Profile
from bnw.profiles.messages import (
    description_from_value,
    description_to_value,
    errors_from_value,
    errors_to_value,
    schemas_to_value,
)
from bnw.profiles.operations import check_payload, describe_document, starter_document
from bnw.profiles.registry import PluginSource
from bnw.profiles.worker_client import Bounds, PluginFailure, Worker
from bnw.wire.content_id import ContentId
from bnw.wire.errors import InvalidError

_Answer = TypeVar("_Answer")


class Runner(Protocol):
    """One plug-in that can be asked. Every method may raise `PluginFailure`."""

    def identifier(self) -> str: ...

    def may_claim(self, document: bytes) -> bool:
        """False if it is known, cheaply, that the plug-in does not claim `document`."""
        ...

    def describe(self, document: bytes, now_ms: int | None, *, whoever: bool) -> Description | None: ...

    def check(
        self, document: bytes, schemas: Mapping[ContentId, bytes], media_type: str, data: bytes, *, output: bool
    ) -> tuple[LocatedError, ...]: ...

    def starter(self, document: bytes, schemas: Mapping[ContentId, bytes]) -> bytes | None: ...

    def draft(self) -> str | None: ...

    def close(self) -> None: ...


class InlineRunner:
    """Runs the plug-in right here: an exception is contained, a hang or a crash is not."""

    def __init__(self, source: PluginSource) -> None:
        self._source = source
        self._loaded: Profile[Any] | None = None

    def identifier(self) -> str:
        return _guarded(lambda: self._profile().identifier)

    def may_claim(self, document: bytes) -> bool:
        return _guarded(lambda: self._profile().claims(document))

    def describe(self, document: bytes, now_ms: int | None, *, whoever: bool) -> Description | None:
        description = _guarded(lambda: describe_document(self._profile(), document, now_ms, whoever=whoever))
        if description is None or self._source.own:
            return description
        # An answer of someone else's plug-in is held to the same form as one from a worker.
        return _guarded(lambda: description_from_value(description_to_value(description)))

    def check(
        self, document: bytes, schemas: Mapping[ContentId, bytes], media_type: str, data: bytes, *, output: bool
    ) -> tuple[LocatedError, ...]:
        return _guarded(
            lambda: errors_from_value(
                errors_to_value(check_payload(self._profile(), document, schemas, media_type, data, output=output))
            )
        )

    def starter(self, document: bytes, schemas: Mapping[ContentId, bytes]) -> bytes | None:
        return _guarded(lambda: starter_document(self._profile(), document, schemas))

    def draft(self) -> str | None:
        return _guarded(lambda: self._profile().draft())

    def close(self) -> None:
        self._loaded = None

    def _profile(self) -> Profile[Any]:
        if self._loaded is None:
            self._loaded = self._source.load()
        return self._loaded


class WorkerRunner:
    """Puts questions to a worker process, save those whose answer is bounded by construction."""

    def __init__(self, source: PluginSource, bounds: Bounds) -> None:
        self._source = source
        self._worker = Worker(source, bounds)
        # Starter documents are made of strangers' schemas, for people to look at. They get a worker of their own, so
        # that a schema that takes until the deadline can't hold up the checks of a provider's inputs.
        self._starter_worker = Worker(source, bounds)
        self._here = InlineRunner(source)
        self._identifier: str | None = None

    def identifier(self) -> str:
        if self._source.own:
            return self._here.identifier()
        if self._identifier is None:
            self._identifier = str(self._worker.ask({"ask": "identifier"}))
        return self._identifier

    def may_claim(self, document: bytes) -> bool:
        # Whether a document claims to be of a format takes one read of its JSON; BNW's own plug-ins may do that here.
        return not self._source.own or self._here.may_claim(document)

    def describe(self, document: bytes, now_ms: int | None, *, whoever: bool) -> Description | None:
        if self._source.bounded:
            return self._here.describe(document, now_ms, whoever=whoever)
        answer = self._worker.ask({"ask": "describe", "document": document, "now": now_ms, "whoever": whoever})
        return None if answer is None else _read(lambda: description_from_value(answer))

    def check(
        self, document: bytes, schemas: Mapping[ContentId, bytes], media_type: str, data: bytes, *, output: bool
    ) -> tuple[LocatedError, ...]:
        answer = self._worker.ask(
            {
                "ask": "check",
                "document": document,
                "schemas": schemas_to_value(schemas),
                "media_type": media_type,
                "data": data,
                "output": output,
            }
        )
        return _read(lambda: errors_from_value(answer))

    def starter(self, document: bytes, schemas: Mapping[ContentId, bytes]) -> bytes | None:
        answer = self._starter_worker.ask(
            {"ask": "starter", "document": document, "schemas": schemas_to_value(schemas)}
        )
        if answer is not None and not isinstance(answer, bytes):
            raise PluginFailure("plugin-failed", "answered nonsense: a starter document is bytes")
        return answer

    def draft(self) -> str | None:
        if self._source.own:
            return self._here.draft()
        answer = self._worker.ask({"ask": "draft"})
        if answer is not None and not isinstance(answer, str):
            raise PluginFailure("plugin-failed", "answered nonsense: a draft is text")
        return answer

    def close(self) -> None:
        self._worker.close()
        self._starter_worker.close()
        self._here.close()


def _guarded(ask: Callable[[], _Answer]) -> _Answer:
    try:
        return ask()
    except MemoryError:
        raise PluginFailure("plugin-crashed", "ran out of memory") from None
    except Exception as error:  # noqa: BLE001 - whatever a plug-in raises is its failure and not the node's
        raise PluginFailure("plugin-failed", f"raised {type(error).__name__}: {error}") from None


def _read(read: Callable[[], _Answer]) -> _Answer:
    try:
        return read()
    except InvalidError as error:
        raise PluginFailure("plugin-failed", f"answered nonsense: {error}") from None
