"""The starting point for a version 1 capabilities document: the members that it must have."""

from __future__ import annotations

from typing import Final

DRAFT: Final = """\
// What an OpenWOP host (version 1) can do, as it serves it at /.well-known/openwop.
// Comments are not JSON: `bnw-profile strip THIS-FILE` removes them.
{
  // The protocol version that the host speaks.
  "protocolVersion": "1.0",
  // Who made the host (optional).
  "implementation": {"name": "my-host", "version": "0.1.0", "vendor": "me"},
  // The kinds of envelope that its engine understands.
  "supportedEnvelopes": ["clarification.request"],
  // The schema version of each kind that has one.
  "schemaVersions": {},
  // What its engine enforces.
  "limits": {"clarificationRounds": 3, "schemaRounds": 2, "envelopesPerTurn": 5}
  // Each further capability is a block of its own here, at the root.
}
"""
