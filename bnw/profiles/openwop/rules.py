"""The rules for version 1 documents that only their prose states; JSON Schema has no words for them.

Each rule is one function: the document in, faults out. A rule looks only at what has the right shape; the wrong shape
is the schema's to report. All take time linear in the document.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, date, datetime
from typing import Final

from bnw.profiles.contract import LocatedError
from bnw.profiles.json_locate import shown
from bnw.profiles.json_reader import JsonValue
from bnw.profiles.openwop.version2 import METADATA
from bnw.profiles.pointer import pointer

Document = Mapping[str, JsonValue]
Faults = Iterator[LocatedError]

MIN_RETENTION_SECONDS: Final = 604_800
_RELIABILITY_EVENTS: Final = ("envelope.retry.exhausted", "envelope.refusal")
_LINKED_PROFILES: Final = ("openwop-auth-saml", "openwop-auth-scim")
_DATE: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_EXTENSION: Final = re.compile(r"(?:x-host-|vendor\.|private\.)")
# A label may hold dots (`vendor.acme.llama-3.1`); what gives an endpoint away is a scheme, a path, a port, an address,
# or a name that ends like a host's.
_URL_SHAPED: Final = re.compile(
    r"[a-z][a-z0-9+.-]*+://|[/\\?#@\[\]]|:[0-9]{1,5}$|^[0-9]{1,3}(?:\.[0-9]{1,3}){3}$|^localhost$"
    r"|\.(?:local|localhost|localdomain|internal|intranet|lan|corp|home|arpa|com|net|org|io|dev|ai|cloud|example|test)$",
    re.IGNORECASE,
)
_MAX_PROVIDER_ID: Final = 1024


def faults(document: Document, families: frozenset[str], now_ms: int | None) -> Iterator[LocatedError]:
    """Every fault by the rules below. `families` are the root members that the schema knows."""
    for rule in _RULES:
        yield from rule(document)
    yield from _family_places(document, families - METADATA)
    if now_ms is not None:
        yield from _experimental_until(document, datetime.fromtimestamp(now_ms / 1000, UTC).date())


def warnings(document: Document, families: frozenset[str]) -> Iterator[LocatedError]:
    """What is allowed, but hardly meant."""
    wrapper = _object(document, "capabilities")
    for name in wrapper:
        if name in families and name not in document:
            message = "stands only in the deprecated wrapper, where no one has to look"
            yield LocatedError(
                pointer(["capabilities", name]), "openwop-family-in-wrapper", message, "move it to the root"
            )
    client = _object(document, "httpClient")
    if client.get("supported") is True and "maxResponseBodyBytes" not in client:
        message = "an HTTP client should state how much it reads of a response"
        yield LocatedError("/httpClient/maxResponseBodyBytes", "openwop-response-cap", message, "add it")
    for name in ("a2a", "mcp"):
        block = _object(document, name)
        if block.get("supported") is True and "protocolVersions" not in block:
            message = "support without versions is deprecated: a peer can't negotiate with it"
            yield LocatedError(f"/{name}/protocolVersions", "openwop-unversioned", message, "list the versions")


def _versions(document: Document) -> Faults:
    version, versions = document.get("protocolVersion"), _texts(document, "protocolVersions")
    if isinstance(version, str) and versions is not None and version not in versions:
        yield LocatedError(
            "/protocolVersions", "openwop-versions", f"does not contain protocolVersion {shown(version)}"
        )
    preferred = document.get("preferredVersion")
    if not isinstance(preferred, str):
        return
    if versions is not None and preferred not in versions:
        message = f"{shown(preferred)} is not among protocolVersions"
        yield LocatedError("/preferredVersion", "openwop-preferred-version", message)
    elif isinstance(version, str) and preferred != version:
        majors = {item.partition(".")[0] for item in versions or [version]}
        if len(majors) == 1:
            message = f"must equal protocolVersion {shown(version)} on a host that serves one major version"
            yield LocatedError("/preferredVersion", "openwop-preferred-version", message)


def _providers(document: Document) -> Faults:
    block = _object(document, "aiProviders")
    supported = set(_texts(block, "supported") or ())
    byok = set(_texts(block, "byok") or ())
    lists = [("byok",), ("selfHosted",), ("promptPrefixCache", "providers")]
    for path in lists:
        for index, provider in enumerate(_texts(block, *path) or ()):
            if provider not in supported:
                place = pointer(["aiProviders", *path, index])
                message = f"{shown(provider)} is not in aiProviders.supported"
                yield LocatedError(place, "openwop-provider", message, "add it there, or remove it here")
    for index, provider in enumerate(_texts(block, "selfHosted") or ()):
        if len(provider) > _MAX_PROVIDER_ID or _URL_SHAPED.search(provider) is not None:
            place = pointer(["aiProviders", "selfHosted", index])
            message = f"{shown(provider)} gives away where the endpoint is"
            yield LocatedError(place, "openwop-self-hosted-url", message, "use an opaque label")
    for provider, modes in _object(block, "authModes").items():
        place = pointer(["aiProviders", "authModes", provider])
        if provider not in supported:
            yield LocatedError(place, "openwop-provider", f"{shown(provider)} is not in aiProviders.supported")
        if not isinstance(modes, list):
            continue
        if ("apiKey" in modes or "subscription" in modes) and provider not in byok:
            message = "a provider with the mode apiKey or subscription must be in aiProviders.byok"
            yield LocatedError(place, "openwop-auth-mode", message)
        if modes == ["none"] and provider in byok:
            message = "a provider whose only mode is none must not be in aiProviders.byok"
            yield LocatedError(place, "openwop-auth-mode", message)


def _locales(document: Document) -> Faults:
    i18n = _object(document, "i18n")
    default, offered = i18n.get("defaultLocale"), _texts(i18n, "supportedLocales")
    if isinstance(default, str) and offered is not None and default not in offered:
        yield LocatedError(
            "/i18n/supportedLocales", "openwop-locale", f"does not contain defaultLocale {shown(default)}"
        )
    content = _object(document, "content")
    base = content.get("baseLocale")
    if not isinstance(base, str):
        return
    if content.get("supported") is True and i18n.get("supported") is not True:
        yield LocatedError("/content/supported", "openwop-locale", "needs i18n.supported")
    if base != default:
        message = f"{shown(base)} is not i18n.defaultLocale"
        yield LocatedError("/content/baseLocale", "openwop-locale", message, "both must be equal")
    known = set(offered or ())
    if base not in known:
        yield LocatedError("/content/baseLocale", "openwop-locale", f"{shown(base)} is not in i18n.supportedLocales")
    for index, locale in enumerate(_texts(content, "supportedLocales") or ()):
        place = f"/content/supportedLocales/{index}"
        if locale == base:
            yield LocatedError(place, "openwop-locale", "the base locale must not be listed here", "remove it")
        elif locale not in known:
            yield LocatedError(place, "openwop-locale", f"{shown(locale)} is not in i18n.supportedLocales")


def _execution_model(document: Document) -> Faults:
    at = "/multiAgent/executionModel"
    model = _object(document, "multiAgent", "executionModel")
    version = model.get("version")
    if type(version) is not int:
        return
    if version >= 3:
        causation = _object(model, "crossHostCausation")
        if causation.get("supported") is not True or "hostId" not in causation:
            message = f"version {version} needs this block with supported: true and a hostId"
            yield LocatedError(f"{at}/crossHostCausation", "openwop-execution-model", message)
    if version >= 4:
        replay = _object(model, "replayDeterminism")
        if replay.get("supported") is not True:
            message = f"version {version} needs this block with supported: true"
            yield LocatedError(f"{at}/replayDeterminism", "openwop-execution-model", message)
        elif replay.get("refusalDivergenceEmission") is not True:
            message = f"version {version} needs this to be true"
            yield LocatedError(f"{at}/replayDeterminism/refusalDivergenceEmission", "openwop-execution-model", message)


def _experimental_until(document: Document, today: date) -> Faults:
    until = _object(document, "multiAgent", "executionModel").get("experimentalUntil")
    if not isinstance(until, str) or _DATE.fullmatch(until) is None:
        return
    try:
        last = date.fromisoformat(until)
    except ValueError:
        return  # no such day, as the schema says
    at, code = "/multiAgent/executionModel/experimentalUntil", "openwop-experimental-until"
    if last < today:
        yield LocatedError(at, code, f"{until} is past", "make the tier stable, or withdraw the block")
    elif (last.year, last.month, last.day) > (today.year + 1, today.month, today.day):
        yield LocatedError(
            at, code, f"{until} is more than 12 months ahead of {today.isoformat()}", "choose an earlier day"
        )


def _needed_values(document: Document) -> Faults:
    reliability = _object(document, "envelopes", "reliability")
    if reliability.get("supported") is True:
        events = _texts(reliability, "events") or []
        for event in _RELIABILITY_EVENTS:
            if event not in events:
                place = "/envelopes/reliability/events"
                yield LocatedError(place, "openwop-reliability-events", f"must include {event}", "add it")
    compensation = _object(document, "compensation")
    models = compensation.get("orderingModels")
    if compensation.get("supported") is True and isinstance(models, list) and "reverse-completion" not in models:
        place = "/compensation/orderingModels"
        yield LocatedError(place, "openwop-compensation", "must include reverse-completion", "add it")
    for name in ("a2a", "mcp"):
        block = _object(document, name)
        preferred = block.get("preferredVersion")
        if isinstance(preferred, str) and preferred not in (_texts(block, "protocolVersions") or []):
            message = f"{shown(preferred)} is not among protocolVersions"
            yield LocatedError(f"/{name}/preferredVersion", "openwop-preferred-version", message)
    wasm = _object(document, "nodePackRuntimes", "wasm")
    versions = wasm.get("abiVersions")
    if wasm.get("supported") is True and not (isinstance(versions, list) and 1 in versions):
        yield LocatedError("/nodePackRuntimes/wasm/abiVersions", "openwop-wasm", "must include 1", "add it")


def _guards(document: Document) -> Faults:
    client = _object(document, "httpClient")
    if client.get("supported") is True and client.get("ssrfGuard") is not True:
        message = "a supported HTTP client must be guarded against request forgery"
        yield LocatedError("/httpClient/ssrfGuard", "openwop-ssrf-guard", message, "set it to true")
    test_mode = _object(document, "packs", "testMode")
    if test_mode.get("supported") is True and test_mode.get("isolated") is not True:
        message = "a supported test mode must be isolated from the production catalog"
        yield LocatedError("/packs/testMode/isolated", "openwop-test-mode", message, "set it to true")
    production = _object(document, "production")
    if production.get("supported") is True:
        window = _object(production, "retention").get("minWindowSeconds")
        if window is None or (type(window) is int and window < MIN_RETENTION_SECONDS):
            message = f"a production host keeps events for at least {MIN_RETENTION_SECONDS:,} seconds"
            yield LocatedError("/production/retention/minWindowSeconds", "openwop-retention", message)
        grpc = _object(document, "grpc")
        if grpc.get("supported") is True and grpc.get("tls") != "required":
            yield LocatedError("/grpc/tls", "openwop-grpc-tls", "a production host must require TLS")
    auth = _object(document, "auth")
    profiles = _texts(auth, "profiles") or []
    if auth.get("subjectLinking") is True and not all(name in profiles for name in _LINKED_PROFILES):
        message = f"may be true only with both {' and '.join(_LINKED_PROFILES)} in auth.profiles"
        yield LocatedError("/auth/subjectLinking", "openwop-subject-linking", message)


def _install_scope(document: Document) -> Faults:
    agents = _object(document, "agents")
    runtime = agents.get("manifestRuntime")
    if not isinstance(runtime, dict):
        return
    scope = runtime.get("installScope", "host")
    for name in ("roster", "orgChart"):
        other = _object(agents, name).get("installScope")
        if isinstance(other, str) and isinstance(scope, str) and other != scope:
            message = f"{shown(other)} is not the installScope of agents.manifestRuntime, {shown(scope)}"
            yield LocatedError(f"/agents/{name}/installScope", "openwop-install-scope", message)


def _family_places(document: Document, families: frozenset[str]) -> Faults:
    """A family of the standard must not hide in a namespace that readers skip."""
    code, hint = "openwop-family-place", "a family of the standard stands at the root, under its plain name"
    for key, value in document.items():
        if _EXTENSION.match(key) is None:
            continue
        last = re.split(r"[.-]", key)[-1]
        if last in families:
            yield LocatedError(pointer([key]), code, f"{shown(last)} is a family of the standard", hint)
        if isinstance(value, dict):
            for name in value:
                if name in families:
                    yield LocatedError(pointer([key, name]), code, f"{shown(name)} is a family of the standard", hint)


def _object(value: JsonValue | Document, *path: str) -> Mapping[str, JsonValue]:
    """The object at `path` in `value`, or an empty one."""
    for name in path:
        value = value.get(name) if isinstance(value, Mapping) else None
    return value if isinstance(value, Mapping) else {}


def _texts(value: Document, *path: str) -> list[str] | None:
    """The texts of the array at `path` in `value`; None if no array is there."""
    found = _object(value, *path[:-1]).get(path[-1])
    return [item for item in found if isinstance(item, str)] if isinstance(found, list) else None


_RULES: Final[tuple[Callable[[Document], Faults], ...]] = (
    _versions, _providers, _locales, _execution_model, _needed_values, _guards, _install_scope,
)  # fmt: skip
