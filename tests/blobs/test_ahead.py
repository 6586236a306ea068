"""Several at once, in order, no more than asked for."""

from __future__ import annotations

from collections.abc import AsyncIterator

import anyio
import pytest

from bnw.blobs.ahead import results_in_order
from bnw.sim.run import run_virtual

AHEAD = 3


def test_results_come_in_the_order_of_the_items_whatever_is_ready_first() -> None:
    async def work(number: int) -> int:
        await anyio.sleep((7 * number) % 5)
        return number * number

    async def act() -> list[int]:
        async with results_in_order(range(20), work, ahead=AHEAD) as results:
            return [result async for result in results]

    assert run_virtual(1, act) == [number * number for number in range(20)]


def test_no_more_than_so_many_are_under_way_or_wait_and_no_further_item_is_read() -> None:
    read = 0
    running = most = 0

    async def items() -> AsyncIterator[int]:
        nonlocal read
        for number in range(20):
            read += 1
            yield number

    async def work(number: int) -> int:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await anyio.sleep(1)
        running -= 1
        return number

    async def act() -> None:
        async with results_in_order(items(), work, ahead=AHEAD) as results:
            await anyio.sleep(10)
            assert read == AHEAD
            taken = 0
            async for _ in results:
                taken += 1
                await anyio.sleep(5)
                assert read <= taken + AHEAD
        assert anyio.current_time() < 10 + 20 * 5 + 1, "the work went on while results were used"

    run_virtual(1, act)
    assert most == AHEAD


def test_they_really_go_on_at_the_same_time() -> None:
    async def act() -> float:
        async with results_in_order(range(9), lambda _: anyio.sleep(1), ahead=AHEAD) as results:
            async for _ in results:
                pass
        return anyio.current_time()

    assert run_virtual(1, act) == pytest.approx(3.0)


def test_an_error_is_raised_in_its_place_after_the_results_before_it() -> None:
    async def work(number: int) -> int:
        await anyio.sleep(10 - number)
        if number == 4:
            raise KeyError(number)
        return number

    async def act() -> list[int]:
        seen: list[int] = []
        with pytest.raises(KeyError):
            async with results_in_order(range(9), work, ahead=AHEAD) as results:
                async for result in results:
                    seen.append(result)
        return seen

    assert run_virtual(1, act) == [0, 1, 2, 3]


def test_an_error_of_the_items_is_raised_after_all_results() -> None:
    async def items() -> AsyncIterator[int]:
        yield 1
        yield 2
        raise KeyError

    async def work(number: int) -> int:
        return number

    async def act() -> list[int]:
        seen: list[int] = []
        with pytest.raises(KeyError):
            async with results_in_order(items(), work, ahead=AHEAD) as results:
                async for result in results:
                    seen.append(result)
        return seen

    assert run_virtual(1, act) == [1, 2]


def test_who_leaves_early_ends_the_work() -> None:
    ended = 0

    async def work(number: int) -> int:
        nonlocal ended
        if number:
            try:
                await anyio.sleep(1000)
            finally:
                ended += 1
        return number

    async def act() -> float:
        async with results_in_order(range(9), work, ahead=AHEAD) as results:
            assert await anext(results) == 0
        return anyio.current_time()

    assert run_virtual(1, act) < 1
    assert ended == AHEAD - 1 or ended == AHEAD
