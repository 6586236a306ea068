"""Reports as people see them: opened by a real browser, wide and narrow, light and dark.

Needs Chromium or Chrome, which scripts/setup installs where it may; `BNW_TEST_BROWSER` names another.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bnw.sim.play import play
from bnw.sim.report import report_page, sweep_page
from bnw.sim.result import Cost, to_json
from bnw.sim.scenario import read_scenario
from bnw.sim.sweep import SHOWN, run_sweep
from tests.sim.browser import CHOSEN, Page, browser, find_browser

WINDOWS = {"desktop": 1280, "phone": 360}
SCENARIO = """
title = "Everything at once"
about = "A small network in which each kind of trouble happens, so that each part of a report has something to show."
duration = "60s"
[network]
degree = 4
regions = ["dallas", "frankfurt"]
jitter = "5ms"
[[nodes]]
role = "carrier"
count = 6
[[nodes]]
role = "latecomer-whose-name-is-too-long"
count = 2
start = "20s"
[[nodes]]
role = "provider"
count = 2
[[publish]]
by = "provider"
count = 5
every = "8s"
[[provide]]
by = "provider"
[[invoke]]
by = "carrier"
of = "provider"
[[churn]]
role = "carrier"
share = 0.5
session = "6s"
pause = "4s"
[[crash]]
role = "carrier"
at = "30s"
count = 1
[[partition]]
at = "25s"
heal = "35s"
regions = ["dallas"]
[[adversary]]
kind = "spam"
[[expect]]
metric = "delivery.objects"
at_least = 10
why = "or nothing was there to be delivered"
[[expect]]
metric = "delivery.p50"
at_most = 0.000001
[[expect]]
metric = "delivery.coverage"
at_least = 0.1
at = "20s"
"""
EMPTY = """
title = "Nothing happens"
about = "One node."
duration = "5s"
[[nodes]]
role = "hermit"
count = 1
"""

WINDOW = "var WINDOW = {};"
"""A phone's own `innerWidth` grows with what is in it."""

# What a person would call broken. Each gives a list of what is wrong.
SIDEWAYS = "[document.documentElement.scrollWidth].filter(width => width > WINDOW)"
EMPTY_SECTIONS = """[...document.querySelectorAll('section')].filter(s => {
    const h = s.querySelector('h2').getBoundingClientRect(), all = s.getBoundingClientRect();
    return h.height < 10 || all.bottom - h.bottom < 15 }).map(s => s.innerText)"""
OVERLAPS = """(() => {
    const parts = [...document.querySelectorAll('main > *, section > *')].filter(e => e.getBoundingClientRect().height);
    return parts.flatMap((e, at) => parts.slice(at + 1).filter(o => {
        const a = e.getBoundingClientRect(), b = o.getBoundingClientRect();
        return !e.contains(o) && !o.contains(e) && a.bottom > b.top + 1 && b.bottom > a.top + 1
    }).map(o => [e.innerText.slice(0, 40), o.innerText.slice(0, 40)])) })()"""
UNSEEN_DRAWINGS = """[...document.querySelectorAll('figure svg')].filter(s => {
    const r = s.getBoundingClientRect();
    return r.width < 200 || r.height < 100 || !s.querySelector('.curve, .dot, .node')
}).map(s => s.textContent.slice(0, 60))"""
WORDS_ON_WORDS = """[...document.querySelectorAll('figure svg')].flatMap(s => {
    const words = [...s.querySelectorAll('text')].map(t => [t, t.getBoundingClientRect()]);
    const meet = (a, b) => Math.min(a.right, b.right) - Math.max(a.left, b.left) > 2
        && Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 4;
    return words.flatMap(([t, a], at) => words.slice(at + 1)
        .filter(([u, b]) => meet(a, b)).map(([u]) => [t.textContent, u.textContent])) })"""
OUTSIDE = """[...document.querySelectorAll('figure svg')].flatMap(s => {
    const all = s.getBoundingClientRect();
    return [...s.querySelectorAll('text, .dot, .bar, .curve')].filter(e => {
        const r = e.getBoundingClientRect();
        return r.left < all.left - 1 || r.right > all.right + 1 || r.top < all.top - 1 || r.bottom > all.bottom + 1
    }).map(e => e.textContent || e.className.baseVal) })"""
CUT_OFF = """[...document.querySelectorAll('main p, td, dd, dt, h1, h2, .tiles strong, .tiles span')]
    .filter(e => e.scrollWidth > e.clientWidth + 1 && getComputedStyle(e).display != 'inline')
    .map(e => e.innerText.slice(0, 60))"""
