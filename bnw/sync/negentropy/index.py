"""An ordered set of items that answers what it holds in a range without reading the range.

`BlockedIndex` keeps sorted keys in blocks of 16 to 64, with the sum of the ids in each block, and running totals over
the blocks. A fingerprint of any range needs two lookups of a running total and, at either end, a sum over at most half
a block: O(log n). A change touches one block and makes the running totals from there on stale; the next question
renews those that it needs, one addition per block, about 0.3 ms for 100,000 items and once for any number of changes
before it.

Memory: about 100 bytes per item (80 for the key's bytes object, 8 to 16 for its place, the rest for the blocks).
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterable
from itertools import accumulate, islice
from typing import Final, Protocol

from bnw.sync.negentropy.coding import KEY_SIZE, TIMESTAMP_SIZE

BLOCK: Final = 32
"""Keys in a block that has just been made. Twice as many are cut in two; half as many are joined to a neighbour."""


class OrderedIndex(Protocol):
    """An ordered set of keys (`bnw.sync.negentropy.coding`). Ranks count from 0; upper ends are excluded."""

    def __len__(self) -> int: ...

    def rank(self, bound: bytes) -> int:
        """How many keys lie below `bound`."""
        ...

    def key(self, rank: int) -> bytes: ...

    def keys(self, lower: int, upper: int) -> list[bytes]:
        """The keys with the ranks from `lower` to `upper`."""
        ...

    def sum_below(self, rank: int) -> int:
        """The sum, not reduced, of the ids of the first `rank` items, read as little-endian integers."""
        ...


class BlockedIndex:
    """An `OrderedIndex` that can change. Starts with `keys`, in any order and none twice."""

    def __init__(self, keys: Iterable[bytes] = ()) -> None:
        ordered = iter(sorted(keys))
        self._blocks: list[list[bytes]] = list(iter(lambda: list(islice(ordered, BLOCK)), []))
        self._last = [block[-1] for block in self._blocks]
        self._sums = [_sum(block) for block in self._blocks]
        self._size = sum(len(block) for block in self._blocks)
        # How many keys, and what sum of ids, lie before each block; for as many blocks as that is known of.
        self._starts = [0]
        self._totals = [0]

    def __len__(self) -> int:
        return self._size

    def __contains__(self, key: bytes) -> bool:
        number = bisect_left(self._last, key)
        if number == len(self._blocks):
            return False
        block = self._blocks[number]
        return block[bisect_left(block, key)] == key

    def add(self, key: bytes) -> bool:
        """Add a key; False if it is there already."""
        assert len(key) == KEY_SIZE
        if key in self:
            return False
        if not self._blocks:
            self._insert_block(0, [key])
        else:
            number = min(bisect_left(self._last, key), len(self._blocks) - 1)
            insort(self._blocks[number], key)
            self._last[number] = self._blocks[number][-1]
            self._sums[number] += _number(key)
            self._forget_after(number)
            self._cut_if_large(number)
        self._size += 1
        return True

    def remove(self, key: bytes) -> bool:
        """Remove a key; False if it is not there."""
        if key not in self:
            return False
        number = bisect_left(self._last, key)
        block = self._blocks[number]
        block.remove(key)
        self._sums[number] -= _number(key)
        self._forget_after(number)
        self._size -= 1
        if not block:
            self._delete_block(number)
        else:
            self._last[number] = block[-1]
            if len(block) < BLOCK // 2:
                self._join(number)
        return True

    def rank(self, bound: bytes) -> int:
        number = bisect_left(self._last, bound)
        if number == len(self._blocks):
            return self._size
        self._renew(number)
        return self._starts[number] + bisect_left(self._blocks[number], bound)

    def key(self, rank: int) -> bytes:
        number = self._block_of(rank)
        return self._blocks[number][rank - self._starts[number]]

    def keys(self, lower: int, upper: int) -> list[bytes]:
        if lower >= upper:
            return []
        first, last = self._block_of(lower), self._block_of(upper - 1)
        found = [key for block in self._blocks[first : last + 1] for key in block]
        start = lower - self._starts[first]
        return found[start : start + upper - lower]

    def sum_below(self, rank: int) -> int:
        if rank == 0:
            return 0
        number = self._block_of(rank - 1)
        block = self._blocks[number]
        inside = rank - self._starts[number]
        if 2 * inside <= len(block):
            return self._totals[number] + _sum(block[:inside])
        return self._totals[number] + self._sums[number] - _sum(block[inside:])

    def _block_of(self, rank: int) -> int:
        """The block that holds the key with a rank, and from now on the totals before it."""
        self._renew(len(self._blocks) - 1)
        return bisect_right(self._starts, rank) - 1

    def _renew(self, number: int) -> None:
        """Find out what lies before each block up to block `number`."""
        known = len(self._starts) - 1
        if known < number:
            sizes = map(len, self._blocks[known:number])
            self._starts[known:] = accumulate(sizes, initial=self._starts[known])
            self._totals[known:] = accumulate(self._sums[known:number], initial=self._totals[known])

    def _forget_after(self, number: int) -> None:
        """What lies before the blocks that follow block `number` has changed."""
        del self._starts[number + 1 :], self._totals[number + 1 :]

    def _insert_block(self, number: int, block: list[bytes]) -> None:
        self._blocks.insert(number, block)
        self._last.insert(number, block[-1])
        self._sums.insert(number, _sum(block))
        self._forget_after(number)

    def _delete_block(self, number: int) -> None:
        del self._blocks[number], self._last[number], self._sums[number]
        self._forget_after(number)

    def _cut_if_large(self, number: int) -> None:
        block = self._blocks[number]
        if len(block) > 2 * BLOCK:
            rest = block[BLOCK:]
            del block[BLOCK:]
            self._last[number] = block[-1]
            self._sums[number] -= _sum(rest)
            self._insert_block(number + 1, rest)

    def _join(self, number: int) -> None:
        """Join a small block to the one before it, or else after it."""
        if len(self._blocks) == 1:
            return
        number = max(0, number - 1)
        self._blocks[number] += self._blocks[number + 1]
        self._last[number] = self._last[number + 1]
        self._sums[number] += self._sums[number + 1]
        self._delete_block(number + 1)
        self._forget_after(number)
        self._cut_if_large(number)


def _number(key: bytes) -> int:
    return int.from_bytes(key[TIMESTAMP_SIZE:], "little")


def _sum(keys: Iterable[bytes]) -> int:
    return sum(map(_number, keys))
