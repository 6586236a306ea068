"""Chance in a simulated world: numbers between 0 and 1 from an environment, and distributions made of them.

Only the four basic operations are used, which IEEE 754 defines to the last bit. The logarithm of one C library may
differ from that of another in the last digit, and one such digit would be another run.
"""

from __future__ import annotations

from math import frexp
from typing import Final

from bnw.wire.environment import Environment, random_below

FIXED: Final = "fixed"
UNIFORM: Final = "uniform"
NORMAL: Final = "normal"
EXPONENTIAL: Final = "exponential"
HEAVY_TAIL: Final = "heavy-tail"
SHAPES: Final = (FIXED, UNIFORM, NORMAL, EXPONENTIAL, HEAVY_TAIL)

_STEPS: Final = 2**32
_LN_2: Final = 0.6931471805599453
MOST: Final = 50.0
"""No draw is more than so many times its mean; a heavy tail would otherwise have no bound."""


def chance(environment: Environment) -> float:
    """A number from 0 up to, not including, 1."""
    return random_below(environment, _STEPS) / _STEPS


def draw(environment: Environment, shape: str, mean: float) -> float:
    """A number of at least 0 whose mean is `mean`, about.

    `fixed` is the mean itself; `uniform` lies between 0 and twice the mean; `normal` has a deviation of a quarter of
    the mean; `exponential` is what waiting for a chance event gives; `heavy-tail` is a Pareto distribution with
    exponent 1.5, as session lengths in peer-to-peer networks have been found to be: most are short, some very long.
    """
    if shape == FIXED:
        return mean
    if shape == UNIFORM:
        return 2 * mean * chance(environment)
    if shape == NORMAL:
        # The sum of twelve has the mean 6 and the deviation 1.
        total = sum(chance(environment) for _ in range(12))
        return max(0.0, mean * (1 + (total - 6) / 4))
    left = 1 - chance(environment)
    if shape == EXPONENTIAL:
        return min(-mean * logarithm(left), MOST * mean)
    # Pareto: scale · left^(-1/1.5), with a third of the mean as scale.
    root = _cube_root(left)
    return min(mean / 3 / (root * root), MOST * mean)


def logarithm(value: float) -> float:
    """The natural logarithm of a number above 0, to about 14 digits."""
    fraction, exponent = frexp(value)
    ratio = (fraction - 1) / (fraction + 1)
    square, term, total = ratio * ratio, ratio, 0.0
    for divisor in range(1, 61, 2):
        total += term / divisor
        term *= square
    return 2 * total + exponent * _LN_2


def _cube_root(value: float) -> float:
    """Of a number from 2^-32 to 1, by Newton's method."""
    root = 1.0
    for _ in range(60):
        root = (2 * root + value / (root * root)) / 3
    return root
