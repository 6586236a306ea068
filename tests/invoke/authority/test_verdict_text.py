"""What `bnw delegation explain` has to show: each link, what it grants, what is wrong with it, and the cure."""

from __future__ import annotations

import json

import pytest
from authority_objects import (
    AGENCY,
    AGENT,
    ANYONE,
    MANIFEST,
    NOW,
    PROVIDER,
    PUBLISHER,
    STRANGER,
    Grant,
    chain,
    invoke,
    revoked,
)

from bnw.identity.keys import did_key
from bnw.invoke.authority.explain import explain
from bnw.wire.errors import InvalidError
from bnw.wire.limits import HOUR
from bnw.wire.names import is_plain_text

LATER = NOW + HOUR

LINKS = chain(
    Grant(PROVIDER, AGENCY, "invoke delegate").only(
        capability=MANIFEST.id, max_calls=1000, max_calls_per_hour=10, max_input_bytes=4096
    ),
    Grant(AGENCY, AGENT, end=2 * HOUR).only(publisher=PUBLISHER.identity),
)


def test_a_verdict_reads_link_by_link() -> None:
    verdict = explain(invoke(), LINKS, revocations=[revoked(LINKS[0], PROVIDER)], now=LATER + HOUR)
    provider, agency, agent = (did_key(key.identity) for key in (PROVIDER, AGENCY, AGENT))
    assert verdict.lines() == [
        f"not allowed: delegation-revoked: link 1 of 2 ({LINKS[0].id.hex()} by {provider}): was revoked by its issuer"
        " (ask for a new one)",
        f"link 1: {LINKS[0].id.hex()}: {provider} grants {agency}: delegate, invoke; only capability"
        f" {MANIFEST.id.hex()}; at most 1,000 calls; at most 10 calls an hour; inputs of at most 4,096 bytes;"
        " from 2023-11-14 22:13:20 UTC until 2023-11-15 22:13:20 UTC",
        "  delegation-revoked: was revoked by its issuer (ask for a new one)",
        f"link 2: {LINKS[1].id.hex()}: {agency} grants {agent}: invoke; only what {did_key(PUBLISHER.identity)}"
        " publishes; from 2023-11-14 22:13:20 UTC until 2023-11-15 00:13:20 UTC",
        "  delegation-expired: held until 2023-11-15 00:13:20 UTC; here it is 2023-11-15 00:13:20 UTC"
        " (ask for a new one)",
    ]


def test_a_yes_says_what_was_looked_at() -> None:
    verdict = explain(invoke(), LINKS, now=LATER)
    assert verdict.lines()[0] == "allowed: delegated: every link of the chain holds"
    assert len(verdict.lines()) == 3
    assert verdict.counted == (LINKS[0].id,)
    assert verdict.root == LINKS[0].id


def test_all_that_is_wrong_with_a_chain_is_said_at_once() -> None:
    verdict = explain(invoke(STRANGER, size=9999), [LINKS[0].id, LINKS[1]], now=LATER + HOUR)
    said = [(link.number, [problem.code for problem in link.problems]) for link in verdict.links]
    assert said == [(1, ["delegation-missing"]), (2, ["wrong-audience", "delegation-expired"])]
    assert verdict.code == "delegation-missing"


def test_a_verdict_for_programs_is_plain_json() -> None:
    verdict = explain(invoke(), [LINKS[0].id, LINKS[1]], now=LATER)
    told = json.loads(json.dumps(verdict.to_json()))
    assert (told["allowed"], told["code"], told["counted"]) == (False, "delegation-missing", [])
    missing, present = told["links"]
    assert (missing["issuer"], missing["grants"], missing["problems"][0]["code"]) == (None, None, "delegation-missing")
    assert (present["issuer"], present["audience"]) == (did_key(AGENCY.identity), did_key(AGENT.identity))


def test_a_verdict_is_safe_on_a_terminal() -> None:
    assert all(is_plain_text(line) for line in explain(invoke(STRANGER), LINKS[::-1], now=LATER).lines())


def test_a_no_becomes_an_error_with_code_place_and_cure() -> None:
    with pytest.raises(InvalidError) as caught:
        explain(invoke(STRANGER), LINKS, now=LATER).require()
    assert caught.value.code == "wrong-audience"
    assert caught.value.place == f"link 2 of 2 ({LINKS[1].id.hex()} by {did_key(AGENCY.identity)})"
    assert caught.value.cure


def test_a_yes_raises_nothing() -> None:
    explain(invoke(policy=ANYONE), (), now=LATER).require()


def test_an_input_of_unknown_size_can_be_checked_once_it_is_known() -> None:
    verdict = explain(invoke(size=None), LINKS, now=LATER)
    assert verdict.max_input_bytes == 4096
    verdict.check_input(4096)
    with pytest.raises(InvalidError) as caught:
        verdict.check_input(4097)
    assert caught.value.code == "input-too-large"
    explain(invoke(policy=ANYONE, size=None), (), now=LATER).check_input(10**9)


def test_the_tightest_limit_of_all_links_is_the_one_that_is_said() -> None:
    links = chain(
        Grant(PROVIDER, AGENCY, "invoke delegate").only(max_input_bytes=500),
        Grant(AGENCY, STRANGER, "invoke delegate").only(max_input_bytes=50),
        Grant(STRANGER, AGENT),
    )
    assert explain(invoke(size=None), links, now=LATER).max_input_bytes == 50
