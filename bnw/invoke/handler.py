"""What every handler of calls is told, and how it answers.

A handler that cannot answer raises `HandlerFailure`. Its code goes into the receipt, which carriers can read; message
and `detail` go into the sealed problem document.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from bnw.identity.keys import IdentityId
from bnw.inbox.payload import Payload, PayloadFile
from bnw.invoke.workspace import CallFolder
from bnw.wire.content_id import ContentId


class Report(Protocol):
    def __call__(self, stage: str, fraction: float | None = None, note: str | None = None) -> None:
        """Tell the requester how far the call is. `stage` is a name in the shared alphabet, `fraction` from 0 to 1.

        Cheap, and never waits: of several reports in a quarter of a second only the last is sent. Raises
        `InvalidError` for a stage or note that cannot be sent.
        """
        ...


def report_nothing(stage: str, fraction: float | None = None, note: str | None = None) -> None:
    """Takes reports that nobody asked for."""


@dataclass(frozen=True, slots=True)
class Call:
    """What a handler is told. `deadline` is in milliseconds since the Unix epoch.

    `input` is a `PayloadFile` if it is larger than `bnw.wire.limits.MAX_PAYLOAD_IN_MEMORY`. That file is
    there until the call is over, and so is what the handler puts into `folder.path`; `folder` is None where a node has
    no disk, as in a simulation.

    `stopping` says whether the call is to stop, because it was cancelled or its time is up. An asynchronous handler is
    cancelled then and need not ask; a synchronous one that works for long should.
    """

    invocation: ContentId
    capability: ContentId
    requester: IdentityId
    deadline: int
    input: Payload | PayloadFile
    max_output: int
    folder: CallFolder | None = None
    report: Report = report_nothing
    stopping: Callable[[], bool] = lambda: False

    @property
    def data(self) -> bytes:
        """The bytes of an input that fits in memory. Raises `HandlerFailure` (`input-too-large`) for a file."""
        if isinstance(self.input, Payload):
            return self.input.data
        raise HandlerFailure(
            "input-too-large", f"the handler takes no input of {self.input.size:,} bytes, as it does not read files"
        )


@dataclass(frozen=True, slots=True)
class Answer:
    """A handler's output: `data`, or what is in `file`, which is read when the handler has returned and left as it is.

    Without a media type it is of the descriptor's first one.
    """

    data: bytes = field(default=b"", repr=False)
    media_type: str | None = None
    file: Path | None = None


class HandlerFailure(Exception):
    """The handler could not answer. `code` is a name in the shared alphabet."""

    def __init__(self, code: str, message: str, *, detail: str = "") -> None:
        super().__init__(code, message)
        self.code = code
        self.message = message
        self.detail = detail


class Handler(Protocol):
    async def __call__(self, call: Call) -> Answer:
        """Answer a call. Cancelled when the deadline passes or the requester cancels."""
        ...
