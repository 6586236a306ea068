"""What is known of a testnet: one file in its directory, written whole or not at all, and a lock on the directory."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

from bnw.cli.testnet.processes import Mark, is_alive
from bnw.identity.private_file import read_private_file, write_private_file
from bnw.node.home import HOME_MODE, Home
from bnw.wire.errors import ExitStatus, LocalError
from bnw.wire.limits import MIB

FORMAT: Final = "bnw-testnet/1"
STATE_FILE: Final = "testnet.json"
MAX_STATE: Final = 4 * MIB

STARTING: Final = "starting"
UP: Final = "up"
ENDING: Final = "ending"

RUNNING: Final = "running"
STOPPED: Final = "stopped"
KILLED: Final = "killed"


@dataclass(slots=True)
class NodeState:
    """One node: its process if it was ever started, and what people want it to be."""

    name: str
    neighbours: list[str]
    """All that it is to be connected with. Of two, the one that started later dials, and dials again."""
    wanted: str = STOPPED
    process: Mark | None = None
    identity: str = ""
    address: str = ""


@dataclass(slots=True)
class NetState:
    topology: str
    phase: str = STARTING
    nodes: dict[str, NodeState] = field(default_factory=dict)

    @property
    def is_left_over(self) -> bool:
        """Whether nobody looks after it: a command broke off, or all nodes that should run have vanished.

        Only meaningful while holding the directory's lock.
        """
        alive = any(is_alive(node.process) for node in self.nodes.values())
        return self.phase != UP or (not alive and any(node.wanted == RUNNING for node in self.nodes.values()))


class NetDirectory:
    """Where a testnet lives."""

    def __init__(self, path: Path) -> None:
        self.path = path.absolute()

    @property
    def file(self) -> Path:
        return self.path / STATE_FILE

    def home(self, name: str) -> Home:
        return Home(self.path / name)

    def ready(self, name: str) -> Path:
        """What the node said first, on standard output."""
        return self.path / name / "ready.json"

    def log(self, name: str) -> Path:
        """The node's standard error."""
        return self.path / name / "log"

    @contextmanager
    def locked(self, *, create: bool = False) -> Iterator[None]:
        """Be the only command that changes this testnet.

        Raises `LocalError`: `no-testnet`, `testnet-directory` or `testnet-busy`.
        """
        descriptor = self._open(create)
        try:
            yield
        finally:
            if create:
                # When nothing came of it; a testnet in it keeps it from going.
                self.remove_itself()
            os.close(descriptor)

    def load(self) -> NetState | None:
        """None if no testnet is here. Raises `LocalError` (`testnet-state`, and as `read_private_file` does)."""
        if not self.file.exists():
            return None
        data = read_private_file(self.file, max_size=MAX_STATE)
        try:
            value = json.loads(data)
            if value["format"] != FORMAT:
                raise ValueError(f"of format {value['format']!r}, not {FORMAT}")
            nodes = [_node(item) for item in value["nodes"]]
            return NetState(value["topology"], value["phase"], {node.name: node for node in nodes})
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise LocalError(
                "testnet-state",
                f"not readable as the state of a testnet: {error}",
                place=str(self.file),
                cure="end its nodes by hand and remove the directory, or use the version of BNW that wrote it",
            ) from None

    def require(self) -> NetState:
        """The testnet that is here. Raises `LocalError` (`no-testnet`)."""
        state = self.load()
        if state is None:
            raise self._missing()
        return state

    def save(self, state: NetState) -> None:
        """Raises `LocalError` (`write-failed`)."""
        value = {
            "format": FORMAT,
            "phase": state.phase,
            "topology": state.topology,
            "nodes": [asdict(node) for node in state.nodes.values()],
        }
        write_private_file(self.file, json.dumps(value, indent=1).encode() + b"\n")

    def require_empty(self) -> None:
        """Raise `LocalError` (`testnet-directory`) rather than mix a testnet with something of the user's."""
        found = [path.name for path in self.path.iterdir() if path.name != f".{STATE_FILE}.tmp"]
        if found:
            raise LocalError(
                "testnet-directory",
                f"is not empty and no testnet (it holds {sorted(found)[0]!r}); nothing was touched",
                place=str(self.path),
                cure="choose a directory that is empty or does not exist yet with --directory",
                exit_status=ExitStatus.USAGE,
            )

    def remove(self, state: NetState) -> None:
        """Remove the homes and then, as the last of all, the state. Whatever else lies in the directory stays.

        Raises `LocalError` (`testnet-directory`) for what cannot be removed; it can then be tried again.
        """
        try:
            for name in state.nodes:
                self.remove_home(name)
            self.file.with_name(f".{STATE_FILE}.tmp").unlink(missing_ok=True)
            self.file.unlink(missing_ok=True)
        except OSError as error:
            raise LocalError(
                "testnet-directory",
                f"cannot be removed: {error.strerror or error}",
                place=error.filename or str(self.path),
                cure="make it removable, then `bnw testnet down` again",
            ) from error

    def remove_itself(self) -> None:
        """Remove the directory, unless something of the user's lies in it."""
        with suppress(OSError):
            self.path.rmdir()

    def remove_home(self, name: str) -> None:
        home = self.home(name)
        # The socket of a home with a long path lies elsewhere, and a node that was killed leaves it behind.
        home.socket.unlink(missing_ok=True)
        if home.path.exists():
            shutil.rmtree(home.path)

    def _open(self, create: bool) -> int:
        """A descriptor that holds the lock on the directory which is at the path now."""
        while True:
            try:
                if create:
                    self.path.mkdir(mode=HOME_MODE, parents=True, exist_ok=True)
                descriptor = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY)
            except FileNotFoundError:
                raise self._missing() from None
            except OSError as error:
                raise LocalError(
                    "testnet-directory",
                    f"cannot be used: {error.strerror or error}",
                    place=str(self.path),
                    cure="choose another with --directory",
                    exit_status=ExitStatus.USAGE,
                ) from None
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                with suppress(FileNotFoundError):
                    # The one before us may have removed it, and someone else made it anew.
                    if os.path.samestat(os.fstat(descriptor), self.path.stat()):
                        return descriptor
            except BlockingIOError:
                os.close(descriptor)
                raise LocalError(
                    "testnet-busy",
                    "another command is at work on this testnet",
                    place=str(self.path),
                    cure="wait until it is done, or interrupt it",
                ) from None
            except BaseException:
                os.close(descriptor)
                raise
            os.close(descriptor)

    def _missing(self) -> LocalError:
        return LocalError(
            "no-testnet",
            "no testnet is up",
            place=str(self.path),
            cure="`bnw testnet up --nodes 5` makes one; --directory chooses another place",
            exit_status=ExitStatus.UNREACHABLE,
        )


def _node(value: dict[str, Any]) -> NodeState:
    process = value.pop("process")
    if Path(value["name"]).name != value["name"]:
        raise ValueError(f"{value['name']!r} names no home in this directory")
    return NodeState(**value, process=None if process is None else Mark(int(process["id"]), str(process["started"])))
