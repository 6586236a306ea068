"""OpenWOP capabilities documents: the schema, the rules of the prose, and both versions."""

from __future__ import annotations

import copy
import json
import subprocess
import sys
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from time import process_time
from typing import Any

import jsonschema_rs
import pytest

from bnw.profiles.openwop.plugin import OpenWopCapabilities, OpenWopPlugin
from bnw.profiles.openwop.version2 import FAMILIES, METADATA

SAMPLES = Path(__file__).parent / "samples"
HOST = json.loads((SAMPLES / "openwop-host.json").read_text())
MINIMAL = json.loads((SAMPLES / "openwop-minimal.json").read_text())
ROOT = Path(__file__).parents[2]
SHARED = ROOT.parent / "shared"
PLUGIN = OpenWopPlugin()
NOW = int(datetime(2026, 12, 17, tzinfo=UTC).timestamp() * 1000)
REMOVED = object()


def errors(document: Any, now_ms: int | None = NOW) -> list[tuple[str, str]]:
    parsed = PLUGIN.parse(json.dumps(document).encode(), now_ms=now_ms)
    assert (parsed.value is None) == bool(parsed.errors)
    return [(error.pointer, error.code) for error in parsed.errors]


def warnings(document: Any) -> list[tuple[str, str, str | None]]:
    parsed = PLUGIN.parse(json.dumps(document).encode(), now_ms=NOW)
    return [(warning.pointer, warning.code, warning.hint) for warning in parsed.warnings]


def host(*changes: tuple[str, Any]) -> Any:
    """The sample host with changes, each a dotted path and a value."""
    document = copy.deepcopy(HOST)
    for path, value in changes:
        names = path.split(".")
        parent = document
        for name in names[:-1]:
            parent = parent.setdefault(name, {})
        if value is REMOVED:
            del parent[names[-1]]
        else:
            parent[names[-1]] = value
    return document


def test_a_full_and_a_minimal_document_are_valid() -> None:
    assert errors(HOST) == [] == errors(MINIMAL)
    assert warnings(HOST) == [] == warnings(MINIMAL)
    value = PLUGIN.parse(json.dumps(HOST).encode()).value
    assert value == OpenWopCapabilities(
        1, "1.4", ("1.4", "2.0"), "sample-host 3.1.0", "Example Works", tuple(HOST)
    )  # fmt: skip


SCHEMA_FAULTS = [
    ("protocolVersion", REMOVED, "/protocolVersion", "missing-field"),
    ("limits.schemaRounds", REMOVED, "/limits/schemaRounds", "missing-field"),
    ("limits.maxRounds", 5, "/limits/maxRounds", "unknown-field"),
    ("limits.clarificationRounds", -1, "/limits/clarificationRounds", "schema-minimum"),
    ("engineVersion", "7", "/engineVersion", "wrong-type"),
    ("protocolVersions", ["1.4", "1.4", "2.0"], "/protocolVersions", "schema-unique-items"),
    ("envelopeStrictness", "lenient", "/envelopeStrictness", "schema-enum"),
    ("grpc.service", "openwop.v2.Engine", "/grpc/service", "schema-const"),
    ("grpc.endpoint", "https://rpc.example.org", "/grpc/endpoint", "schema-pattern"),
    ("a2a.agentCardUrl", "not a uri", "/a2a/agentCardUrl", "schema-format"),
    ("fs.sandboxRoot", REMOVED, "/fs/sandboxRoot", "missing-field"),
    ("portability.dryRun", REMOVED, "/portability/dryRun", "missing-field"),
    ("anonymousActor.tiers", ["bounded-write-egress"], "/anonymousActor/writeEgressControls", "missing-field"),
    ("anonymousActor.writeEgressControls", ["hitl"], "/anonymousActor", "schema-not"),
    ("aiProviders.speechSynthesis", REMOVED, "/aiProviders/speechSynthesis", "missing-field"),
    ("multiAgent.executionModel.tier", "experimental", "/multiAgent/executionModel/experimentalUntil", "missing-field"),
    ("prompts.templateKinds", ["system", "assistant"], "/prompts/templateKinds/1", "schema-enum"),
    ("prompts.defaults.user", {"version": "1.0.0"}, "/prompts/defaults/user", "schema-one-of"),
    ("prompts.defaults.system", "prompt:writer@1.2", "/prompts/defaults/system", "schema-one-of"),
    ("auth.subjectLinkKey", REMOVED, "/auth/subjectLinkKey", "missing-field"),
]


