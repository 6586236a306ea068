"""What cannot be is refused with one line before anything runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from bnw.cli.testnet import plan
from bnw.wire.errors import LocalError
from tests.testnet.terminal import processes_in, testnet


@pytest.mark.parametrize(
    "words", [["status"], ["down"], ["kill", "0"], ["stop", "0"], ["start", "0"], ["exec", "0", "id"]]
)
def test_without_a_testnet_each_command_says_how_to_make_one(directory: Path, words: list[str]) -> None:
    ended = testnet(directory, *words)
    assert ended.status == 3
    assert "no testnet is up (`bnw testnet up --nodes 5` makes one" in ended.complaint


@pytest.mark.parametrize("count", ["0", "-3", "501", "9999999"])
def test_a_number_of_nodes_out_of_bounds_makes_nothing(directory: Path, count: str) -> None:
    ended = testnet(directory, "up", "--nodes", count)
    assert ended.status == 2
    assert "--nodes: " in ended.complaint
    assert not directory.exists()


def test_more_nodes_than_memory_are_refused_with_the_number_that_fits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plan, "available_memory", lambda: 1000 * 1024**2)
    plan.check_count(10, "ring")
    with pytest.raises(
        LocalError, match=r"11 nodes take 1\.0 GiB, 90 MiB each; 1\.0 GiB are available .at most 10 fit"
    ):
        plan.check_count(11, "ring")


def test_the_memory_that_is_available_is_known() -> None:
    assert 10 * 1024**2 < plan.available_memory() < 2**50


def test_all_with_all_ends_where_a_node_can_have_no_more_peers() -> None:
    plan.check_count(65, "full")
    with pytest.raises(LocalError, match="at most 64 peers: 65 nodes"):
        plan.check_count(66, "full")


@pytest.mark.parametrize("topology", ["ring", "random-regular", "full"])
@pytest.mark.parametrize("count", [1, 2, 3, 4, 5, 20])
def test_neighbours_are_mutual_and_reach_everyone(topology: str, count: int) -> None:
    neighbours = plan.neighbours_of(topology, count)
    assert all(name in neighbours[other] for name, others in neighbours.items() for other in others)
    assert all(name not in others and len(set(others)) == len(others) for name, others in neighbours.items())
    reached, waiting = {"node-0"}, ["node-0"]
    while waiting:
        new = set(neighbours[waiting.pop()]) - reached
        reached |= new
        waiting += new
    assert reached == set(neighbours)
    assert len(reached) == count


def test_a_directory_with_something_else_in_it_is_not_touched(directory: Path) -> None:
    directory.mkdir()
    (directory / "thesis.txt").write_text("mine")
    ended = testnet(directory, "up", "--nodes", "1")
    assert ended.status == 2
    assert "is not empty and no testnet (it holds 'thesis.txt')" in ended.complaint
    assert [path.name for path in directory.iterdir()] == ["thesis.txt"]


def test_a_word_that_is_neither_file_nor_command_is_answered_with_the_commands(directory: Path) -> None:
    ended = testnet(directory, "upp")
    assert ended.status == 2
    assert "'upp' is neither a file nor one of the commands" in ended.err
    assert processes_in(directory) == []
