"""The real environment: the operating system's clock and randomness. The only place in BNW that asks for either."""

from __future__ import annotations

import os
import time


class SystemEnvironment:
    """Implements `bnw.wire.environment.Environment`. `clock_offset` (ms) is for testnets with wrong clocks."""

    def __init__(self, *, clock_offset: int = 0) -> None:
        self._clock_offset = clock_offset

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000 + self._clock_offset

    def random_bytes(self, count: int) -> bytes:
        return os.urandom(count)
