"""The same seed gives the same trace, byte for byte, in any process; another seed another one. Nothing is left out."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from blake3 import blake3
from stories import ANSWER, NAME, QUESTION, THINKING, MainJob, busy_half_minute, main_job

from bnw.objects.signed import verify_object
from bnw.transport.interface import PeerId
from bnw.transport.memory.gossip import Gossip, Message
from bnw.transport.memory.stream import MemoryStream

STORIES = Path(__file__).with_name("stories.py")


def test_the_main_job_is_the_same_twice_from_one_seed_and_differs_from_another(job: MainJob) -> None:
    assert main_job(1).trace == job.trace
    assert main_job(2).trace != job.trace


def test_a_world_with_churn_loss_cuts_and_wrong_clocks_is_the_same_twice_too() -> None:
    first = busy_half_minute(1)
    for event in (b" call ", b" receipt ", b" stopped", b" lost ", b" held ", b" drops it", b" heal n0 n1"):
        assert event in first, "the story is as lively as it should be"
    assert busy_half_minute(1) == first
    assert busy_half_minute(2) != first


@pytest.mark.parametrize("story", ["main_job", "busy_half_minute"])
def test_processes_that_hash_text_differently_tell_the_same_story(story: str) -> None:
    first, second = (_told_elsewhere(story, hash_seed) for hash_seed in ("1", "2"))
    assert first == second
    assert first == (main_job(3).trace if story == "main_job" else busy_half_minute(3))


def _told_elsewhere(story: str, hash_seed: str) -> bytes:
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
    return subprocess.run(
        [sys.executable, str(STORIES), story, "3"], env=environment, stdout=subprocess.PIPE, check=True, timeout=60
    ).stdout


def test_the_trace_holds_every_byte_that_was_delivered(monkeypatch: pytest.MonkeyPatch) -> None:
    pieces: list[bytes] = []
    gossip: list[bytes] = []
    on_data, on_message = MemoryStream.on_data, Gossip.on_message

    def watched_on_data(stream: MemoryStream, piece: bytes) -> None:
        pieces.append(piece)
        on_data(stream, piece)

    def watched_on_message(self: Gossip, message: Message, source: PeerId) -> None:
        gossip.append(message.data)
        on_message(self, message, source)

    monkeypatch.setattr(MemoryStream, "on_data", watched_on_data)
    monkeypatch.setattr(Gossip, "on_message", watched_on_message)
    lines = [line.split() for line in main_job(1).trace.decode().splitlines()[1:]]
    arrived = [line for line in lines if ">" in line[1]]
    assert [(line[4], line[5]) for line in arrived if line[3] == "data"] == [_shown(piece) for piece in pieces]
    assert [(line[4], line[5]) for line in arrived if line[2] == "gossip"] == [_shown(data) for data in gossip]
    assert len(pieces) > 20
    assert all(float(line[-1]) <= float(line[0]) for line in arrived), "nothing arrives before it is sent"


def _shown(data: bytes) -> tuple[str, str]:
    return blake3(data).hexdigest()[:32], str(len(data))


def test_the_trace_holds_the_events_of_every_node_and_the_receipt(job: MainJob) -> None:
    happened = [line.split(maxsplit=1)[1] for line in job.trace.decode().splitlines()[1:]]
    manifest, call, receipt = job.manifest.id.hex(), job.result.invocation.id.hex(), job.result.receipt.id.hex()
    assert f"carrier news capability-manifest {manifest}" in happened
    assert f"requester news capability-manifest {manifest}" in happened
    assert f"provider call {call} completed -" in happened
    assert f"requester receipt {receipt} completed -" in happened
    for name in ("carrier", "provider", "requester"):
        assert any(line.startswith(f"{name} started") for line in happened)
        assert f"{name} stopped" in happened


def test_the_main_job_is_done_and_its_receipt_verifies(job: MainJob) -> None:
    assert job.result.output is not None
    assert job.result.output.data == ANSWER
    assert verify_object(job.result.receipt.data) == job.result.receipt


def test_the_profile_checks_the_input_in_a_simulation_too() -> None:
    refused = main_job(1, question=b'{"no":"symbol"}').result
    assert (refused.status, refused.code) == ("rejected", "invalid-input")


def test_nobody_but_the_two_sees_a_word_of_the_call_in_the_trace_or_at_the_carrier(job: MainJob) -> None:
    carried = b"".join(job.carried.all_bytes())
    assert NAME.encode() in carried
    for secret in (QUESTION, ANSWER, b"secret"):
        assert secret not in carried
        assert secret not in job.trace


def test_time_is_virtual(job: MainJob) -> None:
    assert THINKING < job.seconds < 20


def test_no_thread_is_started(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("a thread was started")

    start: Callable[..., None] = refuse
    monkeypatch.setattr(threading.Thread, "start", start)
    assert main_job(1).result.status == "completed"
