"""The page: what was simulated, what was expected, and what came of it."""

from __future__ import annotations

from itertools import pairwise
from typing import Any, Final

from bnw.sim.measure import HEAL
from bnw.sim.metrics import METRICS
from bnw.sim.play import Checked, Played
from bnw.sim.regions import SOURCE
from bnw.sim.report.charts import distribution, line_chart, short
from bnw.sim.report.markup import Child, Markup, joined, table, tag
from bnw.sim.report.network import network_drawing
from bnw.sim.report.story import worst_name, worst_story

STYLE: Final = """
:root { color-scheme: light dark; --fg: #1a202c; --bg: #fff; --soft: #718096; --line: #cbd5e0; --accent: #2b6cb0; }
@media (prefers-color-scheme: dark) {
  :root { --fg: #e2e8f0; --bg: #171923; --soft: #a0aec0; --line: #4a5568; --accent: #63b3ed; }
}
body { font: 16px/1.5 system-ui, sans-serif; color: var(--fg); background: var(--bg); margin: 2rem auto;
  padding: 0 1rem; max-width: 60rem; }
h1 { margin-bottom: 0; } h2 { margin-top: 2.5rem; border-bottom: 1px solid var(--line); }
table { border-collapse: collapse; margin: 1rem 0; width: 100%; }
th, td { text-align: left; padding: .3rem .7rem; border-bottom: 1px solid var(--line); vertical-align: top; }
figure { margin: 1rem 0; } figcaption { font-weight: 600; } svg { width: 100%; height: auto; }
svg.net { max-width: 40rem; } svg text { fill: var(--fg); font-size: 11px; } .small { fill: var(--soft); }
.middle { text-anchor: middle; } .end { text-anchor: end; } .axis { stroke: var(--fg); } .grid { stroke: var(--line);
  stroke-width: .5; } .mark { stroke: #b7791f; stroke-dasharray: 4 3; } .line { fill: none; stroke: var(--accent);
  stroke-width: 2; } .edge { stroke: var(--line); stroke-width: .7; } .worst { stroke: var(--fg); stroke-width: 2.5; }
.ok { color: #2f855a; font-weight: 600; } .failed { color: #c53030; font-weight: 700; } .soft { color: var(--soft); }
.key { margin-right: 1.2rem; white-space: nowrap; } .key i { display: inline-block; width: .8em; height: .8em;
  border-radius: 50%; margin-right: .4em; } code { word-break: break-all; }
"""
Rows = list[tuple[Child, ...]]
POLICY: Final = "default-src 'none'; style-src 'unsafe-inline'"
MAX_MARKS: Final = 8
MAX_REPAIRS: Final = 30


def report_page(played: Played, result: dict[str, Any]) -> str:
    """The whole HTML document. `result` is what `bnw.sim.result.to_json` made of the same run."""
    scenario = played.scenario
    worst = worst_name(played)
    body = joined(
        tag("h1", scenario.title),
        tag("p", *_verdict(played)),
        tag("p", scenario.about),
        _section("What was simulated", _setting(played)),
        _section("What was expected", _expectations(played.checked)),
        _section("Delivery", _delivery(played)),
        _section("Coverage over time", _coverage(played)),
        _section("Traffic and redundancy", _traffic(played)),
        _section("Repair after troubles", _repairs(played)),
        _section("The network", network_drawing(played, worst)),
        _section("The worst node's story", tag("ul", *(tag("li", line) for line in worst_story(played)))),
        _section("All metrics", _metrics(played)),
        _section("How to get the same again", _same_again(result)),
    )
    head = joined(
        Markup('<meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">'),
        Markup(
            "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">"
        ),
        tag("title", f"{scenario.title} – BNW simulation"),
        tag("style", Markup(STYLE)),
    )
    return "<!doctype html>\n" + tag("html", tag("head", head), tag("body", body), lang="en") + "\n"


def _section(title: str, content: Markup) -> Markup:
    return tag("section", tag("h2", title), content)


