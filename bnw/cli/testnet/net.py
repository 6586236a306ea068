"""Makes, starts, ends and removes the nodes of a testnet. All of it happens under the directory's lock."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final

from bnw.api.client import ApiClient
from bnw.cli.node_process import STOPPING_TIME
from bnw.cli.testnet import processes
from bnw.cli.testnet.processes import LOOK_EVERY, Mark, is_alive, send, wait_until_ended
from bnw.cli.testnet.starting import Starting
from bnw.cli.testnet.state import ENDING, KILLED, RUNNING, STOPPED, UP, NetDirectory, NetState, NodeState
from bnw.node.configuration import Configuration
from bnw.wire.errors import ExitStatus, LocalError

STARTING_TIME: Final = 120.0
"""Seconds that a node may take until it answers. It takes one, if the machine has nothing else to do."""
KILLING_TIME: Final = 10.0
"""Seconds for the system to end what was killed."""
DISTURBANCES: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

Tell = Callable[[str], None]


class Net:
    """The nodes of one testnet."""

    def __init__(self, directory: NetDirectory, state: NetState) -> None:
        self.directory = directory
        self.state = state
        self._changing = threading.Lock()
        self._is_ending = False

    @classmethod
    @contextmanager
    def new(
        cls,
        directory: NetDirectory,
        topology: str,
        neighbours: Mapping[str, Sequence[str]],
        *,
        configurations: Mapping[str, Configuration] | None = None,
        tell: Tell = lambda text: None,
    ) -> Iterator[Net]:
        """A testnet with a home for each key of `neighbours` and no processes yet. All of it is removed again if the
        body ends with an exception.

        What a command that was broken off has left in the directory is removed first. Raises `LocalError`:
        `testnet-exists`, `testnet-busy`, `testnet-directory` or `write-failed`.
        """
        from bnw.node.opening import initialise_home

        with directory.locked(create=True):
            before = directory.load()
            if before is not None:
                if not before.is_left_over:
                    raise _exists(directory, before)
                tell("removing what is left of a testnet that was broken off")
                with undisturbed():
                    cls(directory, before).remove(gently=False)
            directory.require_empty()
            nodes = {name: NodeState(name, list(others)) for name, others in neighbours.items()}
            net = cls(directory, NetState(topology, nodes=nodes))
            try:
                directory.save(net.state)
                for name in nodes:
                    initialise_home(directory.home(name), configuration=(configurations or {}).get(name))
                yield net
            except BaseException:
                with undisturbed():
                    net.remove(gently=False)
                raise

    @classmethod
    @contextmanager
    def existing(cls, directory: NetDirectory) -> Iterator[Net]:
        """The testnet that is in the directory. Raises `LocalError`: `no-testnet`, `testnet-busy`, `testnet-state`."""
        with directory.locked():
            yield cls(directory, directory.require())

    def node(self, name: str) -> NodeState:
        """A node by its name or number. Raises `LocalError` (`unknown-node`)."""
        return find_node(self.state, name)

    def start(
        self, names: Iterable[str], *, options: Sequence[str] = (), started: Callable[[str], None] = lambda name: None
    ) -> None:
        """Start nodes that do not run, some at a time; return when all answer. `started` hears of each.

        Neighbours never start at the same moment: the later of two is told the address of the earlier, dials it, and
        dials again whenever the connection is lost.

        Raises `LocalError` (`node-not-started`, or what the node says); the nodes that were on their way are ended.
        """
        waiting = list(names)
        on_way: dict[str, Starting] = {}
        try:
            while waiting or on_way:
                for name in self._free_to_start(waiting, on_way):
                    waiting.remove(name)
                    on_way[name] = self._begin(name, options)
                for name, starting in list(on_way.items()):
                    said = starting.look()
                    if said is not None:
                        del on_way[name]
                        self._take_ready(name, said)
                        started(name)
                processes.pause()
        except BaseException:
            with undisturbed():
                self._kill(on_way)
            raise

    def stop(self, names: Iterable[str]) -> None:
        """Let nodes close as on a user's request; kill those that have not after ten seconds."""
        chosen = list(names)
        marks = self._marks(chosen)
        for mark in marks:
            # One that is held must go on in order to end.
            send(mark, signal.SIGTERM, signal.SIGCONT)
        for mark in wait_until_ended(marks, STOPPING_TIME):
            processes.kill(mark)
        self._require_ended(marks)
        self._set_wanted(chosen, STOPPED)

    def kill(self, names: Iterable[str], *, wanted: str = KILLED) -> None:
        """SIGKILL nodes and the programs that they run."""
        chosen = list(names)
        self._kill(chosen)
        self._set_wanted(chosen, wanted)

    def remove(self, *, gently: bool = True) -> None:
        """End all nodes and remove all that is the testnet's."""
        if gently:
            self.state.phase = ENDING
            self.directory.save(self.state)
            self.stop(self.state.nodes)
        with self._changing:
            # A thread that nobody waits for any longer may be about to start a node.
            self._is_ending = True
        # Nothing is written before the processes are gone: a full disk may be why we are here.
        self._kill(self.state.nodes)
        self.directory.remove(self.state)

    def set_up(self) -> None:
        """From now on it is a testnet that people use."""
        with self._changed():
            self.state.phase = UP

    def client(self, name: str) -> ApiClient:
        """Raises `LocalError` (`no-node`)."""
        return ApiClient(self.directory.home(name).socket)

    def _free_to_start(self, waiting: Sequence[str], on_way: Mapping[str, Starting]) -> list[str]:
        """Who can start now: no neighbour of theirs is on its way, and there is a processor for them."""
        chosen: list[str] = []
        room = (os.cpu_count() or 1) - len(on_way)
        for name in waiting:
            if len(chosen) >= room:
                break
            if not {*on_way, *chosen} & set(self.state.nodes[name].neighbours):
                chosen.append(name)
        return chosen

    def _begin(self, name: str, options: Sequence[str]) -> Starting:
        node = self.state.nodes[name]
        peers = [self.state.nodes[other] for other in node.neighbours]
        addresses = [peer.address for peer in peers if peer.address and is_alive(peer.process)]

        def record(mark: Mark) -> None:
            with self._changed():
                node.process, node.wanted, node.address = mark, RUNNING, ""

        arguments = [part for address in addresses for part in ("--peer", address)]
        return Starting(self.directory, name, [*arguments, *options], record, looks=int(STARTING_TIME / LOOK_EVERY))

    def _take_ready(self, name: str, said: Mapping[str, Any]) -> None:
        with self.client(name) as client:
            client.get("/v1/status")
        node = self.state.nodes[name]
        with self._changed():
            node.identity, node.address = said["identity"], said["addresses"][0]

    def _kill(self, names: Iterable[str]) -> None:
        self._require_ended([member for mark in self._marks(names) for member in processes.kill(mark)])

    def _marks(self, names: Iterable[str]) -> list[Mark]:
        """The processes of these nodes that are alive."""
        return [mark for name in names if (mark := self.state.nodes[name].process) is not None and is_alive(mark)]

    def _set_wanted(self, names: Iterable[str], wanted: str) -> None:
        with self._changed():
            for name in names:
                self.state.nodes[name].wanted = wanted

    @contextmanager
    def _changed(self) -> Iterator[None]:
        """The body changes the state, which is then saved, unless all of it is about to be removed."""
        with self._changing:
            if self._is_ending:
                raise LocalError("testnet-ends", "this testnet is being removed", place=str(self.directory.path))
            yield
            self.directory.save(self.state)

    def _require_ended(self, marks: Sequence[Mark]) -> None:
        alive = wait_until_ended(marks, KILLING_TIME)
        if alive:
            raise LocalError(
                "process-stays",
                f"the system does not end process {alive[0].id}, which was killed",
                place=str(self.directory.path),
                cure="it may hang in a disk that does not answer; try again when it is gone",
            )


