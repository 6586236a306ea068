"""Trio under a seed: what the simulator relies on in it, and what happens when that is gone."""

from __future__ import annotations

import gc

import anyio
import anyio.to_thread
import pytest
import trio
from trio._core import _run as trio_scheduler

from bnw.sim.run import run_virtual
from bnw.wire.errors import InvalidError, LocalError


async def order_of_tasks() -> list[int]:
    """The order in which fifty tasks that are ready at once come to run."""
    order: list[int] = []

    async def run(number: int) -> None:
        for _ in range(3):
            await anyio.lowlevel.checkpoint()
            order.append(number)

    async with anyio.create_task_group() as tasks:
        for number in range(50):
            tasks.start_soon(run, number)
    return order


def test_the_seed_decides_the_order_of_tasks() -> None:
    assert run_virtual(1, order_of_tasks) == run_virtual(1, order_of_tasks)
    assert run_virtual(1, order_of_tasks) != run_virtual(2, order_of_tasks)


def test_tasks_woken_or_cancelled_at_once_run_in_an_order_of_the_seed() -> None:
    async def act() -> list[str]:
        order: list[str] = []
        event = anyio.Event()

        async def wait(name: str) -> None:
            try:
                with anyio.move_on_at(5):
                    await event.wait()
                order.append(name)
                await anyio.sleep_forever()
            finally:
                order.append(f"end of {name}")

        async with anyio.create_task_group() as tasks:
            for number in range(50):
                tasks.start_soon(wait, str(number))
            await anyio.sleep(10)
            tasks.cancel_scope.cancel()
        return order

    # Objects of the second run have other addresses, by which Trio orders its sets.
    first = run_virtual(1, act)
    kept = [object() for _ in range(1001)]
    assert run_virtual(1, act) == first
    assert len(first) == 100 and kept


def test_time_stands_still_while_a_task_can_run_and_jumps_when_none_can() -> None:
    async def act() -> tuple[float, float]:
        for _ in range(100):
            await anyio.lowlevel.checkpoint()
        before = anyio.current_time()
        await anyio.sleep(86_400)
        return before, anyio.current_time()

    assert run_virtual(1, act) == (0, 86_400)


def test_a_thread_is_refused_and_the_refusal_says_why() -> None:
    with pytest.raises(LocalError) as caught:
        run_virtual(1, anyio.to_thread.run_sync, print)
    assert caught.value.code == "thread-in-simulation"
    assert anyio.run(anyio.to_thread.run_sync, lambda: 5, backend="trio") == 5, "afterwards threads are allowed again"


def test_all_is_as_before_after_a_run_even_one_that_fails() -> None:
    def state() -> object:
        return trio_scheduler._ALLOW_DETERMINISTIC_SCHEDULING, trio_scheduler._r.getstate(), gc.get_threshold()

    async def fail() -> None:
        raise LookupError("as planned")

    before = state()
    with pytest.raises(LookupError):
        run_virtual(1, fail)
    assert state() == before


def test_a_simulation_within_a_simulation_is_refused() -> None:
    async def act() -> None:
        run_virtual(2, order_of_tasks)

    with pytest.raises(LocalError) as caught:
        run_virtual(1, act)
    assert caught.value.code == "simulation-running"
    assert run_virtual(1, order_of_tasks)


@pytest.mark.parametrize(
    ("module", "name"),
    [
        ("trio._core._run", "_ALLOW_DETERMINISTIC_SCHEDULING"),
        ("trio._core._run", "_r"),
        ("trio._threads", "start_thread_soon"),
    ],
)
def test_a_trio_without_what_is_needed_is_named_in_a_clear_error(
    monkeypatch: pytest.MonkeyPatch, module: str, name: str
) -> None:
    monkeypatch.delattr(f"{module}.{name}")
    with pytest.raises(LocalError) as caught:
        run_virtual(1, order_of_tasks)
    assert caught.value.code == "trio-changed"
    assert name in str(caught.value)


def test_a_trio_whose_generator_is_something_else_is_named_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trio_scheduler, "_r", "no generator")
    with pytest.raises(LocalError) as caught:
        run_virtual(1, order_of_tasks)
    assert caught.value.code == "trio-changed"


def test_a_seed_is_an_integer_that_every_implementation_can_hold() -> None:
    assert run_virtual(-(2**53) + 1, order_of_tasks)
    with pytest.raises(InvalidError):
        run_virtual(2**53, order_of_tasks)


def test_arguments_and_the_result_pass_through() -> None:
    async def add(one: int, other: int) -> int:
        await trio.sleep(1)
        return one + other

    assert run_virtual(1, add, 2, 3) == 5
