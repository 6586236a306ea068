"""Version 2 documents: recognised, and held to the closed root.

Version 2 has no schema here yet. What is known of it is its root: a closed set of families, each of them a record (an
object), and of metadata members. So a version 2 document is told from a version 1 document that only says `2.0`, and
whoever reads the verdict is told that the records themselves went unchecked.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from bnw.profiles.contract import LocatedError
from bnw.profiles.json_locate import shown
from bnw.profiles.json_reader import JsonValue
from bnw.profiles.pointer import pointer
from bnw.profiles.suggest import suggest

_FAMILY_NAMES: Final = """
    a2a agentRuntime agents aiEnvelope aiProviders anonymousActor artifactTypes auditLogIntegrity auth
    authorization blobStorage budget cache channelPresence compensation connections content
    conversationPrimitive conversationTurnModelProvenance credentials dataResidency deadLetter envelopeContracts
    envelopeStrictness envelopes eventLog feedback forms fs heartbeat hostEvents httpClient i18n idempotency
    interrupt kvStorage limits mcp memory modelCapabilities multiAgent multiPartyConversation nodePackRuntimes
    nondeterminismPolicy nosql oauth packs portability production promptLibrary prompts providerUsage
    purposePropagation queueBus replay runList sandbox scheduling schemaVersions searchIndex secrets
    selfHostedRunner sql subWorkflow supportedEnvelopes tableStorage toolCatalog toolHooks triggerBridge
    uiPlugins vectorStore webhooks workflowChainPacks workspace
"""
_METADATA_NAMES: Final = """
    compliance configurable conformance discovery engineVersion eventLogSchemaVersion extensions fixtures
    implementation minClientVersion observability preferredVersion protocolVersion protocolVersions
    runtimeCapabilities signingKeys testing
"""
FAMILIES: Final = frozenset(_FAMILY_NAMES.split())
METADATA: Final = frozenset(_METADATA_NAMES.split())
_ROOT: Final = tuple(sorted(FAMILIES | METADATA))
_VERSION: Final = re.compile(r"(?:0|[1-9][0-9]*+)\.(?:0|[1-9][0-9]*+)")
_MAX_SUGGESTIONS: Final = 32

UNCHECKED: Final = LocatedError(
    "",
    "openwop-version-2",
    "this is a version 2 document; only its root was checked",
    "a version 1 document of the same host can be checked whole",
)


def is_version_2(root: Mapping[str, JsonValue]) -> bool:
    """Whether a document means to be of version 2.

    It lists a 2.x and either lists no 1.x, or lacks the `protocolVersion` and the list of envelopes of version 1.
    """
    versions = root.get("protocolVersions")
    if not isinstance(versions, list):
        return False
    majors = {version.partition(".")[0] for version in versions if isinstance(version, str)}
    if "2" not in majors:
        return False
    return "1" not in majors or not ("protocolVersion" in root or isinstance(root.get("supportedEnvelopes"), list))


def faults(root: Mapping[str, JsonValue]) -> list[LocatedError]:
    """What is wrong with the root of a version 2 document."""
    found = _version_faults(root)
    suggestions = 0
    for name, value in root.items():
        if name in FAMILIES:
            if not isinstance(value, dict):
                message = "a family is a record (an object) in version 2"
                found.append(LocatedError(pointer([name]), "wrong-type", message))
        elif name not in METADATA:
            suggestions += 1
            near = suggest(name, _ROOT) if suggestions <= _MAX_SUGGESTIONS else None
            message = f"{shown(name)} may not stand in the closed root of version 2"
            found.append(LocatedError(pointer([name]), "unknown-field", message, near and f'did you mean "{near}"?'))
    return found


def _version_faults(root: Mapping[str, JsonValue]) -> list[LocatedError]:
    found = []
    versions = root.get("protocolVersions")
    listed = [item for item in versions if isinstance(item, str)] if isinstance(versions, list) else []
    if not isinstance(versions, list) or len(listed) != len(versions) or not all(map(_VERSION.fullmatch, listed)):
        message = "a list of versions such as 2.0 is expected"
        found.append(LocatedError("/protocolVersions", "openwop-versions", message))
    preferred = root.get("preferredVersion")
    if preferred is None:
        message = "version 2 names the version that a host prefers"
        found.append(LocatedError("/preferredVersion", "missing-field", message, "add it"))
    elif preferred not in listed:
        message = "is not among protocolVersions"
        found.append(LocatedError("/preferredVersion", "openwop-preferred-version", message))
    return found