def _verdict(played: Played) -> tuple[Markup | str, ...]:
    failed = sum(item.met is False for item in played.checked)
    if failed:
        return (tag("span", f"{failed} of {len(played.checked)} expectations did not hold.", class_="failed"),)
    return (tag("span", f"All {len(played.checked)} expectations held.", class_="ok"),)


def _setting(played: Played) -> Markup:
    scenario, network = played.scenario, played.scenario.network
    degrees = sorted(len(place.neighbours) for place in played.plan.places.values())
    rows: Rows = [
        ("seed", str(played.seed)),
        ("virtual time", f"{played.until:g} s of {scenario.duration:g} s"),
        ("honest nodes", ", ".join(f"{group.count:,} {group.role}" for group in scenario.nodes)),
        (
            "adversaries",
            ", ".join(
                f"{table.count:,} {table.kind}" + (f" around {table.victim}-0" if table.victim else "")
                for table in scenario.adversary
            )
            or "none",
        ),
        ("topology", f"{network.topology}, {degrees[0]} to {degrees[-1]} neighbours each"),
        (
            "links",
            f"{1000 * network.latency:g} ms one way"
            + (f", and between regions as in a published table ({SOURCE})" if network.regions else "")
            + (f"; jitter {1000 * network.jitter:g} ms, {network.jitter_shape}" if network.jitter else "")
            + (f"; {short(network.bandwidth)} bytes a second" if network.bandwidth else "; no limit of bandwidth"),
        ),
        ("loss", f"{network.loss:.2%} of packets sent again, {network.gossip_loss:.2%} of gossip lost for good"),
        ("identity records", f"published by {network.identity_records}"),
        ("troubles", _troubles(played) or "none"),
    ]
    return table(("", ""), rows)


def _troubles(played: Played) -> str:
    scenario = played.scenario
    words = [
        f"{table.share:.0%} of {table.role} come and go (session {table.session:g} s, {table.session_shape})"
        for table in scenario.churn
    ]
    words += [f"{table.count} {table.role} crash at {table.at:g} s" for table in scenario.crash]
    words += [f"{table.count or 'all'} {table.role} leave at {table.at:g} s" for table in scenario.leave]
    words += [f"a partition from {cut.at:g} to {cut.heal:g} s" for cut in scenario.partition]
    words += [f"clocks of {table.role} jump by {table.by:g} s" for table in scenario.clock]
    return "; ".join(words)


def _expectations(checked: list[Checked]) -> Markup:
    rows: Rows = []
    for item in checked:
        expect = item.expect
        bounds = [f"≥ {expect.at_least:g}"] if expect.at_least is not None else []
        bounds += [f"≤ {expect.at_most:g}"] if expect.at_most is not None else []
        met = item.met
        mark = (
            tag("span", "not reached", class_="soft")
            if met is None
            else (tag("span", "held", class_="ok") if met else tag("span", "failed", class_="failed"))
        )
        meaning = joined(METRICS[expect.metric], *((tag("br"), tag("i", expect.why)) if expect.why else ()))
        value = "–" if item.value is None else f"{item.value:,.6g}"
        rows.append((mark, expect.metric, ", ".join(bounds), f"{item.at:g} s", value, meaning))
    if not rows:
        return tag("p", "Nothing: the scenario only shows.")
    return table(("", "metric", "bound", "at", "value", "what it is"), rows)


def _delivery(played: Played) -> Markup:
    delays = sorted(played.recorder.delays)
    metrics = played.metrics
    rows: Rows = [(name, f"{metrics[f'delivery.{name}']:.3f} s") for name in ("p50", "p95", "p99", "max")]
    text = (
        f"{len(delays):,} first arrivals of {len(played.recorder.objects):,} objects. The time runs from "
        "publication, or from the start of the node that receives if that is later."
    )
    return joined(tag("p", text), distribution("Time from publication to arrival", delays), table(("", ""), rows))


