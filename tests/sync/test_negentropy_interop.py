"""Our Negentropy and an independent implementation find the same difference, whichever of them asks.

Only our side has a frame limit. Version 1.0.0 of the other one forgets what does not fit into a frame: it cuts a list
short and then sends the fingerprint of what follows the whole list.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from js_peer import js_peer
from negentropy_items import Item, index_of, make_items, only_in

from bnw.sync.negentropy.reconciler import Initiator, Responder
from bnw.wire.limits import KIB, MIB

NO_LIMIT = 0
LARGE = 16 * MIB


@pytest.fixture(
    params=[
        (0, 0, NO_LIMIT),
        (0, 1, NO_LIMIT),
        (1, 0, NO_LIMIT),
        (1, 1, NO_LIMIT),
        (0, 1_000, NO_LIMIT),
        (1_000, 0, NO_LIMIT),
        (1_000, 1_000, NO_LIMIT),
        (1_000, 1_000, 4 * KIB),
        (0, 1_000, 4 * KIB),
        (1_000, 0, 4 * KIB),
        (0, 100_000, 64 * KIB),
        (100_000, 0, NO_LIMIT),
        (100_000, 100_000, 64 * KIB),
    ],
    ids=lambda case: f"{case[0]}-{case[1]}-limit{case[2]}",
)
def case(request: pytest.FixtureRequest) -> tuple[list[Item], list[Item], int]:
    """Our items, theirs, and our frame limit. What is common differs by up to fifty items on each side."""
    ours, theirs, limit = request.param
    common = make_items(max(0, min(ours, theirs) - 50), "common")
    return (
        common + make_items(ours - len(common), "ours"),
        common + make_items(theirs - len(common), "theirs"),
        limit,
    )


def test_we_ask_and_they_answer(case: tuple[list[Item], list[Item], int], js_negentropy: Path, tmp_path: Path) -> None:
    ours, theirs, limit = case
    initiator = Initiator(index_of(ours), frame_limit=limit, max_message=LARGE)
    have: list[bytes] = []
    need: list[bytes] = []
    with js_peer(js_negentropy, tmp_path, theirs) as responder:
        message: bytes | None = initiator.start()
        while message is not None:
            assert not limit or len(message) <= limit
            step = initiator.take(responder.answer(message))
            have += step.have
            need += step.need
            message = step.message
    assert sorted(set(have)) == only_in(ours, theirs)
    assert sorted(set(need)) == only_in(theirs, ours)


def test_they_ask_and_we_answer(case: tuple[list[Item], list[Item], int], js_negentropy: Path, tmp_path: Path) -> None:
    ours, theirs, limit = case
    responder = Responder(index_of(ours), frame_limit=limit, max_message=LARGE)
    have: list[bytes] = []
    need: list[bytes] = []
    with js_peer(js_negentropy, tmp_path, theirs) as initiator:
        message: bytes | None = initiator.start()
        while message is not None:
            answer = responder.answer(message)
            assert not limit or len(answer) <= limit
            message, they_have, they_need = initiator.take(answer)
            have += they_have
            need += they_need
    assert sorted(set(have)) == only_in(theirs, ours)
    assert sorted(set(need)) == only_in(ours, theirs)


@pytest.mark.parametrize("size", [0, 1, 2, 100])
def test_both_send_the_same_fingerprints(size: int, js_negentropy: Path, tmp_path: Path) -> None:
    """With equal sets nothing is left to say, which can only be so if both compute the same fingerprints."""
    items = make_items(size, "same")
    with js_peer(js_negentropy, tmp_path, items) as peer:
        answer = peer.answer(Initiator(index_of(items)).start())
        step = Initiator(index_of(items)).take(answer)
        assert (step.message, step.have, step.need) == (None, [], [])
        if size > 4:
            assert answer == b"\x61"
