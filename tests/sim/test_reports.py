"""Reports, comparisons, sweeps and shrinking: what people and CI make of runs."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from bnw.sim import shrink
from bnw.sim.compare import compare_results, read_result
from bnw.sim.play import Played, play
from bnw.sim.report import report_page, sweep_page
from bnw.sim.report.markup import tag
from bnw.sim.result import Cost, to_json
from bnw.sim.scenario import Scenario, read_scenario
from bnw.sim.shrink import shrink_scenario, to_toml
from bnw.sim.sweep import SHOWN, run_sweep
from bnw.wire.errors import LocalError

SMALL = """
title = "<b>Tiny & \\"bold\\"</b>"
about = "A ring of four in which one publishes: <script>alert(1)</script>"
duration = "12s"
[network]
topology = "ring"
[[nodes]]
role = "carrier"
count = 3
[[nodes]]
role = "publisher"
count = 1
[[publish]]
by = "publisher"
count = 2
[[expect]]
metric = "delivery.coverage"
at_least = 1.0
why = "<i>all</i> of it"
"""
IMPOSSIBLE = '[[expect]]\nmetric = "delivery.p50"\nat_most = 0.001\n'


@pytest.fixture(scope="module")
def tiny() -> Played:
    return play(read_scenario(SMALL.encode()), 1)


def result_of(played: Played) -> dict[str, Any]:
    return to_json(played, SMALL.encode(), Cost(1.0, 1))


class Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.links: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.links += [value or "" for name, value in attrs if name in ("src", "href", "xlink:href")]


def test_a_report_needs_nothing_else_and_runs_nothing(tiny: Played) -> None:
    page = report_page(tiny, result_of(tiny))
    reader = Reader()
    reader.feed(page)
    assert "svg" in reader.tags and reader.tags.count("h1") == 1
    assert not {"script", "link", "img", "iframe", "object", "b"} & set(reader.tags)
    assert reader.links == []
    assert "url(" not in page and "@import" not in page


def test_text_of_a_scenario_is_never_markup(tiny: Played) -> None:
    page = report_page(tiny, result_of(tiny))
    assert "<script>alert" not in page and "&lt;script&gt;alert(1)" in page
    assert "&lt;i&gt;all&lt;/i&gt;" in page
    assert tag("p", '"><x>', title='"><x>') == '<p title="&quot;&gt;&lt;x&gt;">&quot;&gt;&lt;x&gt;</p>'


def test_a_report_says_what_it_promises(tiny: Played) -> None:
    page = report_page(tiny, result_of(tiny))
    for words in ("The expectation held.", "p50", "p99", "Coverage over time", "traffic.redundancy", "worst"):
        assert words in page
    assert result_of(tiny)["trace_hash"] in page
    assert re.search(r"of [\d,]+ checks", page, re.IGNORECASE)


def test_a_comparison_shows_each_change_and_new_failures(tiny: Played) -> None:
    before, after = result_of(tiny), result_of(tiny)
    assert compare_results(before, after)["changed"] == []
    assert compare_results(before, after)["same_trace"]
    after["metrics"] = {**after["metrics"], "delivery.p50": 2 * before["metrics"]["delivery.p50"]}
    after["expectations"] = [{**after["expectations"][0], "met": False}]
    changes = compare_results(before, after)
    assert [(item["metric"], item["ratio"]) for item in changes["changed"]] == [("delivery.p50", 2.0)]
    assert [item["metric"] for item in changes["newly_failed"]] == ["delivery.coverage"]
    assert compare_results(after, after)["newly_failed"] == [], "what failed before is not new"


def test_what_is_no_result_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "x.json"
    for text in ("{}", "no json", "[]"):
        file.write_text(text)
        with pytest.raises(LocalError) as caught:
            read_result(file)
        assert caught.value.code == "result"
        assert caught.value.exit_status == 2


def test_a_sweep_plays_each_value_with_each_seed_and_gives_what_a_single_run_gives(
    tmp_path: Path, tiny: Played
) -> None:
    file = tmp_path / "tiny.toml"
    file.write_text(SMALL)
    outcome = run_sweep(file, "nodes.carrier.count=3,5", [1, 2], note=lambda text: None)
    assert outcome["passed"]
    assert [row["value"] for row in outcome["rows"]] == [3, 5]
    assert outcome["rows"][0]["trace_hashes"][0] == tiny.trace.digest.hex(), "in another process, the same trace"
    assert outcome["rows"][1]["metrics"]["nodes.honest"]["median"] == 6


@pytest.mark.parametrize("sweep", ["count", "nodes.nobody.count=1", "network.degre=1", "nodes.carrier.count=0"])
def test_a_sweep_that_means_nothing_is_refused_before_anything_runs(tmp_path: Path, sweep: str) -> None:
    file = tmp_path / "tiny.toml"
    file.write_text(SMALL)
    with pytest.raises(LocalError) as caught:
        run_sweep(file, sweep, [1], note=lambda text: None)
    assert caught.value.code == "scenario"


def test_shrinking_keeps_what_fails_and_leaves_the_rest_out(tmp_path: Path) -> None:
    file = tmp_path / "tiny.toml"
    file.write_text(SMALL + IMPOSSIBLE)
    small = shrink_scenario(file, 1, note=lambda text: None)
    assert small.failed == ["delivery.p50"]
    scenario = read_scenario(small.toml.encode())
    assert scenario.honest == 2 and scenario.publish[0].count == 1
    assert [item.met for item in play(scenario, 1).checked] == [False]


def test_a_scenario_that_passes_cannot_be_shrunk(tmp_path: Path) -> None:
    file = tmp_path / "tiny.toml"
    file.write_text(SMALL)
    with pytest.raises(LocalError) as caught:
        shrink_scenario(file, 1, note=lambda text: None)
    assert caught.value.code == "nothing-fails"


def test_a_run_that_ends_with_an_exception_can_be_shrunk_as_well(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def play_badly(scenario: Scenario, seed: int) -> Played:
        if scenario.publish:
            raise RuntimeError("a fault")
        return play(scenario, seed)

    monkeypatch.setattr(shrink, "play", play_badly)
    file = tmp_path / "tiny.toml"
    file.write_text(SMALL)
    small = shrink_scenario(file, 1, note=lambda text: None)
    assert small.failed == ["RuntimeError"]
    scenario = read_scenario(small.toml.encode())
    assert scenario.honest == 1, "the publisher, without which there is no fault"
    assert len(scenario.publish) == scenario.publish[0].count == 1


def test_a_sweep_over_words_is_drawn_as_well(tmp_path: Path) -> None:
    file = tmp_path / "tiny.toml"
    file.write_text(SMALL)
    outcome = run_sweep(file, "network.topology=ring,full", [1], note=lambda text: None)
    page = sweep_page(outcome["title"], outcome, SHOWN)
    assert ">ring<" in page and ">full<" in page
    assert "&lt;b&gt;Tiny" in page


def test_a_document_written_as_toml_is_the_same_again() -> None:
    import tomllib

    document = tomllib.loads(SMALL + 'unused = ["a", "\\u00e9"]\n')
    assert tomllib.loads(to_toml(document)) == document