def find_node(state: NetState, name: str) -> NodeState:
    """A node by its name or number. Raises `LocalError` (`unknown-node`)."""
    found = state.nodes.get(name) or state.nodes.get(f"node-{name}")
    if found is None:
        names = list(state.nodes)
        shown = names[0] if len(names) == 1 else f"{names[0]} to {names[-1]}"
        raise LocalError(
            "unknown-node",
            "this testnet has no such node",
            place=name,
            cure=f"it has {shown}; `bnw testnet status` lists them",
            exit_status=ExitStatus.USAGE,
        )
    return found


@contextmanager
def undisturbed() -> Iterator[None]:
    """Hold back Ctrl-C and its like: taking away what was made takes a moment and must not be broken off."""
    before = [signal.signal(number, signal.SIG_IGN) for number in DISTURBANCES]
    try:
        yield
    finally:
        for number, handler in zip(DISTURBANCES, before, strict=True):
            signal.signal(number, handler)


def _exists(directory: NetDirectory, state: NetState) -> LocalError:
    running = sum(is_alive(node.process) for node in state.nodes.values())
    return LocalError(
        "testnet-exists",
        f"a testnet of {len(state.nodes)} nodes is here already, of which {running} run",
        place=str(directory.path),
        cure="`bnw testnet down` ends it; --directory chooses another place",
    )
