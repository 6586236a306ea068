"""The page: what was simulated, what was expected, and what came of it."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, Final

from bnw.sim.measure import HEAL, RETURN, START
from bnw.sim.metrics import METRICS
from bnw.sim.play import Checked, Played
from bnw.sim.report.charts import Axis, distribution, dots, line_chart
from bnw.sim.report.happenings import Happening, happenings
from bnw.sim.report.markup import Child, Markup, facts, joined, table, tag
from bnw.sim.report.network import network_drawing
from bnw.sim.report.scales import Scale, straight
from bnw.sim.report.setting import not_as_in_the_file, setting
from bnw.sim.report.story import worst_name, worst_story
from bnw.sim.report.style import STYLE
from bnw.sim.report.words import amount, bounds_text, meaning, metric_text, seconds, share, size

Rows = list[tuple[Child, ...]]
POLICY: Final = "default-src 'none'; style-src 'unsafe-inline'"
MAX_REPAIRS: Final = 10
"""In the table; the picture has all."""
MAX_DOTS: Final = 3000
_CAUSES: Final = {HEAL: "heal of a partition", RETURN: "return", START: "late start"}


def report_page(played: Played, result: dict[str, Any]) -> str:
    """The whole HTML document. `result` is what `bnw.sim.result.to_json` made of the same run; that of a testnet has
    `real`, and `not_applied` with a sentence about each part of the scenario that real processes cannot have.
    """
    scenario = played.scenario
    is_real = bool(result.get("real"))
    worst = worst_name(played)
    kind = "BNW testnet, real nodes" if is_real else "BNW simulation"
    time = _time_axis(played, is_real)
    body = joined(
        tag("header", tag("p", f"{kind} · seed {played.seed}", class_="kind"), tag("h1", scenario.title)),
        tag("p", scenario.about),
        _verdict(played.checked),
        _tiles(played),
        _section("What was tried" if is_real else "What was simulated", setting(played, is_real=is_real)),
        not_as_in_the_file(result.get("not_applied", [])),
        _section("What was expected", _expectations(played.checked, played.until)),
        _section("Delivery", _delivery(played)),
        _section("Coverage over time", _coverage(played, time)),
        _section("Traffic and redundancy", _traffic(played, time)),
        _section("Repair after troubles", _repairs(played, time)),
        _section("The network", network_drawing(played, worst)),
        _section("The worst node’s story", _story(played, is_real)),
        _section("All metrics", _metrics(played)),
        _section("How to get the same again", _same_again(played, result, is_real)),
    )
    return document(f"{scenario.title} – {kind}", body)


def document(title: str, body: Markup) -> str:
    """A page that asks nobody for anything: no script, and a policy under which none would run."""
    head = joined(
        Markup('<meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">'),
        Markup(f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">'),
        tag("title", title),
        tag("style", Markup(STYLE)),
    )
    return "<!doctype html>\n" + tag("html", tag("head", head), tag("body", tag("main", body)), lang="en") + "\n"


def _section(title: str, content: Markup) -> Markup:
    return tag("section", tag("h2", title), content)


def _verdict(checked: Sequence[Checked]) -> Markup:
    judged = [item for item in checked if item.met is not None]
    failed = sum(item.met is False for item in judged)
    open_ = f" {len(checked) - len(judged)} could not be judged." if len(judged) < len(checked) else ""
    if not checked:
        return tag("p", "Nothing was expected: the scenario only shows.", class_="soft")
    if failed:
        return tag("p", f"✗ {failed} of {len(judged)} expectations did not hold.{open_}", class_="verdict bad")
    if not judged:
        return tag("p", f"No expectation could be judged.{open_}", class_="soft")
    words = "The expectation held." if len(judged) == 1 else f"All {len(judged)} expectations held."
    return tag("p", f"✓ {words}{open_}", class_="verdict good")


def _tiles(played: Played) -> Markup:
    """The figures that everyone asks for first."""
    metrics = played.metrics
    shown = [
        ("delivery.coverage", "of what was published is where it should be, at the end"),
        ("delivery.p50", "until half of all deliveries were made"),
        ("delivery.p95", "until 95 of 100 were"),
        ("delivery.p99", "until 99 of 100 were"),
        ("repair.max", "was the slowest repair"),
        ("traffic.redundancy", "copies came in vain for each that was new"),
        ("traffic.bytes_per_node", "arrived at a node on average"),
    ]
    if not metrics.get("repair.count", 0) + metrics.get("repair.open", 0):
        shown = [item for item in shown if item[0] != "repair.max"]
    if not played.recorder.delays:
        shown = [item for item in shown if not item[0].startswith("delivery.p")]
    tiles = [
        tag("div", tag("strong", metric_text(name, metrics[name])), tag("span", words))
        for name, words in shown
        if name in metrics
    ]
    return tag("div", *tiles, class_="tiles")


def _expectations(checked: Sequence[Checked], until: float) -> Markup:
    rows: Rows = []
    for item in checked:
        expect = item.expect
        name = expect.metric
        when = "at the end" if item.at == until else f"at {seconds(item.at)}"
        why = (tag("small", tag("i", f"– {expect.why}")),) if expect.why else ()
        what = joined(tag("code", name), f" {when}", tag("small", meaning(name)), *why)
        rows.append((_mark(item.met), what, joined(*_broken(bounds_text(expect))), metric_text(name, item.value)))
    if not rows:
        return tag("p", "Nothing: the scenario only shows.")
    return table(("", "what", "wanted", "found"), rows, numbers=(3,))


def _mark(met: bool | None) -> Markup:
    if met is None:
        return tag("span", "– not judged", class_="soft")
    return tag("span", "✓ held", class_="good") if met else tag("span", "✗ failed", class_="bad")


def _broken(parts: Sequence[str]) -> list[Markup]:
    return [tag("div", part, class_="whole") for part in parts]


def _delivery(played: Played) -> Markup:
    delays = sorted(played.recorder.delays)
    values = {name: played.metrics.get(f"delivery.{name}") for name in ("p50", "p95", "p99", "max")}
    text = (
        f"{len(played.recorder.objects):,} objects were published and arrived {len(delays):,} times at a node that did "
        "not have them. The time runs from publication, or from the start of the node that receives if that is later."
    )
    heads = ("p50: half within", "p95: 95 of 100 within", "p99: 99 of 100 within", "all within")
    rows: Rows = [tuple(metric_text("delivery.max", value) for value in values.values())]
    drawn = distribution("How long objects took to arrive", delays)
    return joined(tag("p", text), drawn, table(heads, rows) if delays else joined())


def _time_axis(played: Played, is_real: bool) -> Axis:
    return Axis("time in seconds" if is_real else "virtual time in seconds", _tight(played.until), amount)


def _tight(end: float) -> Scale:
    return straight(0.0, end, is_tight=True)


def _happened(played: Played) -> tuple[list[Happening], Markup]:
    shown, left = happenings(played.scenario, played.until)
    return shown, tag("p", f"{left} more troubles are not drawn.", class_="soft") if left else joined()


def _coverage(played: Played, time: Axis) -> Markup:
    samples = played.recorder.samples
    shown, note = _happened(played)
    coverage = [
        (sample.at, 1 - sample.missing / (sample.current * sample.running) if sample.current * sample.running else 1.0)
        for sample in samples
    ]
    running = [(sample.at, float(sample.running)) for sample in samples]
    least = min((value for _, value in coverage), default=0.0)
    floor = 0.0 if least < 0.6 else (0.5 if least < 0.9 else 0.9)
    most = max((value for _, value in running), default=1.0)
    text = (
        "Of all pairs of a running node and an object that counts, those where the node has the object. Each "
        "publication, and each node that comes back, makes a dip that lasts until it has reached everyone."
    )
    return joined(
        tag("p", text),
        line_chart("Coverage", coverage, x=time, y=Axis("share", straight(floor, 1.0), share), happenings=shown),
        note,
        line_chart(
            "Honest nodes that run",
            running,
            x=time,
            y=Axis("nodes", straight(0.0, most, whole=True), amount),
            happenings=shown,
            filled=True,
        ),
    )


def _traffic(played: Played, time: Axis) -> Markup:
    samples = played.recorder.samples
    rates = [
        (after.at, (after.bytes - before.bytes) / (after.at - before.at))
        for before, after in pairwise(samples)
        if after.at > before.at
    ]
    rows: Rows = [
        (tag("code", name), metric_text(name, played.metrics.get(name)), meaning(name))
        for name in METRICS
        if name.startswith("traffic.")
    ]
    most = max((rate for _, rate in rates), default=1.0)
    chart = line_chart(
        "Traffic of all nodes together",
        rates,
        x=time,
        y=Axis("bytes a second", straight(0.0, most), size),
        happenings=_happened(played)[0],
        filled=True,
    )
    return joined(chart, table(("metric", "value", "what it is"), rows, numbers=(1,)))


def _repairs(played: Played, time: Axis) -> Markup:
    repairs = played.recorder.repairs
    if not repairs:
        return tag("p", "Nothing had to be repaired.")
    end = played.until
    took = [(end if repair.ended is None else repair.ended) - repair.began for repair in repairs]
    counted = [
        f"{count:,} × {words}" for cause, words in _CAUSES.items() if (count := sum(r.cause == cause for r in repairs))
    ]
    still = sum(repair.ended is None for repair in repairs)
    text = (
        "A repair runs from the end of a trouble until nothing is missing, at the nodes concerned, that was published "
        f"before. There were {', '.join(counted)}; "
        + (f"{still:,} are still open at the end." if still else "all are complete.")
    )
    order = sorted(range(len(repairs)), key=lambda at: (repairs[at].ended is not None, -took[at], at))
    rows: Rows = [
        (
            _CAUSES[repairs[at].cause],
            repairs[at].who,
            f"{repairs[at].began:.1f} s",
            tag("span", f"✗ open after {seconds(took[at])}", class_="bad")
            if repairs[at].ended is None
            else seconds(took[at]),
        )
        for at in order[:MAX_REPAIRS]
    ]
    points = [(repairs[at].began, took[at], repairs[at].ended is not None) for at in order[:MAX_DOTS]]
    picture = dots(
        "When each repair began and how long it took" + (" (rings: still open)" if still else ""),
        points,
        x=time,
        y=Axis("time to repair", straight(0.0, max(took)), seconds),
        happenings=_happened(played)[0],
    )
    title = "The slowest" if len(repairs) > len(rows) else "All"
    listed = table(("after", "who", "when", "took"), rows, numbers=(2, 3))
    return joined(tag("p", text), picture if len(repairs) > 1 else joined(), tag("h3", title), listed)


def _story(played: Played, is_real: bool) -> Markup:
    text = "The node that lacks most at the end or, if none lacks anything, the one that waited longest for an object."
    lines = (tag("li", line) for line in worst_story(played, is_real=is_real))
    return joined(tag("p", text, class_="soft"), tag("ol", *lines, class_="story"))


def _metrics(played: Played) -> Markup:
    rows: Rows = [(tag("code", name), metric_text(name, played.metrics.get(name)), meaning(name)) for name in METRICS]
    faults = [f"{count:,} × {name}" for name, count in sorted(played.log.endings.items())]
    faults += [f"{count:,} × {name} when looking" for name, count in sorted(played.log.look_faults.items())]
    said = tag("p", f"Calls and looks that did not succeed: {', '.join(faults)}.") if faults else joined()
    listed = table(("metric", "value", "what it is"), rows, numbers=(1,))
    return joined(said, tag("details", tag("summary", f"All {len(rows)} metrics"), listed))


def _same_again(played: Played, result: dict[str, Any], is_real: bool) -> Markup:
    shared = result["checks_shared"]
    rows: list[tuple[Child, Child]] = [("scenario hash", tag("code", result["scenario_hash"]))]
    if not is_real:
        rows.append(("trace hash", tag("code", result["trace_hash"])))
    rows.append(("versions", ", ".join(f"{name} {text}" for name, text in result["versions"].items())))
    cost = (
        f"{seconds(result['cost']['cpu_seconds'])} of processor time, {size(result['cost']['peak_memory'])} of memory"
    )
    rows.append(("it took", cost + (", the nodes’ own processes not counted" if is_real else "")))
    name = "testnet" if is_real else "simulate"
    command = tag("p", "With the scenario’s file: ", tag("code", f"bnw {name} FILE --seed {played.seed}"))
    if is_real:
        text = (
            "Real processes never do quite the same again. The same seed gives the same network, the same work and the "
            "same troubles at the same times."
        )
    else:
        text = (
            "The same file, seed and versions give the same trace hash on any machine. "
            f"Of {shared['asked']:,} checks of an object’s form and signature, {shared['known']:,} were taken from "
            "what another simulated node had found for the same bytes."
        )
    return joined(command, tag("p", text), facts(rows))
