"""Trio's scheduler under a seed, and no threads. The only place that touches private parts of Trio.

Trio runs the tasks that are ready in an order of its own choosing. It has a switch for Hypothesis that sorts them by
age and then shuffles them with a random generator of its own. There is no public way to turn it, nor to forbid worker
threads, whose end no virtual clock can order. All three private names are looked up and checked before a run, so that a
Trio that has changed gives one clear error instead of runs that quietly differ; tests/sim/test_scheduler.py shows that
they still do what is relied on.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from importlib.metadata import version
from types import ModuleType
from typing import Any, Final, NoReturn

from bnw.wire.errors import LocalError

_SWITCH: Final = "_ALLOW_DETERMINISTIC_SCHEDULING"
_GENERATOR: Final = "_r"
_START_THREAD: Final = "start_thread_soon"

SEED_SIZE: Final = 32

_lock = threading.Lock()


@contextmanager
def deterministic_scheduling(seed: bytes) -> Iterator[None]:
    """Within the body, Trio's order of tasks follows from `seed`, and asking Trio for a thread raises `LocalError`
    (`thread-in-simulation`).

    This holds for the whole process, so nothing else may run Trio at the same time. Raises `LocalError`: `trio-changed`
    if this Trio lacks what is needed, `simulation-running` for a second one in the same process.
    """
    switch = _private_part("trio._core._run", _SWITCH, bool)
    generator = getattr(_private_part("trio._core._run", _GENERATOR, object), _GENERATOR)
    threads = _private_part("trio._threads", _START_THREAD, object)
    if not all(callable(getattr(generator, name, None)) for name in ("seed", "getstate", "setstate", "shuffle")):
        raise _changed("trio._core._run", _GENERATOR)
    if not _lock.acquire(blocking=False):
        raise LocalError("simulation-running", "a simulation runs in this process already", cure="wait for its end")
    before = getattr(switch, _SWITCH), generator.getstate(), getattr(threads, _START_THREAD)
    try:
        setattr(switch, _SWITCH, True)
        generator.seed(int.from_bytes(seed))
        setattr(threads, _START_THREAD, _refuse_thread)
        yield
    finally:
        setattr(switch, _SWITCH, before[0])
        generator.setstate(before[1])
        setattr(threads, _START_THREAD, before[2])
        _lock.release()


def _private_part(module: str, name: str, kind: type) -> ModuleType:
    """The module of Trio that has `name`. Raises `LocalError` (`trio-changed`) without it."""
    try:
        found = import_module(module)
        part: Any = getattr(found, name)
    except (ImportError, AttributeError):
        raise _changed(module, name) from None
    if not isinstance(part, kind):
        raise _changed(module, name)
    return found


def _changed(module: str, name: str) -> LocalError:
    return LocalError(
        "trio-changed",
        f"Trio {version('trio')} no longer has {name} as the simulator knows it",
        place=module,
        cure="install the version of Trio in constraints.txt",
    )


def _refuse_thread(*_: object, **__: object) -> NoReturn:
    raise LocalError(
        "thread-in-simulation",
        "a simulated node asked for a thread; when that would end is not decided by the seed",
        cure="use the parts of bnw.sim, which need none, and handlers that only compute or sleep",
    )
