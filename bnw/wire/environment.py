"""What a node may know of the outside world: the time, and random bytes.

Both are handed in. The node's real environment asks the operating system; the simulator's answers from a virtual clock
and a seed. Intervals and sleeps use anyio, whose clock the simulator replaces as well.
"""

from __future__ import annotations

from typing import Protocol


class Environment(Protocol):
    """Time and randomness for one node."""

    def now_ms(self) -> int:
        """Wall-clock time in milliseconds since the Unix epoch."""
        ...

    def random_bytes(self, count: int) -> bytes:
        """`count` bytes fit for keys and nonces."""
        ...


def random_below(environment: Environment, bound: int) -> int:
    """An integer from 0 up to, not including, `bound`. For jitter and choices; slightly biased, so not for keys."""
    return int.from_bytes(environment.random_bytes(8)) % bound
