"""Errors name cause, place and cure, and say who is to blame."""

from __future__ import annotations

import pytest

from bnw.wire.errors import BnwError, ExitStatus, InvalidError, LocalError, RemoteError

FAULT = InvalidError("lifetime", "it lives too long", place="offer.expires", cure="sign it anew")


def test_the_text_has_place_cause_and_cure() -> None:
    assert str(FAULT) == "offer.expires: it lives too long (sign it anew)"
    assert str(InvalidError("x", "it is bad")) == "it is bad"
    assert str(InvalidError("x", "it is bad", place="here")) == "here: it is bad"


def test_the_code_stays_when_blame_is_given() -> None:
    assert [FAULT.from_peer("12D3").code, FAULT.at("file").code] == ["lifetime", "lifetime"]
    assert FAULT.from_peer("12D3").cure == FAULT.at("file").cure == "sign it anew"


def test_a_fault_in_a_peers_bytes_is_blamed_on_the_peer() -> None:
    blamed = FAULT.from_peer("12D3")
    assert isinstance(blamed, RemoteError)
    assert blamed.place == "peer 12D3: offer.expires"
    assert InvalidError("x", "it is bad").from_peer("12D3").place == "peer 12D3"


def test_a_fault_in_the_callers_bytes_is_a_wrong_use() -> None:
    blamed = FAULT.at("offer.cbor")
    assert isinstance(blamed, LocalError)
    assert blamed.place == "offer.cbor: offer.expires"
    assert blamed.exit_status is ExitStatus.USAGE
    assert InvalidError("x", "it is bad").at("offer.cbor").place == "offer.cbor"


def test_json_has_the_four_parts() -> None:
    parts = {"code": "lifetime", "message": "it lives too long", "place": "offer.expires", "cure": "sign it anew"}
    assert FAULT.to_json() == parts


def test_exit_statuses_are_those_of_the_design() -> None:
    assert [int(status) for status in ExitStatus] == [0, 1, 2, 3, 4]
    assert FAULT.exit_status is ExitStatus.REFUSED


@pytest.mark.parametrize("kind", [InvalidError, LocalError, RemoteError])
def test_all_are_caught_as_one(kind: type[BnwError]) -> None:
    with pytest.raises(BnwError):
        raise kind("code", "cause")
