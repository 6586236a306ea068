"""Randomness and time from a seed: what a simulated node knows of the outside world."""

from __future__ import annotations

import trio
from blake3 import blake3

from bnw.wire.cbor import encode

_CONTEXT = "bnw/1 simulated randomness"

AHEAD = 256
"""Bytes of the stream that are made at once; a draw of eight would cost nearly as much as this."""

START_OF_TIME = 1_800_000_000_000
"""What a simulated clock shows when virtual time is 0: milliseconds since the Unix epoch, in January 2027."""


class SeededEnvironment:
    """Implements `bnw.wire.environment.Environment`: virtual time, and the stream of bytes of `labels` under `seed`.

    The stream is BLAKE3 in extendable-output mode. An environment lives as long as its node, restarts included, so that
    no random bytes come twice. Raises `InvalidError` (`cbor-integer`) for a seed outside ±(2^53−1).
    """

    def __init__(self, seed: int, *labels: str, clock_offset_ms: int = 0, clock_drift: float = 0.0) -> None:
        self._stream = blake3(encode([seed, *labels]), derive_key_context=_CONTEXT)
        self._used = 0
        self._ahead = b""
        self._ahead_start = self._ahead_end = 0
        self.clock_offset_ms = clock_offset_ms
        """How far the clock is wrong; may be changed at any time, as real clocks are."""
        self.clock_drift = clock_drift
        """Parts per million by which the clock is too fast; below 0 too slow."""

    def now_ms(self) -> int:
        # Rounded first: a thousandth of a second is no exact float, and 1.001 s must not show as 1000 ms.
        microseconds = round(trio.current_time() * 1_000_000)
        if self.clock_drift:
            microseconds += round(microseconds * self.clock_drift / 1_000_000)
        return START_OF_TIME + microseconds // 1000 + self.clock_offset_ms

    def random_bytes(self, count: int) -> bytes:
        end = self._used + count
        if end > self._ahead_end:
            if count > AHEAD:
                data = self._stream.digest(length=count, seek=self._used)
                self._used = end
                return data
            self._ahead = self._stream.digest(length=AHEAD, seek=self._used)
            self._ahead_start, self._ahead_end = self._used, self._used + AHEAD
        start = self._used - self._ahead_start
        self._used = end
        return self._ahead[start : start + count]


def derived_bytes(seed: int, count: int, *labels: str) -> bytes:
    """The first `count` bytes of the stream of `labels`."""
    return SeededEnvironment(seed, *labels).random_bytes(count)
