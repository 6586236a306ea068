"""What reports are made of: axes with round numbers, numbers with units, and the worst node's story."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bnw.sim.metrics import METRICS
from bnw.sim.play import play
from bnw.sim.report.happenings import MAX_SHOWN, happenings
from bnw.sim.report.scales import powers, straight
from bnw.sim.report.story import worst_name, worst_story
from bnw.sim.report.words import amount, meaning, metric_text, seconds, share, size
from bnw.sim.scenario import read_scenario

values = st.floats(min_value=1e-4, max_value=1e12)


@given(values, values, st.booleans(), st.booleans())
def test_a_straight_axis_holds_its_values_between_few_marks(one: float, other: float, tight: bool, whole: bool) -> None:
    low, high = 0.0 if one > other else one, max(one, other)
    scale = straight(low, high, is_tight=tight, whole=whole)
    assert scale.low <= low < high <= scale.high * (1 + 1e-9) or high == low
    assert list(scale.ticks) == sorted(set(scale.ticks))
    assert len(scale.ticks) <= 12
    assert all(scale.low - 1e-9 * high <= tick <= scale.high * (1 + 1e-9) for tick in scale.ticks)
    assert 0 <= scale.at(low) <= scale.at(high) <= 1
    assert not whole or all(tick == int(tick) for tick in scale.ticks)


@given(values, values)
def test_an_axis_by_powers_of_ten_holds_its_values_too(one: float, other: float) -> None:
    low, high = sorted((one, other))
    scale = powers(low, high)
    assert scale.low <= low * (1 + 1e-9) and high <= scale.high * (1 + 1e-9)
    assert 1 <= len(scale.ticks) <= 20
    assert 0 <= scale.at(low) <= scale.at(high) <= 1


def test_marks_are_round_numbers() -> None:
    assert straight(0.0, 17.3).ticks == [0, 5, 10, 15, 20]
    assert straight(0.0, 140.0, is_tight=True).ticks == [20 * number for number in range(8)]
    assert straight(0.0, 3.0, whole=True).ticks == [0, 1, 2, 3]
    assert powers(0.02, 30.0).ticks == [pytest.approx(x) for x in (0.1, 1.0, 10.0)]
    assert powers(0.3, 4.0).ticks == [pytest.approx(x) for x in (0.2, 0.5, 1.0, 2.0, 5.0)]


@given(st.floats(min_value=0, max_value=1))
def test_only_all_is_called_100_percent_and_only_nothing_0(value: float) -> None:
    text = share(value)
    assert (text == "100 %") == (value == 1)
    assert (text == "0 %") == (value == 0)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        (seconds(0), "0 s"),
        (seconds(0.0452), "45.2 ms"),
        (seconds(0.9996), "1 s"),
        (seconds(16.333), "16.3 s"),
        (seconds(200), "3 min 20 s"),
        (share(0.005), "0.5 %"),
        (share(0.99999), "99.999 %"),
        (amount(41351), "41.4 k"),
        (amount(9279), "9,279"),
        (size(812), "812 B"),
        (size(1_300_000), "1.3 MB"),
        (metric_text("delivery.coverage", 0.95), "95 %"),
        (metric_text("heal.max", 8.778), "8.78 s"),
        (metric_text("traffic.bytes", 1e7), "10 MB"),
        (metric_text("traffic.redundancy", None), "–"),
        (metric_text("delivery.first", 5208), "5,208"),
    ],
)
def test_a_number_has_its_unit(text: str, wanted: str) -> None:
    assert text == wanted


def test_each_metric_is_explained_without_the_one_above_it() -> None:
    for metric in METRICS:
        assert not meaning(metric).startswith(("the same", "of these", "such", "the slowest")), metric


TROUBLED = """
title = "Troubled"
about = "One node goes and stays away while the others publish."
duration = "30s"
[network]
topology = "full"
latency = "100ms"
[[nodes]]
role = "carrier"
count = 3
[[nodes]]
role = "late"
count = 1
start = "12s"
[[publish]]
by = "carrier"
count = 4
every = "3s"
[[crash]]
role = "late"
at = "20s"
back_after = "2s"
"""


def test_what_happened_stands_in_order_and_not_beyond_the_end() -> None:
    scenario = read_scenario(TROUBLED.encode())
    shown, left = happenings(scenario, 30.0)
    assert [(item.start, item.end, item.words) for item in shown] == [
        (12, 12, "1 late joins"),
        (20, 22, "1 late crashes"),
    ]
    assert left == 0
    assert [item.words for item in happenings(scenario, 15.0)[0]] == ["1 late joins"]
    many = read_scenario((TROUBLED + '[[clock]]\nrole = "late"\nat = "1s"\nby = "1m"\n' * 10).encode())
    shown, left = happenings(many, 30.0)
    assert (len(shown), left) == (MAX_SHOWN, 12 - MAX_SHOWN)


def test_the_worst_nodes_story_tells_what_happened_to_it_and_how_it_ended() -> None:
    played = play(read_scenario(TROUBLED.encode()), 1)
    assert worst_name(played) == "late-0"
    told = worst_story(played)
    assert told[0] == "late-0 is a late with 3 neighbours, and joined at 12 s."
    assert "It was started twice and vanished without a word once." in told
    assert any(line.startswith("At 12.0 s it came later than the others;") for line in told)
    assert any(line.startswith("It waited longest for the capability manifest") for line in told)
    assert told[-1] == "At the end it has all 12 objects that count."