UNREADABLE = """(() => {
    const light = c => { const [r, g, b] = c.match(/[\\d.]+/g).map(Number).map(x => x / 255)
            .map(x => x <= .04045 ? x / 12.92 : ((x + .055) / 1.055) ** 2.4);
        return .2126 * r + .7152 * g + .0722 * b };
    const under = e => { for (; e; e = e.parentElement) { const c = getComputedStyle(e).backgroundColor;
            if (c != 'rgba(0, 0, 0, 0)') return c } return 'rgb(255, 255, 255)' };
    const texts = 'p, td, th, dt, dd, li, strong, span, small, code, h1, h2, summary, figcaption, text';
    return [...document.querySelectorAll(texts)].filter(e => e.textContent.trim()).filter(e => {
            const style = getComputedStyle(e);
            const a = light(e.tagName == 'text' ? style.fill : style.color), b = light(under(e));
            return (Math.max(a, b) + .05) / (Math.min(a, b) + .05) < 4.5
        }).map(e => e.textContent.slice(0, 40)) })()"""
FAULTS = {
    "the page must not be moved sideways": SIDEWAYS,
    "a section has something in it": EMPTY_SECTIONS,
    "one part hides another": OVERLAPS,
    "a drawing is there and draws something": UNSEEN_DRAWINGS,
    "words in a drawing stand on others": WORDS_ON_WORDS,
    "something is drawn outside of its picture": OUTSIDE,
    "text is cut off": CUT_OFF,
    "text stands out from its background (WCAG 2.2, 1.4.3: 4.5 to 1)": UNREADABLE,
}


@pytest.fixture(scope="module")
def page() -> Iterator[Page]:
    program = find_browser()
    if program is None:
        pytest.skip(f"no Chromium or Chrome here: install Debian's chromium, or name one in {CHOSEN}")
    with browser(program) as running:
        yield running.new_page()


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A full report, an empty one, one of a testnet, and a sweep."""
    folder = tmp_path_factory.mktemp("pages")
    full, empty = (play(read_scenario(text.encode()), 1) for text in (SCENARIO, EMPTY))
    result = to_json(full, SCENARIO.encode(), Cost(1.0, 1_000_000))
    real = {**result, "real": True, "trace_hash": None, "not_applied": ["[[adversary]] spam: left out; only simulated"]}
    (folder / "small.toml").write_text(SCENARIO.replace('"60s"', '"40s"'))
    swept = run_sweep(folder / "small.toml", "network.latency=1ms,20ms,0.3s", [1], note=lambda text: None)
    made = {
        "full": report_page(full, result),
        "empty": report_page(empty, to_json(empty, EMPTY.encode(), Cost(1.0, 1_000_000))),
        "real": report_page(full, real),
        "sweep": sweep_page("Everything at once", swept, SHOWN),
    }
    for name, text in made.items():
        (folder / f"{name}.html").write_text(text)
    return {name: folder / f"{name}.html" for name in made}


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize("name", ["full", "empty", "real", "sweep"])
def test_a_page_looks_right(page: Page, pages: dict[str, Path], name: str, window: str, dark: bool) -> None:
    width = WINDOWS[window]
    page.open(pages[name], width=width, dark=dark)
    page.ask("document.querySelectorAll('details').forEach(d => { d.open = true })")
    found: dict[str, Any] = {fault: page.ask(WINDOW.format(width) + expression) for fault, expression in FAULTS.items()}
    assert {fault: what for fault, what in found.items() if what} == {}
    assert page.complaints == [], "nothing on the console, and nothing asked of the network"


def test_a_report_has_all_its_parts_in_order(page: Page, pages: dict[str, Path]) -> None:
    page.open(pages["full"], width=WINDOWS["desktop"])
    assert page.ask("[...document.querySelectorAll('h1')].map(h => h.innerText)") == ["Everything at once"]
    assert page.ask("[...document.querySelectorAll('h2')].map(h => h.innerText)") == [
        "What was simulated",
        "What was expected",
        "Delivery",
        "Coverage over time",
        "Traffic and redundancy",
        "Repair after troubles",
        "The network",
        "The worst node’s story",
        "All metrics",
        "How to get the same again",
    ]
    assert page.ask("document.querySelectorAll('figure svg').length") == 6
    assert page.ask("document.querySelectorAll('.net .node').length") == 11, "ten honest nodes and the adversary"
    assert "1 of 3 expectations did not hold" in page.ask("document.body.innerText")


def test_the_checks_find_what_is_broken(page: Page, tmp_path: Path) -> None:
    """Or the tests above would show nothing."""
    broken = tmp_path / "broken.html"
    broken.write_text(
        "<!doctype html><main><p style='width:2000px; color:#bbb'>far</p><p style='margin-top:-50px'>over</p>"
        "<p style='width:9px;overflow:hidden'>unbreakable</p>"
        "<section><h2>Nothing</h2></section><figure><svg viewBox='0 0 900 300' style='width:900px'>"
        "<text x=9 y=20>one</text><text x=10 y=21>two</text><text x=890 y=90>outside</text></svg></figure></main>"
        "<script>console.error('trouble'); nowhere()</script><img src='none.png'>"
    )
    page.open(broken, width=WINDOWS["desktop"])
    found = {fault: page.ask(WINDOW.format(WINDOWS["desktop"]) + expression) for fault, expression in FAULTS.items()}
    assert [fault for fault, what in found.items() if not what] == []
    assert {complaint.partition(":")[0] for complaint in page.complaints} >= {"console", "exception", "request"}
