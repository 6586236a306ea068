"""Graphs: who is connected with whom. Pure; all chance comes from an environment.

A graph is a list of edges between numbers from 0, each edge once, the lower number first, in ascending order. Every
graph is connected: where chance leaves parts apart, they are joined by an edge more.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from bnw.sim.scenario.schema import FULL, RANDOM_REGULAR, RING, SCALE_FREE, SMALL_WORLD, STAR, Network
from bnw.transport.memory.chance import chance
from bnw.wire.environment import Environment, random_below

Edges = set[tuple[int, int]]

MAX_TRIES: Final = 200
"""Attempts to find a swap that mends a random regular graph."""


def edges_of(network: Network, count: int, regions: Sequence[str], environment: Environment) -> list[tuple[int, int]]:
    """The edges between `count` nodes, of which each is in the region at its place, if there are regions."""
    edges = _PLANS[network.topology](network, count, environment) if count > 1 else set()
    if regions and network.near:
        _draw_near(edges, regions, network.near, environment)
    _connect(edges, count)
    return sorted(edges)


def shuffled(count: int, environment: Environment) -> list[int]:
    """The numbers below `count` in an order of chance."""
    order = list(range(count))
    for at in range(count - 1, 0, -1):
        other = random_below(environment, at + 1)
        order[at], order[other] = order[other], order[at]
    return order


def _full(network: Network, count: int, environment: Environment) -> Edges:
    return {(one, other) for other in range(count) for one in range(other)}


def _ring(network: Network, count: int, environment: Environment) -> Edges:
    return {_edge(at, (at + 1) % count) for at in range(count)}


def _star(network: Network, count: int, environment: Environment) -> Edges:
    return {(0, other) for other in range(1, count)}


def _random_regular(network: Network, count: int, environment: Environment) -> Edges:
    """Ends are paired by chance; what pairs badly (with itself, or twice) swaps with other pairs until all is well."""
    degree = min(network.degree, count - 1)
    ends = [at for at in range(count) for _ in range(degree)]
    order = shuffled(len(ends), environment)
    pairs = [(ends[order[at]], ends[order[at + 1]]) for at in range(0, len(order) - 1, 2)]
    edges: Edges = set()
    bad: list[tuple[int, int]] = []
    for one, other in pairs:
        if one == other or _edge(one, other) in edges:
            bad.append((one, other))
        else:
            edges.add(_edge(one, other))
    listed = sorted(edges)
    for one, other in bad:
        for _ in range(MAX_TRIES):
            at = random_below(environment, len(listed)) if listed else 0
            third, fourth = listed[at] if listed else (one, other)
            first, second = _edge(one, third), _edge(other, fourth)
            if one != third and other != fourth and first != second and first not in edges and second not in edges:
                edges.remove(listed[at])
                edges |= {first, second}
                listed[at] = first
                listed.append(second)
                break
    return edges


def _small_world(network: Network, count: int, environment: Environment) -> Edges:
    """Watts and Strogatz: a ring in which each knows its nearest, and some edges lead elsewhere instead."""
    edges: Edges = set()
    for step in range(1, max(1, network.degree // 2) + 1):
        for at in range(count):
            edge = _edge(at, (at + step) % count)
            if chance(environment) < network.rewire:
                edge = _edge(at, random_below(environment, count))
            if edge[0] != edge[1]:
                edges.add(edge)
    return edges


def _scale_free(network: Network, count: int, environment: Environment) -> Edges:
    """Barabási and Albert: each newcomer connects to some that are there, those with many edges more likely."""
    each = max(1, network.degree // 2)
    edges: Edges = set()
    ends = [0]
    for at in range(1, count):
        chosen: set[int] = set()
        while len(chosen) < min(each, at):
            chosen.add(
                ends[random_below(environment, len(ends))]
                if chance(environment) < 0.9
                else random_below(environment, at)
            )
        for other in sorted(chosen):
            edges.add((other, at))
            ends += [other, at]
    return edges


_PLANS: Final[dict[str, Callable[[Network, int, Environment], Edges]]] = {
    FULL: _full,
    RING: _ring,
    STAR: _star,
    RANDOM_REGULAR: _random_regular,
    SMALL_WORLD: _small_world,
    SCALE_FREE: _scale_free,
}


def _draw_near(edges: Edges, regions: Sequence[str], near: float, environment: Environment) -> None:
    """Let distant edges that are to be near lead to a node of the same region instead; degrees stay about the same."""
    by_region: dict[str, list[int]] = {}
    for at, region in enumerate(regions):
        by_region.setdefault(region, []).append(at)
    for one, other in sorted(edges):
        if regions[one] != regions[other] and chance(environment) < near:
            home = by_region[regions[one]]
            edge = _edge(one, home[random_below(environment, len(home))])
            if edge[0] != edge[1] and edge not in edges:
                edges.remove((one, other))
                edges.add(edge)


def _connect(edges: Edges, count: int) -> None:
    """Join parts that are not connected, each to the one with node 0."""
    neighbours: list[list[int]] = [[] for _ in range(count)]
    for one, other in sorted(edges):
        neighbours[one].append(other)
        neighbours[other].append(one)
    reached = [False] * count
    for start in range(count):
        if reached[start]:
            continue
        if start:
            edges.add((start - 1, start))
        waiting = [start]
        reached[start] = True
        while waiting:
            for other in neighbours[waiting.pop()]:
                if not reached[other]:
                    reached[other] = True
                    waiting.append(other)


def _edge(one: int, other: int) -> tuple[int, int]:
    return (one, other) if one < other else (other, one)
