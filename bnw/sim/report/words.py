"""Numbers and metrics in words that a reader needs no key for: units, and meanings that stand by themselves."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from bnw.sim.metrics import METRICS
from bnw.sim.scenario.schema import Expect

PREFIXES: Final = ((1e9, "G"), (1e6, "M"), (1e3, "k"))
_DELIVERY: Final = "seconds from publication, or the node's start if later, to arrival"
_ALONE: Final[Mapping[str, str]] = {
    "delivery.current": "objects that count: no newer one has replaced them and they have not expired",
    "delivery.missed": "pairs of an object that counts and a running node where the node lacks the object",
    "delivery.p95": f"{_DELIVERY}; 95 of 100 are faster",
    "delivery.p99": f"{_DELIVERY}; 99 of 100 are faster",
    "delivery.max": f"{_DELIVERY}, the slowest",
    "repair.open": "heals, returns and late starts after which something is still missing",
    "repair.max": "seconds from a heal, return or late start until nothing older is missing, the slowest",
    "traffic.bytes_per_node": "bytes that arrived at one node, on average, headers included",
    "traffic.gossip_new": "gossip messages that arrived and that the node had not seen",
    "calls.completed": "calls with the right answer",
    "calls.completed_share": "share of the calls that ended with the right answer",
    "calls.p99": "seconds that a completed call took; 99 of 100 are faster",
    "fetch.found_share": "share of the looks at a capability that gave the descriptor",
    "fetch.wrong": "looks that gave other bytes than were published",
}


def meaning(metric: str) -> str:
    """What a metric is, without reference to the one that stands above it in a list."""
    return _ALONE.get(metric, METRICS[metric])


def seconds(value: float) -> str:
    """As "45 ms", "0 s", "1.25 s" or "3 min 20 s"."""
    if 0 < value < 0.9995:
        return f"{1000 * value:.3g} ms"
    if value < 120:
        return f"{value:.3g} s"
    minutes, rest = divmod(round(value), 60)
    return f"{minutes} min" + (f" {rest} s" if rest else "")


def share(value: float) -> str:
    """As "99.9 %"; 100 % and 0 % are said of exactly these alone."""
    for digits in (0, 1, 2, 4, 6):
        text = f"{100 * value:.{digits}f}"
        said = float(text) / 100
        if abs(said - value) < 0.0005 and (said == 1) == (value == 1) and (said == 0) == (value == 0):
            return f"{text.rstrip('0').rstrip('.') if '.' in text else text} %"
    return "> 99.9999 %" if value > 0.5 else "< 0.0001 %"


def amount(value: float) -> str:
    """A number, as "412", "18.2 k" or "1.3 M"."""
    for limit, letter in PREFIXES:
        if abs(value) >= max(limit, 1e4):
            return f"{value / limit:.3g} {letter}"
    return f"{value:.3g}" if abs(value) < 1000 else f"{value:,.0f}"


def size(value: float) -> str:
    """Bytes, as "812 B" or "1.3 MB"."""
    for limit, letter in PREFIXES:
        if abs(value) >= limit:
            return f"{value / limit:.3g} {letter}B"
    return f"{value:.3g} B"


def bounds_text(expect: Expect) -> list[str]:
    """What an expectation wants of its metric."""
    low, high = expect.at_least, expect.at_most
    wanted = [f"at least {metric_text(expect.metric, low)}"] if low is not None else []
    return wanted + ([f"at most {metric_text(expect.metric, high)}"] if high is not None else [])


def metric_text(metric: str, value: float | None) -> str:
    """A metric's value with its unit."""
    if value is None:
        return "–"
    last = metric.partition(".")[2]
    if last.endswith(("coverage", "_share")) or last == "proofs":
        return share(value)
    if metric.startswith("traffic.bytes"):
        return size(value)
    if last in ("p50", "p95", "p99", "max"):
        return seconds(value)
    return f"{value:,.0f}" if value == int(value) else f"{value:,.3g}"
