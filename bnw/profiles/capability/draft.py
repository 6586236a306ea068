"""The starting point for a new `bnw.capability-profile/1` document, with a comment before each member.

Comments are whole lines that begin with `//`. They are not JSON: `bnw-profile strip` removes them.
"""

from __future__ import annotations

from typing import Final

_PAYLOAD: Final = """\
      // 1 to 16 media types, lowercase, without parameters.
      "media_types": ["application/json"],
      // The content id of a JSON Schema (bnw-profile id SCHEMA.json), or null. It binds nobody by itself: it shapes the
      // starter document that callers see, and the provider checks every input against it.
      "schema": null,
      // The most bytes that are accepted: 1 to 1073741824 (1 GiB).
      "max_bytes": 1048576,
      // public: anyone may read it; participant-encrypted: only caller and provider; either: as the caller likes.
      "privacy": "participant-encrypted"
"""

DRAFT: Final = f"""\
// A capability for BNW. Fill it in, then:
//   bnw-profile strip THIS-FILE > capability.json    removes these comments
//   bnw-profile validate capability.json             checks it and prints its content id
// It says what the capability is. Where it can be reached and who may call it is said elsewhere (offers, delegations):
// put no address, secret, price or availability here.
{{
  // The format. Leave it as it is.
  "profile": "bnw.capability-profile/1",
  // For people: 1 to 128 characters, on one line.
  "name": "My capability",
  // For people: up to 4096 characters, on one line; may be empty.
  "description": "Says in a sentence or two what it does.",
  "operation": {{
    // For machines: 1 to 64 lowercase letters, digits and . _ - / (such as tools/call).
    "name": "tools/call",
    "input": {{
{_PAYLOAD}    }},
    "output": {{
{_PAYLOAD}    }}
  }}
}}
"""
