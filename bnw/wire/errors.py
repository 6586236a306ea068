"""Errors that say what happened, where, how to cure it, and who is to blame.

The sans-I/O layers cannot know whose bytes they are reading, so they raise `InvalidError`. The edge that does know
re-raises: `RemoteError` for a peer's bytes, `LocalError` for the caller's or this machine's. Each carries a `code`, a
short lowercase name that programs may rely on; the text is for people and may change.
"""

from __future__ import annotations

from enum import IntEnum


class ExitStatus(IntEnum):
    """Exit status of the command line (design section 14)."""

    DONE = 0
    REFUSED = 1
    USAGE = 2
    UNREACHABLE = 3
    DEADLINE = 4


class BnwError(Exception):
    """Base of every error that BNW raises on purpose.

    `cause` is one sentence without a final stop; `place` names the file, field or peer; `cure` says what to do about
    it. `exit_status` is what the command line ends with when nothing handles the error.
    """

    def __init__(
        self,
        code: str,
        cause: str,
        *,
        place: str | None = None,
        cure: str | None = None,
        exit_status: ExitStatus = ExitStatus.REFUSED,
    ) -> None:
        super().__init__(code, cause, place, cure)
        self.code = code
        self.cause = cause
        self.place = place
        self.cure = cure
        self.exit_status = exit_status

    def __str__(self) -> str:
        text = self.cause if self.place is None else f"{self.place}: {self.cause}"
        return text if self.cure is None else f"{text} ({self.cure})"

    def to_json(self) -> dict[str, str | None]:
        """The form in which errors cross the local API and appear under `--json`."""
        return {"code": self.code, "message": self.cause, "place": self.place, "cure": self.cure}


class InvalidError(BnwError):
    """Bytes or values break a rule of the format; who made them is for the caller to say."""

    def from_peer(self, peer: str) -> RemoteError:
        """The same fault, blamed on the peer that sent the bytes."""
        place = f"peer {peer}" if self.place is None else f"peer {peer}: {self.place}"
        return RemoteError(self.code, self.cause, place=place, cure=self.cure)

    def at(self, place: str) -> LocalError:
        """The same fault, found in something of the caller's at `place` (a path, an option)."""
        full = place if self.place is None else f"{place}: {self.place}"
        return LocalError(self.code, self.cause, place=full, cure=self.cure, exit_status=ExitStatus.USAGE)


class LocalError(BnwError):
    """The caller, or this node or machine, is to blame."""


class RemoteError(BnwError):
    """A peer is to blame."""