def _marks(played: Played) -> list[tuple[float, str]]:
    scenario = played.scenario
    marks = [(cut.at, "partition") for cut in scenario.partition] + [(cut.heal, "heal") for cut in scenario.partition]
    marks += [(table.at, f"{table.role} crash") for table in scenario.crash]
    marks += [(table.at, f"{table.role} leave") for table in scenario.leave]
    marks += [(group.start, f"{group.role} join") for group in scenario.nodes if group.start]
    return sorted(mark for mark in marks if mark[0] <= played.until)[:MAX_MARKS]


def _coverage(played: Played) -> Markup:
    samples, marks = played.recorder.samples, _marks(played)
    coverage = [
        (sample.at, 1 - sample.missing / (sample.current * sample.running) if sample.current * sample.running else 1.0)
        for sample in samples
    ]
    running = [(sample.at, float(sample.running)) for sample in samples]
    floor = max(0.0, min(share for _, share in coverage) - 0.02)
    return joined(
        tag("p", "Of all pairs of a running node and an object that counts, those where the node has the object."),
        line_chart("Coverage", coverage, x_label="virtual seconds", y_label="share", marks=marks, low=floor, high=1.0),
        line_chart("Honest nodes that run", running, x_label="virtual seconds", y_label="nodes", marks=marks),
    )


def _traffic(played: Played) -> Markup:
    samples = played.recorder.samples
    rates = [
        (after.at, (after.bytes - before.bytes) / (after.at - before.at))
        for before, after in pairwise(samples)
        if after.at > before.at
    ]
    chosen = [name for name in METRICS if name.startswith("traffic.")]
    rows: Rows = [(name, short(float(played.metrics[name])), METRICS[name]) for name in chosen]
    chart = line_chart("Bytes a second, all nodes", rates, x_label="virtual seconds", y_label="bytes a second")
    return joined(chart, table(("", "", "what it is"), rows))


def _repairs(played: Played) -> Markup:
    repairs = sorted(played.recorder.repairs, key=lambda repair: (repair.cause != HEAL, repair.began))
    rows: Rows = [
        (
            repair.cause,
            repair.who,
            f"{repair.began:.1f} s",
            "still open" if repair.ended is None else f"{repair.ended - repair.began:.2f} s",
        )
        for repair in repairs[:MAX_REPAIRS]
    ]
    if not rows:
        return tag("p", "Nothing had to be repaired.")
    more = len(repairs) - len(rows)
    return joined(
        tag("p", "From the end of a trouble until nothing published before it was missing at the nodes concerned."),
        table(("after", "who", "when", "took"), rows),
        tag("p", f"And {more:,} more.") if more > 0 else joined(),
    )


def _metrics(played: Played) -> Markup:
    rows: Rows = [(name, f"{played.metrics[name]:,.6g}", meaning) for name, meaning in METRICS.items()]
    faults = [f"{count:,} × {name}" for name, count in sorted(played.log.endings.items())]
    faults += [f"{count:,} × {name} when looking" for name, count in sorted(played.log.look_faults.items())]
    said = tag("p", f"Calls and looks that did not succeed: {', '.join(faults)}.") if faults else joined()
    return joined(table(("metric", "value", "what it is"), rows), said)


def _same_again(result: dict[str, Any]) -> Markup:
    shared = result["checks_shared"]
    rows: Rows = [
        ("trace hash", tag("code", result["trace_hash"])),
        ("scenario hash", tag("code", result["scenario_hash"])),
        ("seed", str(result["seed"])),
        *((name, text) for name, text in result["versions"].items()),
        ("CPU time here", f"{result['cost']['cpu_seconds']:g} s"),
        ("most memory here", f"{short(float(result['cost']['peak_memory']))} bytes"),
    ]
    text = (
        "The same file, seed and versions give the same trace hash on any machine. Nodes are those that ship; the "
        f"network is simulated. Of {shared['asked']:,} checks of an object's form and signature, {shared['known']:,} "
        "were taken from what another simulated node had found for the same bytes."
    )
    return joined(tag("p", text), table(("", ""), rows))
