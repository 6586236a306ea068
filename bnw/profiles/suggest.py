"""Near misses: which known name a misspelt one was probably meant to be."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Final

MAX_SUGGESTED_LENGTH: Final = 64
"""Longer names are never compared; the work for one name stays small."""


def suggest(name: str, known: Iterable[str]) -> str | None:
    """The known name that `name` is a near miss of, or None.

    Near are: the same letters in another case or with other separators (`mediaTypes`), or at most two slips (one in a
    name of up to four characters), where a slip is a character missing, added, changed, or swapped with the next.
    """
    if len(name) > MAX_SUGGESTED_LENGTH:
        return None
    plain, letters = _plain(name), frozenset(name.lower())
    best: str | None = None
    best_slips = 3
    for candidate in known:
        if candidate == name:
            continue
        if _plain(candidate) == plain:
            return candidate
        allowed = min(best_slips - 1, 2 if len(candidate) > 4 else 1)
        # A slip adds, loses or changes one letter, so two sets that differ by more are not worth comparing in order.
        if abs(len(candidate) - len(name)) <= allowed and len(letters ^ _letters(candidate)) <= 2 * allowed:
            slips = _slips(name.lower(), candidate.lower(), allowed)
            if slips <= allowed:
                best, best_slips = candidate, slips
    return best


@lru_cache(maxsize=1024)
def _letters(candidate: str) -> frozenset[str]:
    return frozenset(candidate.lower())


@lru_cache(maxsize=1024)
def _plain(name: str) -> str:
    return name.lower().replace("_", "").replace("-", "").replace(".", "").replace(" ", "")


def _slips(left: str, right: str, limit: int) -> int:
    """Optimal string alignment distance, given up above `limit`."""
    before: list[int] = []
    previous = list(range(len(right) + 1))
    for i, a in enumerate(left, 1):
        current = [i]
        for j, b in enumerate(right, 1):
            cost = min(previous[j] + 1, current[j - 1] + 1, previous[j - 1] + (a != b))
            if i > 1 and j > 1 and a == right[j - 2] and left[i - 2] == b:
                cost = min(cost, before[j - 2] + 1)
            current.append(cost)
        if min(current) > limit:
            return limit + 1
        before, previous = previous, current
    return previous[-1]