@pytest.mark.parametrize(("path", "value", "pointer", "code"), SCHEMA_FAULTS, ids=lambda part: str(part)[:40])
def test_the_schema_is_enforced_at_its_place(path: str, value: Any, pointer: str, code: str) -> None:
    assert (pointer, code) in errors(host((path, value)))


MODEL = "multiAgent.executionModel"
CAUSATION, REPLAY = MODEL + ".crossHostCausation", MODEL + ".replayDeterminism"
AT, REFUSAL = "/multiAgent/executionModel", "/replayDeterminism/refusalDivergenceEmission"
SCOPE = "agents.manifestRuntime.installScope"

RULE_FAULTS = [
    ([("protocolVersions", ["1.3", "2.0"]), ("preferredVersion", "1.3")], "/protocolVersions", "versions"),
    ([("preferredVersion", "2.1")], "/preferredVersion", "preferred-version"),
    ([("protocolVersions", ["1.4", "1.3"]), ("preferredVersion", "1.3")], "/preferredVersion", "preferred-version"),
    ([("protocolVersions", REMOVED), ("preferredVersion", "1.3")], "/preferredVersion", "preferred-version"),
    ([("aiProviders.authModes.delta", ["none"])], "/aiProviders/authModes/delta", "provider"),
    ([("aiProviders.byok", ["beta"])], "/aiProviders/authModes/alpha", "auth-mode"),
    ([("aiProviders.byok", ["alpha"])], "/aiProviders/authModes/beta", "auth-mode"),
    ([("aiProviders.byok", ["alpha", "beta", "gamma"])], "/aiProviders/authModes/gamma", "auth-mode"),
    ([("aiProviders.byok", ["alpha", "beta", "zeta"])], "/aiProviders/byok/2", "provider"),
    ([("aiProviders.selfHosted", ["local-one", "zeta"])], "/aiProviders/selfHosted/1", "provider"),
    ([("aiProviders.promptPrefixCache.providers", ["zeta"])], "/aiProviders/promptPrefixCache/providers/0", "provider"),
    ([("i18n.defaultLocale", "fr"), ("content", REMOVED)], "/i18n/supportedLocales", "locale"),
    ([("content.baseLocale", "de"), ("content.supportedLocales", [])], "/content/baseLocale", "locale"),
    ([("content.supportedLocales", ["de", "en"])], "/content/supportedLocales/1", "locale"),
    ([("content.supportedLocales", ["de", "fr"])], "/content/supportedLocales/1", "locale"),
    ([("i18n.supported", False)], "/content/supported", "locale"),
    ([(CAUSATION, REMOVED)], AT + "/crossHostCausation", "execution-model"),
    ([(CAUSATION + ".hostId", REMOVED)], AT + "/crossHostCausation", "execution-model"),
    ([(REPLAY, REMOVED)], AT + "/replayDeterminism", "execution-model"),
    ([(REPLAY + ".refusalDivergenceEmission", False)], AT + REFUSAL, "execution-model"),
    ([(MODEL + ".version", 3), (CAUSATION + ".supported", False)], AT + "/crossHostCausation", "execution-model"),
    ([("envelopes.reliability.events", ["envelope.refusal"])], "/envelopes/reliability/events", "reliability-events"),
    ([("a2a.preferredVersion", "0.9")], "/a2a/preferredVersion", "preferred-version"),
    ([("mcp.preferredVersion", "2025-03-26")], "/mcp/preferredVersion", "preferred-version"),
    ([("httpClient.ssrfGuard", False)], "/httpClient/ssrfGuard", "ssrf-guard"),
    ([("httpClient.ssrfGuard", REMOVED)], "/httpClient/ssrfGuard", "ssrf-guard"),
    ([("packs.testMode.isolated", REMOVED)], "/packs/testMode/isolated", "test-mode"),
    ([("production.retention", REMOVED)], "/production/retention/minWindowSeconds", "retention"),
    ([("grpc.tls", "optional")], "/grpc/tls", "grpc-tls"),
    ([("agents.roster.installScope", "host")], "/agents/roster/installScope", "install-scope"),
    ([(SCOPE, REMOVED), ("agents.orgChart", REMOVED)], "/agents/roster/installScope", "install-scope"),
    ([("compensation.orderingModels", ["dependency-graph"])], "/compensation/orderingModels", "compensation"),
    ([("nodePackRuntimes.wasm.abiVersions", [2])], "/nodePackRuntimes/wasm/abiVersions", "wasm"),
    ([("auth.profiles", ["auth-saml"])], "/auth/subjectLinking", "subject-linking"),
]  # fmt: skip


