"""Calls that do not complete, and outputs that have nowhere to go: each said in one line, nothing lost."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from commands import BNW, Ended, bnw, refused, variables
from small_network import Network

from bnw.api.client import ApiClient
from bnw.cli.node_process import NodeProcess
from bnw.node.configuration import Configuration
from bnw.node.home import Home
from bnw.node.opening import initialise_home

QUESTION = '{"symbol": "IBM", "month": "2005-03"}'


@pytest.fixture
def requester(network: Network) -> Path:
    return network.requester.home.path


@pytest.fixture
def provider_identity(network: Network) -> str:
    identity: str = network.provider.ready["identity"]
    return identity


def test_a_call_prints_its_output_and_nothing_else_on_standard_output(requester: Path) -> None:
    ended = bnw("invoke", "finance/lookup", "--data", QUESTION, home=requester).succeeded()
    assert json.loads(ended.out)["close"] == 84.66
    assert ended.err.splitlines()[-1].startswith("completed; receipt ")


def test_a_call_for_programs_is_one_document(requester: Path) -> None:
    document = bnw("invoke", "finance/lookup", "--data", QUESTION, "--json", home=requester).succeeded().document
    assert document["status"] == "completed"
    assert document["output"]["close"] == 84.66
    assert document["receipt_verified"] is True
    assert "error" not in document


def test_an_output_that_is_not_text_is_there_in_base64(requester: Path) -> None:
    document = bnw("invoke", "echo", "--data", "\udcff\udcfe", "--json", home=requester).succeeded().document
    assert (document["output"], document["output_base64"]) == (None, "//4=")


def test_an_unknown_capability_is_named(requester: Path) -> None:
    arguments = ("invoke", "no/such", "--data", "x", "--patience", "100ms")
    error = refused(*arguments, home=requester, status=1, code="unknown-capability", place="no/such")
    assert "`bnw catalog`" in error["cure"]
    arguments = ("catalog-inspect", "f" * 64, "--patience", "100ms")
    refused(*arguments, home=requester, status=1, code="unknown-capability", place="f" * 64)


@pytest.mark.parametrize("reference", ["X" * 64, "did:key:z6Mk/finance"], ids=["id", "identity"])
def test_a_reference_of_the_wrong_form_is_named(requester: Path, reference: str) -> None:
    arguments = ("invoke", reference, "--data", "x")
    code = "content-id" if len(reference) == 64 else "did-key"
    refused(*arguments, home=requester, status=2, code=code, place="reference")


def failed_call(ended: Ended, text: Ended, *, status: int, code: str, provider: str, says: str) -> None:
    """A call that came to an end without an output: the result and the error in one document."""
    assert (ended.status, text.status, text.out) == (status, status, "")
    document = ended.document
    error = document["error"]
    assert document["code"] == error["code"] == code
    assert document["receipt_verified"] is True
    assert error["place"] == f"provider {provider}"
    assert error["cure"]
    assert says in error["message"]
    assert text.complaints == [f"bnw: {error['place']}: {error['message']} ({error['cure']})"]
    assert "Traceback" not in text.err + ended.err


@pytest.mark.parametrize(
    ("name", "data", "code", "says", "detail"),
    [
        ("exit-3", "x", "program-exit", "exited with status 3", None),
        ("too-much", "x", "output-too-large", "wrote more than 16,777,216 bytes", None),
        ("closed", "x", "not-allowed", "does not let this identity call", None),
        ("finance/lookup", "{", "invalid-input", "does not fit the schema", "  (document): "),
        ("finance/lookup", '{"symbol": 3}', "invalid-input", "does not fit the schema", "  /month: "),
    ],
    ids=["exit 3", "too much", "not allowed", "no json", "schema"],
)
def test_a_call_that_fails_at_the_provider_says_why(
    requester: Path, provider_identity: str, name: str, data: str, code: str, says: str, detail: str | None
) -> None:
    text = bnw("invoke", name, "--data", data, home=requester)
    document = bnw("invoke", name, "--data", data, "--json", home=requester)
    failed_call(document, text, status=1, code=code, provider=provider_identity, says=says)
    if detail is not None:
        assert any(line.startswith(detail) for line in text.err.splitlines()), text.err


def test_a_deadline_that_passes_is_status_4(requester: Path) -> None:
    arguments = ("invoke", "slow", "--data", "x", "--deadline", "1s")
    text, document = bnw(*arguments, home=requester), bnw(*arguments, "--json", home=requester)
    assert (text.status, document.status) == (4, 4)
    assert document.document["error"]["code"] == "deadline-passed"
    assert len(text.complaints) == 1
    assert document.document["error"]["cure"]


def test_a_media_type_that_is_not_accepted_is_wrong_usage(requester: Path) -> None:
    ended = bnw("invoke", "finance/lookup", "--data", "x", "--media-type", "image/png", home=requester)
    assert ended.status == 2
    assert ended.complaints == ["bnw: input: media type image/png is not accepted; application/json would be"]


def test_one_cannot_call_oneself(network: Network) -> None:
    where = network.provider.home.path
    refused(
        "invoke", "echo", "--data", "x", home=where, status=1, code="own-capability", place=network.manifests["echo"]
    )


def test_what_is_provided_already_is_not_provided_twice(network: Network) -> None:
    arguments = ("provide", "echo", "--exec", sys.executable, "--detach")
    where = network.provider.home.path
    error = refused(*arguments, home=where, status=1, code="already-provided", place="echo")
    assert "stop the other" in error["cure"]


def test_somebody_elses_capability_may_not_be_provided(network: Network) -> None:
    arguments = ("provide", "echo", "--exec", sys.executable, "--detach")
    where = network.carrier.home.path
    refused(*arguments, home=where, status=1, code="may-not-provide", place="echo")


def test_an_unreachable_peer_is_status_3(network: Network) -> None:
    address = "/ip4/127.0.0.1/tcp/1/p2p/12D3KooWHAEBbhBpJb3krotjGLAwyKoudBP8XnJekUCVss1LvEUP"
    ended = bnw("peers", "--connect", address, "--json", home=network.carrier.home.path)
    assert (ended.status, ended.document["error"]["code"]) == (3, "unreachable")
    assert ended.document["error"]["place"] == address


def test_a_descriptor_that_breaks_the_rules_of_its_profile_is_not_published(network: Network, tmp_path: Path) -> None:
    path = tmp_path / "bad.json"
    path.write_text('{"profile": "bnw.capability-profile/1", "name": ""}')
    where = network.carrier.home.path
    says = "not a valid bnw.capability-profile/1"
    refused("publish", "bad/one", path, home=where, status=1, code="invalid-descriptor", place="", says=says)
    path.write_text("{")
    error = refused("publish", "bad/one", path, home=where, status=2, code="json", place=path, says="line 1")
    assert "--opaque" in error["cure"]
    assert "bad/one" not in bnw("catalog", home=where).succeeded().out
    bnw("publish", "bad/one", path, "--opaque", home=where).succeeded()


def test_people_are_told_the_state_and_the_peers_of_a_node(network: Network) -> None:
    where = network.requester.home.path
    state = bnw("status", home=where).succeeded().out
    assert network.requester.ready["identity"] in state
    assert "peers" in state
    assert network.carrier.ready["peer"] in bnw("peers", home=where).succeeded().out


def test_a_blob_that_nobody_has_is_status_3(network: Network, tmp_path: Path) -> None:
    arguments = ("blob", "get", "0" * 64, "--output", tmp_path / "out")
    where = network.carrier.home.path
    refused(*arguments, home=where, status=3, code="blob-not-found", place="0" * 64)
    assert not (tmp_path / "out").exists()


def test_a_provider_that_is_gone_is_named_and_its_manifest_kept(network: Network, tmp_path: Path) -> None:
    initialise_home(Home(tmp_path), configuration=Configuration(peers=tuple(network.carrier.ready["addresses"])))
    with NodeProcess.started(Home(tmp_path)) as provider:
        manifest = provider.client().post_bytes("/v1/catalog", b"opaque", name="gone")["manifest_id"]
        provider.client().post("/v1/provide", {"reference": manifest, "arguments": ["/bin/cat"], "detach": True})
        wait_for_offers(network.requester.client(), "gone", 1)
        provider.process.kill()
    arguments = ("invoke", "gone", "--data", "x", "--deadline", "5s")
    requester = network.requester.home.path
    error = refused(*arguments, home=requester, status=3, code="unreachable", place=manifest, says="can be reached")
    assert "try again later" in error["cure"]
    names = [entry["name"] for entry in bnw("catalog", "--json", home=requester).document["capabilities"]]
    assert "gone" in names


def wait_for_offers(client: ApiClient, name: str, count: int) -> None:
    """Return when the node knows so many offers; news may take a moment on a loaded machine."""
    deadline = time.monotonic() + 60
    while True:
        entries = client.get("/v1/catalog")["capabilities"]
        found = [entry["providers"] for entry in entries if entry["name"] == name]
        if found == [count]:
            return
        assert time.monotonic() < deadline, (found, client.get("/v1/status"))
        time.sleep(0.05)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_what_is_no_longer_provided_is_no_longer_offered(network: Network, tmp_path: Path, number: int) -> None:
    """Also with a node that runs only for the command."""
    initialise_home(Home(tmp_path), configuration=Configuration(peers=tuple(network.carrier.ready["addresses"])))
    name = f"for-a-while/{number}"
    (tmp_path / "descriptor").write_bytes(b"opaque")
    process = subprocess.Popen(
        [*BNW, "provide", str(tmp_path / "descriptor"), "--name", name, "--exec", "cat", "--allow", "anyone"],
        env=variables(tmp_path),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline().startswith(b"providing ")
        wait_for_offers(network.requester.client(), name, 1)
        call = bnw("invoke", name, "--data", "hello", home=network.requester.home.path).succeeded()
        assert call.out == "hello"
        assert b": completed" in process.stdout.readline()
        process.send_signal(number)
        _, err = process.communicate(timeout=30)
    finally:
        process.kill()
        process.wait()
    assert process.returncode == (0 if number == signal.SIGINT else 143)
    assert b"Traceback" not in err
    wait_for_offers(network.requester.client(), name, 0)


def test_an_output_that_cannot_be_written_is_printed_rather_than_lost(requester: Path, tmp_path: Path) -> None:
    place = tmp_path / "none" / "out"
    arguments = ("invoke", "echo", "--data", "dearly bought", "--output", place)
    text, document = bnw(*arguments, home=requester), bnw(*arguments, "--json", home=requester)
    assert (text.status, document.status) == (2, 2)
    assert text.out == "dearly bought"
    assert len(text.complaints) == 1
    assert "the output was printed instead" in text.complaints[0]
    assert document.document["error"]["place"] == str(place)
    assert document.document["output_base64"] == "ZGVhcmx5IGJvdWdodA=="


def test_an_output_file_is_written_whole_and_only_over_another_if_told_to(requester: Path, tmp_path: Path) -> None:
    place = tmp_path / "out"
    arguments = ("invoke", "echo", "--data", "one", "--output", place)
    assert bnw(*arguments, home=requester).succeeded().out == ""
    assert place.read_bytes() == b"one"
    refused(*arguments, home=requester, status=2, code="exists", place=place)
    arguments = ("invoke", "echo", "--data", "two", "--output", place, "--force")
    assert bnw(*arguments, "--json", home=requester).succeeded().document["output_file"] == str(place)
    assert place.read_bytes() == b"two"
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_the_node_ending_in_the_middle_of_a_call_is_status_3(network: Network, tmp_path: Path) -> None:
    initialise_home(Home(tmp_path), configuration=Configuration(peers=tuple(network.carrier.ready["addresses"])))
    with NodeProcess.started(Home(tmp_path)) as node:
        call = subprocess.Popen(
            [*BNW, "invoke", "slow", "--data", "x"],
            env=variables(tmp_path),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        try:
            assert call.stderr is not None
            while not call.stderr.readline().startswith(b"delivered"):
                pass
            node.process.kill()
            out, err = call.communicate(timeout=30)
        finally:
            call.kill()
            call.wait()
    assert (call.returncode, out) == (3, b"")
    assert err.startswith(b"bnw: ")
    assert len(err.splitlines()) == 1
    assert b"the call may have run" in err
