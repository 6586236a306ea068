"""Distributions have the means they claim, and graphs the shapes."""

from __future__ import annotations

import math
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bnw.sim.environment import SeededEnvironment
from bnw.sim.regions import REGIONS, round_trip
from bnw.sim.scenario.schema import RING, SMALL_WORLD, TOPOLOGIES, Network
from bnw.sim.topology import edges_of
from bnw.transport.memory.chance import HEAVY_TAIL, SHAPES, draw, logarithm


@pytest.mark.parametrize("shape", SHAPES)
def test_draws_have_their_mean_and_are_never_below_zero(shape: str) -> None:
    environment = SeededEnvironment(1, "draws")
    drawn = [draw(environment, shape, 4.0) for _ in range(20_000)]
    assert min(drawn) >= 0
    slack = 0.8 if shape == HEAVY_TAIL else 0.1
    assert abs(sum(drawn) / len(drawn) - 4.0) < slack


@given(st.floats(min_value=1e-12, max_value=1e12))
def test_the_logarithm_is_that_of_the_library(value: float) -> None:
    assert logarithm(value) == pytest.approx(math.log(value), rel=1e-12, abs=1e-12)


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(TOPOLOGIES), st.integers(3, 40), st.integers(2, 6), st.integers(0, 99))
def test_every_graph_is_connected_and_has_each_edge_once(topology: str, count: int, degree: int, seed: int) -> None:
    network = Network(topology=topology, degree=min(degree, count - 1))
    edges = edges_of(network, count, [], SeededEnvironment(seed, "graph"))
    assert edges == sorted(set(edges)) and all(0 <= one < other < count for one, other in edges)
    reached, waiting = {0}, [0]
    while waiting:
        at = waiting.pop()
        for edge in edges:
            if at in edge and (other := sum(edge) - at) not in reached:
                reached.add(other)
                waiting.append(other)
    assert len(reached) == count


@pytest.mark.parametrize("seed", range(5))
def test_a_random_regular_graph_gives_nearly_every_node_its_degree(seed: int) -> None:
    edges = edges_of(Network(degree=4), 60, [], SeededEnvironment(seed, "graph"))
    degrees = Counter(end for edge in edges for end in edge)
    assert sum(degrees[at] == 4 for at in range(60)) >= 58


def test_a_ring_is_a_ring_and_a_small_world_without_rewiring_a_lattice() -> None:
    environment = SeededEnvironment(1, "graph")
    assert len(edges_of(Network(topology=RING), 10, [], environment)) == 10
    lattice = edges_of(Network(topology=SMALL_WORLD, degree=4, rewire=0.0), 10, [], environment)
    assert set(Counter(end for edge in lattice for end in edge).values()) == {4}


def test_round_trips_are_those_of_the_published_table() -> None:
    assert round_trip("dallas", "toronto") == round_trip("toronto", "dallas") == 0.034
    assert round_trip("sydney", "sao-paulo") == 0.328
    assert round_trip("osaka", "tokyo") == 0.009
    assert round_trip("london", "london") == 0.002
    assert all(0 < round_trip(one, other) < 0.4 for one in REGIONS for other in REGIONS)
