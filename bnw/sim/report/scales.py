"""From values to places in a picture: axes with round numbers, straight or by powers of ten."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import ceil, floor, isclose, log10
from typing import Final

STEPS: Final = (1.0, 2.0, 2.5, 5.0, 10.0)
TICKS: Final = 6
"""At most about so many on an axis."""
TIGHT_TICKS: Final = 8

Text = Callable[[float], str]


@dataclass(frozen=True, slots=True)
class Scale:
    """`low` to `high` become 0 to 1."""

    low: float
    high: float
    ticks: Sequence[float]
    by_powers: bool = False

    def at(self, value: float) -> float:
        """Where a value stands; what lies outside stands at the edge."""
        low, high, value = (log10(x) if self.by_powers else x for x in (self.low, self.high, max(value, self.low)))
        return min(1.0, (value - low) / (high - low))


def straight(low: float, high: float, *, is_tight: bool = False, whole: bool = False) -> Scale:
    """Ends at round numbers, or exactly at `low` and `high` if `is_tight`. All marks of a `whole` one are integers."""
    if high <= low:
        high = low + 1.0
    raw = (high - low) / (TIGHT_TICKS if is_tight else TICKS - 1)
    power = 10.0 ** floor(log10(raw))
    step = next(power * factor for factor in STEPS if power * factor >= raw * 0.999)
    if whole:
        step = max(1.0, float(ceil(step)))
    first, last = (
        (ceil(low / step - 1e-9), floor(high / step + 1e-9))
        if is_tight
        else (floor(low / step + 1e-9), ceil(high / step - 1e-9))
    )
    ticks = [number * step for number in range(first, last + 1)]
    return Scale(low, high, ticks) if is_tight else Scale(ticks[0], ticks[-1], ticks)


def powers(low: float, high: float) -> Scale:
    """By powers of ten; both are greater than 0."""
    first, last = floor(log10(low) + 1e-9), ceil(log10(high) - 1e-9)
    if first >= last:
        last = first + 1
    ends = [factor * 10.0**power for power in range(first, last + 1) for factor in (1, 2, 5)]
    start = max(end for end in ends if end <= low or isclose(end, low) or end == ends[0])
    stop = min(end for end in [*ends, 10.0 ** (last + 1)] if end > start and (end >= high or isclose(end, high)))
    fine = [end for end in ends if start <= end <= stop]
    ticks = (
        fine
        if len(fine) <= TICKS + 3
        else [end for end in fine if isclose(log10(end), round(log10(end)), abs_tol=1e-9)]
    )
    return Scale(start, stop, ticks, by_powers=True)