@pytest.mark.parametrize(("changes", "pointer", "code"), RULE_FAULTS)
def test_a_rule_of_the_prose_is_the_only_error_at_its_place(
    changes: list[tuple[str, Any]], pointer: str, code: str
) -> None:
    assert errors(host(*changes)) == [(pointer, f"openwop-{code}")]


@pytest.mark.parametrize("key", ["x-host-acme-agents", "vendor.acme.httpClient", "private.acme.limits"])
def test_a_family_of_the_standard_must_not_hide_in_an_extension(key: str) -> None:
    assert errors(MINIMAL | {key: {}}) == [(f"/{key}", "openwop-family-place")]


@pytest.mark.parametrize("key", ["x-host-acme-tools", "vendor.acme", "private.acme"])
def test_nor_inside_an_extension(key: str) -> None:
    assert errors(MINIMAL | {key: {"tools": 1, "agents": {}}}) == [(f"/{key}/agents", "openwop-family-place")]
    assert errors(MINIMAL | {key: {"tools": 1, "fixtures": []}}) == []


@pytest.mark.parametrize(
    "label",
    ["http://10.0.0.1", "vllm.internal:8000", "host:443", "10.0.0.1", "localhost", "box.local", "models/llama", "a@b",
     "[::1]", "api.example.com", "HTTPS://X"],
)  # fmt: skip
def test_a_self_hosted_provider_must_not_look_like_a_url(label: str) -> None:
    document = host(("aiProviders.supported", ["alpha", "beta", "gamma", label]), ("aiProviders.selfHosted", [label]))
    assert errors(document) == [("/aiProviders/selfHosted/0", "openwop-self-hosted-url")]


@pytest.mark.parametrize("label", ["ollama", "vendor.acme.llama-3.1", "local_llm", "compat", "model-7b:latest"])
def test_opaque_labels_are_no_urls(label: str) -> None:
    document = host(("aiProviders.supported", ["alpha", "beta", "gamma", label]), ("aiProviders.selfHosted", [label]))
    assert errors(document) == []


@pytest.mark.parametrize(
    ("until", "good"),
    [
        ("2026-12-16", False), ("2026-12-17", True), ("2027-12-17", True), ("2027-12-18", False),
        ("2030-01-01", False), ("2027-02-29", False), ("2027-2-1", False), ("2027-06-01\n", False),
    ],
)  # fmt: skip
def test_an_experiment_ends_within_twelve_months_and_not_in_the_past(until: str, good: bool) -> None:
    document = host((MODEL + ".tier", "experimental"), (MODEL + ".experimentalUntil", until))
    assert (errors(document) == []) is good
    assert all(pointer == "/multiAgent/executionModel/experimentalUntil" for pointer, _ in errors(document))


