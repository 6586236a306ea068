"""A policy file that is read again when it has changed, without a restart."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path

import anyio

from bnw.invoke.policy import CallPolicy
from bnw.invoke.policy_file import MAX_POLICY_FILE, CapabilityPolicy, ProviderPolicy, parse_policy
from bnw.wire.content_id import ContentId
from bnw.wire.errors import ExitStatus, LocalError

logger = logging.getLogger(__name__)

LOOK_PERIOD = 0.5
"""Seconds between looks at the file, however many calls come."""
_Stamp = tuple[int, int, int]


class PolicyFile:
    """Reads the file at once; raises `LocalError` (`unreadable`, `policy`). Later faults keep the last good policy."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._stamp = _stamp(path)
        self._policy = read_policy(path)
        self._next_look = 0.0

    def current(self) -> ProviderPolicy:
        """The policy that holds now. A look at an unchanged file costs some microseconds, twice a second."""
        now = anyio.current_time()
        if now >= self._next_look:
            self._next_look = now + LOOK_PERIOD
            try:
                self._look()
            except LocalError as error:
                logger.error("the policy was not taken, the one before still holds: %s", error)
        return self._policy

    def of(self, name: str, id: ContentId) -> CapabilityPolicy:
        return self.current().of(name, id)

    def calls_of(self, name: str, id: ContentId) -> Callable[[], CallPolicy]:
        """What `Node.provide` takes as a policy that can change."""
        return lambda: self.of(name, id).calls

    def _look(self) -> None:
        stamp = _stamp(self._path)
        if stamp != self._stamp:
            self._stamp = stamp
            self._policy = read_policy(self._path)
            logger.info("the policy has changed: %s", self._path)


def read_policy(path: Path) -> ProviderPolicy:
    """Read a policy file. Raises `LocalError`: `unreadable`, or `policy` with the file, section and setting."""
    try:
        with path.open("rb") as file:
            data = file.read(MAX_POLICY_FILE + 1)
    except OSError as error:
        raise _unreadable(path, error) from error
    try:
        return parse_policy(data)
    except LocalError as error:
        raise LocalError(
            error.code, error.cause, place=f"{path}: {error.place}", cure=error.cure, exit_status=error.exit_status
        ) from None


def _stamp(path: Path) -> _Stamp:
    try:
        found = path.stat()
    except OSError as error:
        raise _unreadable(path, error) from error
    return found.st_mtime_ns, found.st_size, found.st_ino


def _unreadable(path: Path, error: OSError) -> LocalError:
    return LocalError(
        "unreadable",
        error.strerror or str(error),
        place=str(path),
        cure="check the path and its permissions",
        exit_status=ExitStatus.USAGE,
    )
