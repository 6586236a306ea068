"""Processes of others, told apart from strangers that were given the same id after they ended.

An id and the moment of the start are never the same for two processes of one boot. Linux has both, and the boot's own
id, in /proc; elsewhere `ps` tells the moment to the second.
"""

from __future__ import annotations

import os
import signal
import subprocess
import threading
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

PROC: Final = Path("/proc")
BOOT_ID: Final = PROC / "sys" / "kernel" / "random" / "boot_id"
LOOK_EVERY: Final = 0.05
"""Seconds between two looks at something that is waited for."""

_STATE, _STARTED = 0, 19
"""Places in /proc/<id>/stat after the program's name, which may hold anything: fields 3 and 22 of proc(5)."""


@dataclass(frozen=True, slots=True)
class Mark:
    """A process, whoever has its id later."""

    id: int
    started: str


def mark_of(id: int) -> Mark | None:
    """The process that has this id now; None if there is none or it has ended."""
    found = _look(id)
    return None if found is None else Mark(id, found[1])


def is_alive(mark: Mark | None) -> bool:
    return mark is not None and mark_of(mark.id) == mark


def is_paused(mark: Mark) -> bool:
    """Whether SIGSTOP holds it."""
    found = _look(mark.id)
    return found is not None and found[1] == mark.started and found[0] in "Tt"


def send(mark: Mark, *numbers: signal.Signals) -> bool:
    """Send signals to a process; whether it was there.

    Linux keeps the id to this process while it is looked at; elsewhere an instant is left in which it could end.
    """
    try:
        descriptor = os.pidfd_open(mark.id)
    except ProcessLookupError:
        return False
    except (AttributeError, OSError):
        descriptor = None
    try:
        if not is_alive(mark):
            return False
        with suppress(ProcessLookupError):
            for number in numbers:
                if descriptor is None:
                    os.kill(mark.id, number)
                else:
                    signal.pidfd_send_signal(descriptor, number)
        return True
    finally:
        if descriptor is not None:
            os.close(descriptor)


def kill(mark: Mark) -> list[Mark]:
    """SIGKILL a process and all that it has started, in whatever session; returns them.

    Held first, so that it can start nothing more while they are counted.
    """
    send(mark, signal.SIGSTOP)
    family = [mark]
    for id in _descendants(mark.id) if is_alive(mark) else ():
        child = mark_of(id)
        if child is not None:
            family.append(child)
    for member in family:
        send(member, signal.SIGKILL)
    return family


def wait_until_ended(marks: Iterable[Mark], seconds: float) -> Sequence[Mark]:
    """Those that are still alive after so long; returns at once when none is."""
    alive = [mark for mark in marks if is_alive(mark)]
    for _ in range(int(seconds / LOOK_EVERY)):
        if not alive:
            break
        pause()
        alive = [mark for mark in alive if is_alive(mark)]
    return alive


def pause() -> None:
    """Wait until it is time for another look."""
    threading.Event().wait(LOOK_EVERY)


def _descendants(id: int) -> list[int]:
    command = ["ps", "-A", "-o", "pid=,ppid="]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    children: dict[int, list[int]] = {}
    for line in done.stdout.splitlines():
        child, parent = map(int, line.split())
        children.setdefault(parent, []).append(child)
    found, waiting = [], [id]
    while waiting:
        waiting += (more := children.get(waiting.pop(), []))
        found += more
    return found


def _look(id: int) -> tuple[str, str] | None:
    """State letter and start of a process that has not ended."""
    found = _from_proc(id) if BOOT_ID.exists() else _from_ps(id)
    return None if found is None or found[0] in "ZX" else found


def _from_proc(id: int) -> tuple[str, str] | None:
    try:
        text = (PROC / str(id) / "stat").read_text(errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return None
    fields = text.rpartition(")")[2].split()
    return fields[_STATE], f"{BOOT_ID.read_text().strip()}/{fields[_STARTED]}"


def _from_ps(id: int) -> tuple[str, str] | None:
    command = ["ps", "-o", "stat=,lstart=", "-p", str(id)]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "LC_ALL": "C"}, check=False)
    state, _, started = done.stdout.strip().partition(" ")
    return (state[0], " ".join(started.split())) if state else None