def test_without_the_time_no_date_is_judged() -> None:
    document = host(
        (MODEL + ".tier", "experimental"),
        (MODEL + ".experimentalUntil", "1999-01-01"),
    )
    assert errors(document, None) == []


@pytest.mark.parametrize("version", ["1.0\n", "1.0.0", "1", "v1.0", "01.0", "1.", "1.0 ", "１.0"])
def test_patterns_mean_what_ecma_262_means(version: str) -> None:
    document = MINIMAL | {"protocolVersion": version}
    assert errors(document) == [("/protocolVersion", "schema-pattern")]


def test_unknown_root_keys_are_warnings_and_near_misses_are_named() -> None:
    document = MINIMAL | {"debugBundle": {}, "agnets": {}, "httpclient": {}}
    assert errors(document) == []
    assert warnings(document) == [
        ("/debugBundle", "unknown-root-key", None),
        ("/agnets", "likely-typo", 'did you mean "agents"?'),
        ("/httpclient", "likely-typo", 'did you mean "httpClient"?'),
    ]


def test_families_only_in_the_old_wrapper_are_warned_of() -> None:
    document = MINIMAL | {"capabilities": {"limits": MINIMAL["limits"], "memory": {}}}
    assert errors(document) == []
    assert [(pointer, code) for pointer, code, _ in warnings(document)] == [
        ("/capabilities/memory", "openwop-family-in-wrapper")
    ]


def test_a_version_2_document_is_recognised_and_said_to_be_one() -> None:
    document = {"protocolVersions": ["1.11", "2.0"], "preferredVersion": "1.11", "limits": {"status": "stable"}}
    assert PLUGIN.claims(json.dumps(document).encode())
    assert errors(document) == []
    assert [code for _, code, _ in warnings(document)] == ["openwop-version-2"]
    value = PLUGIN.parse(json.dumps(document).encode()).value
    assert value is not None
    assert value.major == 2
    assert PLUGIN.summary(value).facts[0].value == "2"


@pytest.mark.parametrize(
    ("change", "pointer"),
    [
        ({"capabilities": {}}, "/capabilities"),
        ({"host.replay": {}}, "/host.replay"),
        ({"profiles": []}, "/profiles"),
        ({"supportedEnvelopes": ["a"]}, "/supportedEnvelopes"),
        ({"preferredVersion": "2.1"}, "/preferredVersion"),
        ({"protocolVersions": ["2.0", 5]}, "/protocolVersions"),
    ],
)
def test_the_root_of_version_2_is_closed(change: dict[str, Any], pointer: str) -> None:
    document = {"protocolVersion": "1.0", "protocolVersions": ["2.0"], "preferredVersion": "2.0"} | change
    assert [place for place, _ in errors(document)] == [pointer]


def test_the_version_2_root_has_families_and_metadata() -> None:
    assert (len(FAMILIES), len(METADATA), FAMILIES & METADATA) == (74, 17, frozenset())


@pytest.mark.parametrize("document", [{}, [], {"protocolVersion": "1.0"}, {"limits": {}}, {"protocolVersions": []}])
def test_other_documents_are_not_claimed(document: Any) -> None:
    assert not PLUGIN.claims(json.dumps(document).encode())


def test_the_drafts_comments_aside_it_is_valid() -> None:
    lines = [line for line in PLUGIN.draft().splitlines() if not line.lstrip().startswith("//")]
    assert PLUGIN.parse("\n".join(lines).encode()).errors == ()


def test_a_valid_document_of_a_mebibyte_takes_little_time() -> None:
    document = MINIMAL | {"fixtures": [f"fixture-{number}" for number in range(50_000)]}
    start = process_time()
    assert errors(document) == []
    assert process_time() - start < 2


# The rest needs the published schema and documents, which are not part of this repository.
needs_shared = pytest.mark.skipif(not SHARED.is_dir(), reason=f"needs the published OpenWOP files at {SHARED}")


