"""Numbers and texts within the bounds of a view, plainest first, and as many different ones as a set may need."""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from itertools import count, islice
from typing import Final

from bnw.profiles.json_reader import JsonValue
from bnw.profiles.starter.patterns import MAX_SAMPLE, samples
from bnw.profiles.starter.views import View
from bnw.wire.limits import MAX_INTEGER

_FORMATS: Final[dict[str, tuple[str, ...]]] = {
    "date-time": ("2000-01-01T00:00:00Z", "2000-01-01T00:00:00.000Z"),
    "date": ("2000-01-01", "2000-01-02", "2000-01-03"),
    "time": ("00:00:00Z", "00:00:00.000Z"),
    "duration": ("PT0S", "P1D", "P1Y2M3DT4H5M6S"),
    "email": ("user@example.org", "a@b.co"),
    "idn-email": ("user@example.org", "a@b.co"),
    "hostname": ("example.org", "a.b"),
    "idn-hostname": ("example.org", "a.b"),
    "ipv4": ("192.0.2.1", "198.51.100.100", "203.0.113.1", "1.1.1.1"),
    "ipv6": ("2001:db8::1", "::", "2001:0db8:0000:0000:0000:0000:0000:0001"),
    "uri": ("https://example.org/", "a:b"),
    "uri-reference": ("/", "https://example.org/"),
    "iri": ("https://example.org/", "a:b"),
    "iri-reference": ("/", "https://example.org/"),
    "uri-template": ("/{name}", "/"),
    "uuid": ("00000000-0000-4000-8000-000000000000", "11111111-1111-4111-8111-111111111111"),
    "json-pointer": ("", "/a"),
    "relative-json-pointer": ("0", "0#"),
    "regex": (".*", "a"),
}
_GROWING: Final = frozenset(_FORMATS) - {"date", "ipv4", "ipv6", "uuid", "duration"}
_FALLBACKS: Final = ("Aa1!Aa1!", "aA1", "a-b", "1", "https://example.org/", "user@example.org", "2000-01-01")
_MAX_VARIANTS: Final = 512


def numbers(view: View, *, integer: bool) -> Iterator[JsonValue]:
    """Numbers within the bounds: 0 if it is, else the nearest bound, then on from there."""
    low, high = Fraction(-MAX_INTEGER), Fraction(MAX_INTEGER)
    low_open = high_open = False
    for value in view.numbers("minimum"):
        low = max(low, _fraction(value))
    for value in view.numbers("maximum"):
        high = min(high, _fraction(value))
    for value in view.numbers("exclusiveMinimum"):
        if _fraction(value) >= low:
            low, low_open = _fraction(value), True
    for value in view.numbers("exclusiveMaximum"):
        if _fraction(value) <= high:
            high, high_open = _fraction(value), True
    steps = [_fraction(value) for value in view.numbers("multipleOf") if value > 0]
    step = Fraction(1)
    if steps:
        step = _common_multiple([*steps, Fraction(1)] if integer else steps)

    def within(number: Fraction) -> bool:
        return (number > low if low_open else number >= low) and (number < high if high_open else number <= high)

    if within(Fraction(0)):
        yield 0
    start = math.ceil(low / step) if low > -MAX_INTEGER else (math.floor(high / step) if high < MAX_INTEGER else 0)
    direction = -1 if low <= -MAX_INTEGER and high < MAX_INTEGER else 1
    offered = 0
    for index in islice(count(), _MAX_VARIANTS):
        number = (start + direction * index) * step
        if within(number):
            offered += 1
            yield _plain(number)
    if not integer and not steps and offered < _MAX_VARIANTS:
        # The bounds lie closer together than whole numbers.
        for parts in range(2, 66):
            number = low + (high - low) / parts
            if within(number):
                yield _plain(number)


def texts(view: View) -> Iterator[JsonValue]:
    """Texts of an allowed length that fit the patterns and formats, as far as can be told; the validator decides."""
    least = view.size("minLength", 0)
    most = view.size("maxLength", MAX_SAMPLE)
    patterns = [pattern for pattern in view.all("pattern") if isinstance(pattern, str)]
    formats = [name for name in view.all("format") if isinstance(name, str) and name in _FORMATS]
    if least > MAX_SAMPLE or least > most:
        return
    for name in formats:
        yield from _fitted(name, least, most)
    for pattern in patterns:
        for text in islice(samples(pattern, least), _MAX_VARIANTS):
            if len(text) <= most:
                yield text
    if not formats and not patterns:
        yield "a" * least
    yield from (text for text in _FALLBACKS if least <= len(text) <= most)
    for number in range(_MAX_VARIANTS):
        text = f"{number}".rjust(least, "a")
        if len(text) <= most:
            yield text
    yield from (mark * max(least, 1) for mark in "abcdefghijklmnopqrstuvwxyz" if max(least, 1) <= most)


def _fitted(name: str, least: int, most: int) -> Iterator[str]:
    """Texts of the named format, stretched to the length where the format allows."""
    for text in _FORMATS[name]:
        if least <= len(text) <= most:
            yield text
    if name in _GROWING:
        for text in _FORMATS[name]:
            for extra in islice(count(max(0, least - len(text))), 24):
                if len(text) + extra <= min(most, MAX_SAMPLE):
                    yield from _stretched(name, text, extra)


def _stretched(name: str, text: str, extra: int) -> Iterator[str]:
    if name in ("date-time", "time") and "." in text:
        yield text[:-1] + "0" * extra + "Z"
    elif name in ("email", "idn-email"):
        yield "a" * extra + text
        yield text.replace("@", "@" + _labels(extra)) if extra else text
    elif name in ("hostname", "idn-hostname"):
        yield _labels(extra) + text
    elif name == "json-pointer":
        yield text + "/" + "a" * max(0, extra - 1) if extra else text
    else:
        yield text + "a" * extra


def _labels(length: int) -> str:
    """`length` characters of host name labels, the last one ending in a dot."""
    text = ("a" * 30 + ".") * (length // 31 + 1)
    return text[:length] if length % 31 == 0 else text[: length - 1].rstrip(".").ljust(length - 1, "a") + "."


def _fraction(value: float) -> Fraction:
    """The number as it is written: 0.1 is a tenth."""
    return Fraction(value) if isinstance(value, int) else Fraction(repr(value))


def _plain(number: Fraction) -> JsonValue:
    return int(number) if number.denominator == 1 else float(number)


def _common_multiple(steps: list[Fraction]) -> Fraction:
    common = steps[0]
    for step in steps[1:]:
        numerator = math.lcm(common.numerator * step.denominator, step.numerator * common.denominator)
        common = Fraction(numerator, common.denominator * step.denominator)
    return common