def _shared_documents() -> list[dict[str, Any]]:
    index = SHARED / "openwop/index.json"
    return json.loads(index.read_text())["documents"] if index.is_file() else []


@needs_shared
@pytest.mark.parametrize("entry", _shared_documents(), ids=lambda entry: entry["path"])
def test_published_documents_get_their_verdicts(entry: dict[str, Any]) -> None:
    data = (SHARED / "openwop" / entry["path"]).read_bytes()
    parsed = PLUGIN.parse(data, now_ms=NOW)
    assert PLUGIN.claims(data)
    codes = [error.code for error in parsed.errors]
    if not codes:
        verdict = "valid"
    else:
        verdict = "semantic-invalid" if all(code.startswith("openwop-") for code in codes) else "schema-invalid"
    assert verdict == entry["expected"]
    says_2 = [warning.code for warning in parsed.warnings].count("openwop-version-2")
    assert says_2 == (entry["protocolMajor"] == 2)
    for expected in entry["schemaErrors"]:
        place = expected.partition(":")[0]
        assert any(error.pointer.startswith(place) for error in parsed.errors)


@needs_shared
def test_the_constraints_are_the_published_schema_without_its_prose(tmp_path: Path) -> None:
    output = tmp_path / "constraints.json"
    schemas = SHARED / "openwop/schemas"
    subprocess.run(
        [sys.executable, ROOT / "scripts/strip-openwop-schema", SHARED / "seeds/openwop-capabilities.schema.json",
         schemas / "v1-prompt-kind.schema.json", schemas / "v1-prompt-ref.schema.json", "--output", output],
        check=True, capture_output=True,
    )  # fmt: skip
    shipped = ROOT / "bnw/profiles/openwop/constraints.json"
    assert output.read_bytes() == shipped.read_bytes()
    published = json.loads((SHARED / "seeds/openwop-capabilities.schema.json").read_text())
    assert len(json.loads(shipped.read_text())["properties"]) == len(published["properties"]) == 92


@needs_shared
def test_constraints_and_published_schema_judge_damaged_documents_alike() -> None:
    published = json.loads((SHARED / "seeds/openwop-capabilities.schema.json").read_text())
    files = [SHARED / f"openwop/schemas/v1-prompt-{name}.schema.json" for name in ("kind", "ref")]
    parts = [json.loads(file.read_text()) for file in files]
    registry = jsonschema_rs.Registry([(part["$id"], part) for part in parts])
    whole = jsonschema_rs.validator_for(published, registry=registry, validate_formats=True, offline=True)
    constraints = json.loads((ROOT / "bnw/profiles/openwop/constraints.json").read_text())
    shipped = jsonschema_rs.validator_for(constraints, validate_formats=True, offline=True)
    judged = {True: 0, False: 0}
    for document in _damaged(HOST):
        verdict = whole.is_valid(document)
        assert verdict == shipped.is_valid(document)
        judged[verdict] += 1
    assert min(judged.values()) > 50


def _damaged(document: Any) -> list[Any]:
    """The document with, one after the other, each member removed, and each value replaced by its neighbour."""
    damaged = []
    paths = [path for path in _paths(document, ()) if path]
    for path, other in pairwise([*paths, paths[0]]):
        for value in (REMOVED, _at(document, other)):
            changed = copy.deepcopy(document)
            parent = _at(changed, path[:-1])
            if value is REMOVED:
                del parent[path[-1]]
            else:
                parent[path[-1]] = copy.deepcopy(value)
            damaged.append(changed)
    return damaged


def _paths(value: Any, path: tuple[Any, ...]) -> list[tuple[Any, ...]]:
    children = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(deeper for key, child in children for deeper in _paths(child, (*path, key)))]


def _at(value: Any, path: tuple[Any, ...]) -> Any:
    for key in path:
        value = value[key]
    return value
